# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Documents that are left out of batches from some step on.

A document is named TASK:SHARD:DOCUMENT, as `t5wild samples` prints it; the
task may be left out where there is one alone. Its place in its row is left
empty, and every other example stays where it is.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import difflib
import os

import numpy as np

from t5wild.data import places
from t5wild.data import record_cache

NEVER = np.iinfo(np.int64).max
_DOCUMENT_BITS = 40
Lists = Mapping[int, str | Sequence[str]]


@dataclasses.dataclass(frozen=True, kw_only=True, order=True)
class Document:
  """One document of a cache.

  Attributes:
    task: that it is of.
    shard: number of the file that it is in.
    number: of the document in that file.
  """

  task: str
  shard: int
  number: int

  def __str__(self) -> str:
    """Its name in lists of exclusions."""
    return f'{self.task}:{self.shard}:{self.number}'


class Exclusions:
  """From which step on each document is left out."""

  def __init__(
      self,
      lists: Lists | None,
      *,
      caches: Sequence[record_cache.RecordCache],
  ):
    """Reads the lists.

    Args:
      lists: by step: names of documents, or a file with one on each line
        (what follows a '#' is not read).
      caches: that they are of.

    Raises:
      ValueError: for a name of no document there, or no step.
    """
    by_task = {cache.manifest.task: cache for cache in caches}
    self._first_steps: dict[Document, int] = {}
    for step, given in (lists or {}).items():
      _check_step(step)
      for name, place in _names(given):
        document = _parse(name, tasks=list(by_task), place=place)
        _check_known(document, by_task[document.task], place=place)
        known = self._first_steps.get(document, step)
        self._first_steps[document] = min(step, known)

  def __len__(self) -> int:
    """How many documents are left out at some step."""
    return len(self._first_steps)

  @property
  def steps(self) -> list[int]:
    """Steps from which on documents are left out, in order."""
    return sorted(set(self._first_steps.values()))

  def of(self, document: Document) -> int | None:
    """The step from which on a document is left out, or None."""
    return self._first_steps.get(document)

  def in_force(self, step: int) -> list[list[object]]:
    """[step, document] of all that are left out by a step, in order."""
    return sorted(
        [first, str(document)]
        for document, first in self._first_steps.items()
        if first <= step
    )

  def for_task(self, task: str) -> 'TaskExclusions':
    """Those of one task, to look many documents up in."""
    mine = sorted(
        (document.shard << _DOCUMENT_BITS | document.number, step)
        for document, step in self._first_steps.items()
        if document.task == task
    )
    keys, steps = np.array(mine, np.int64).reshape(-1, 2).T
    return TaskExclusions(keys=keys, steps=steps)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskExclusions:
  """Documents of one task, and the steps from which on they are left out.

  Attributes:
    keys: int64 [documents], ascending, of shard and number.
    steps: int64 [documents].
  """

  keys: np.ndarray
  steps: np.ndarray

  def __bool__(self) -> bool:
    """Whether there is any."""
    return self.keys.size > 0

  def first_steps(
      self, shards: np.ndarray, documents: np.ndarray
  ) -> np.ndarray:
    """int64 [documents]: where each begins to be left out; NEVER if it is not.

    Args:
      shards: int64 [documents], numbers of the files.
      documents: int64 [documents], numbers in the files.
    """
    wanted = shards << _DOCUMENT_BITS | documents
    places = np.minimum(np.searchsorted(self.keys, wanted), self.keys.size - 1)
    return np.where(self.keys[places] == wanted, self.steps[places], NEVER)


def find_document(
    name: str, *, caches: Sequence[record_cache.RecordCache]
) -> Document:
  """The document of a name.

  Raises:
    ValueError: there is none of that name.
  """
  by_task = {cache.manifest.task: cache for cache in caches}
  document = _parse(name, tasks=list(by_task), place='what was given')
  _check_known(document, by_task[document.task], place='what was given')
  return document


def _check_step(step: object) -> None:
  if isinstance(step, bool) or not isinstance(step, int) or step < 0:
    raise ValueError(
        f'exclude_from_step has the step {step!r}: expected whole numbers of '
        'at least 0, each with its documents. Write {1000: '
        "['TASK:SHARD:DOCUMENT']}."
    )


def _names(given: str | Sequence[str]) -> list[tuple[str, str]]:
  """(name, where it stands) of the documents of one list."""
  if not isinstance(given, str):
    return [(str(name), 'exclude_from_step') for name in given]
  path = os.path.expanduser(given)
  try:
    with open(path, encoding='utf-8') as file:
      lines = file.read().splitlines()
  except OSError as error:
    raise ValueError(
        f'the list of documents {given!r}{places.seen_from(path)} of '
        f'exclude_from_step cannot be read ({error.strerror}): expected a '
        'file with a name on each line. Correct the path, or give the names '
        'themselves in a list.'
    ) from None
  found = [
      (line.split('#')[0].strip(), f'{path}, line {number}')
      for number, line in enumerate(lines, start=1)
  ]
  return [(name, place) for name, place in found if name]


def _parse(name: str, *, tasks: Sequence[str], place: str) -> Document:
  parts = name.rsplit(':', 2)
  if len(parts) == 2 and len(tasks) == 1:
    parts = [tasks[0], *parts]
  task, *numbers = parts
  if len(numbers) != 2 or not all(n.isascii() and n.isdigit() for n in numbers):
    raise ValueError(
        f'{place} names the document {name!r}: expected TASK:SHARD:DOCUMENT '
        'with two numbers, as `t5wild samples` prints them'
        + (', or SHARD:DOCUMENT' if len(tasks) == 1 else '')
        + '. Correct it.'
    )
  if task not in tasks:
    near = difflib.get_close_matches(task, tasks, n=1)
    raise ValueError(
        f'{place} names a document of the task {task!r}: expected one of '
        f'{sorted(tasks)}'
        + (f' (did you mean {near[0]!r}?)' if near else '')
        + '. Correct it, or take it out.'
    )
  return Document(task=task, shard=int(numbers[0]), number=int(numbers[1]))


def _check_known(
    document: Document, cache: record_cache.RecordCache, *, place: str
) -> None:
  counts = dict(
      zip(
          cache.shard_numbers,
          (shard.num_documents for shard in cache.manifest.shards),
          strict=True,
      )
  )
  if document.shard not in counts:
    raise ValueError(
        f'{place} names the document {document}, and {cache.folder} has no '
        f'shard {document.shard}: expected one of 0 to {max(counts)}. Correct '
        'it, or take it out.'
    )
  if document.number >= counts[document.shard]:
    raise ValueError(
        f'{place} names the document {document}, and that shard of '
        f'{cache.folder} has {counts[document.shard]} documents: expected one '
        f'of 0 to {counts[document.shard] - 1}. Correct it, or take it out.'
    )
