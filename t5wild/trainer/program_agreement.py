# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""All processes must compile the same program: compared once it is lowered.

Gin files, code and versions may be alike and the programs still differ: a model
that reads a clock, a host's name or an unordered set. Each process would then
wait in a collective that the others never enter.
"""

from collections.abc import Callable
import hashlib
import re
from typing import Any

from t5wild.partitioning import distributed
from t5wild.trainer import agreement
from t5wild.trainer import program_facts

# Texts are long; what differs is narrowed down by hashes of so many lines.
_LINES_OF_BLOCK = 200
_MAX_CHARACTERS = 300
# A callback to Python is named by its address in the process.
_ADDRESS = re.compile(r'(python_\w*callback.*?)(\d{6,})')


class Compared:
  """A function whose lowered program all processes compare, and then compile.

  Has the one method that `partitioner.compile` asks for.

  Attributes:
    facts: what tells the program from another, once it is lowered.
  """

  def __init__(self, fn: Any, *, name: str):
    """Takes what has a method `lower`, and a name for what is told."""
    self._fn = fn
    self._name = name
    self.facts: dict[str, Any] | None = None

  def lower(self, *args: Any, **kwargs: Any) -> Any:
    """Returns `jax.stages.Lowered`, the same on all processes.

    Raises:
      agreement.DisagreementError: on every process, with the first difference.
    """
    lowered = self._fn.lower(*args, **kwargs)
    text = text_of(lowered)
    self.facts = program_facts.of_text(text)
    if distributed.process_count() > 1:
      compare(text, name=self._name)
    return lowered


def text_of(lowered: Any) -> str:
  """The program as StableHLO: no places in source files, no addresses."""
  return _ADDRESS.sub(r'\1#', lowered.as_text())


def compare(
    text: str,
    *,
    name: str,
    meet: Callable[..., list[Any]] = distributed.meet,
) -> None:
  """Compares a program by one hash; only where it differs is more sent.

  Args:
    text: the program.
    name: for the message and the meeting.
    meet: `distributed.meet`.

  Raises:
    agreement.DisagreementError: on every process, with the first difference.
  """
  place = f'program of {name}'
  hashes = meet(place, value=_hash(text))
  differing = [i for i, one in enumerate(hashes) if one != hashes[0]]
  if not differing:
    return
  lines = text.splitlines()
  blocks = [
      lines[start : start + _LINES_OF_BLOCK]
      for start in range(0, len(lines), _LINES_OF_BLOCK)
  ]
  found = meet(f'{place}, by parts', value=[_hash(str(b)) for b in blocks])
  ours, theirs = found[0], found[differing[0]]
  block = _first_difference(ours, theirs)
  mine = blocks[block] if block < len(blocks) else []
  texts = meet(f'{place}, part {block}', value=mine)
  raise agreement.DisagreementError(
      _message(name, differing, texts, first_line=block * _LINES_OF_BLOCK)
  )


def _message(
    name: str, differing: list[int], texts: list[list[str]], *, first_line: int
) -> str:
  other = differing[0]
  ours, theirs = texts[0], texts[other]
  place = _first_difference(ours, theirs)
  shown = [
      lines[place].strip()[:_MAX_CHARACTERS] if place < len(lines) else '(ends)'
      for lines in (ours, theirs)
  ]
  return (
      f'Processes {differing} lowered another program of {name} than process '
      f'0; its line {first_line + place + 1} is\n'
      f'  on process 0: {shown[0]}\n'
      f'  on process {other}: {shown[1]}\n'
      'Expected the same program everywhere. Look for what a model or a '
      'function in gin takes from its process: the clock, the host, its '
      'environment, the order of a set. Where you know better: '
      'trainer.Trainer.compare_programs = False.'
  )


def _first_difference(ours: list[str], theirs: list[str]) -> int:
  pairs = zip(ours, theirs, strict=False)
  same = [a == b for a, b in pairs]
  return same.index(False) if False in same else len(same)


def _hash(text: str) -> str:
  return hashlib.sha256(text.encode()).hexdigest()[:16]
