# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A reader that passes over some of another reader's batches.

Batches are counted from 1 as the other reader hands them out, from its first
one on. The position is the other reader's own, so a saved one fits with and
without what is passed over.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
from typing import Any

from t5wild.data import reader_protocol

Window = tuple[int, int]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Passed:
  """Batches that were passed over.

  Attributes:
    first: the first of them.
    last: the last of them.
    before: position of the reader before them.
    after: position after them, with which the next batch begins.
  """

  first: int
  last: int
  before: Mapping[str, Any]
  after: Mapping[str, Any]


def merged(windows: Iterable[Sequence[int]]) -> list[Window]:
  """The same batches in as few windows as possible, in order."""
  found: list[Window] = []
  for first, last in sorted(map(tuple, windows)):
    if found and first <= found[-1][1] + 1:
      found[-1] = (found[-1][0], max(found[-1][1], last))
    else:
      found.append((first, last))
  return found


def number_of(
    windows: Sequence[Window], *, after: int, trained_on: int
) -> int:
  """The number of the batch that comes as the so many-th after another.

  Args:
    windows: merged; they are passed over.
    after: number of the batch before; 0 before the first.
    trained_on: at least 1.
  """
  number = after
  for _ in range(trained_on):
    number += 1
    for first, last in windows:
      if first <= number <= last:
        number = last + 1
  return number


class PassingReader:
  """The batches of a reader without those of some windows.

  Attributes:
    windows: (first, last) of what is passed over, merged.
    passed: what was passed over since the last `go_to`, in order.
    source: what is read, for messages.
    source: what is read, for messages.
  """

  def __init__(
      self,
      reader: reader_protocol.Reader,
      windows: Iterable[Window] = (),
      *,
      step: int = 0,
  ):
    """Wraps a reader, which it owns.

    Args:
      reader: Gives all batches.
      windows: (first, last) of batches to pass over.
      step: Of the run, after which the next batch is trained on.
    """
    self._reader = reader
    self.source = getattr(reader, 'source', type(reader).__name__)
    self._step = step
    self.windows = merged(windows)
    self.passed: list[Passed] = []
    self.element_spec = reader.element_spec
    self.promise = reader.promise
    self.is_exact = reader.is_exact

  def __iter__(self) -> Iterator[reader_protocol.Batch]:
    """Returns itself."""
    return self

  def __next__(self) -> reader_protocol.Batch:
    """Returns the next batch that is in no window."""
    if self.windows:
      self._pass_over()
    batch = next(self._reader)
    self._step += 1
    return batch

  def go_to(self, *, step: int) -> None:
    """Takes that the reader was moved to where it stood after a step."""
    self._step = step
    self.passed = []

  def add_window(self, first: int, last: int) -> None:
    """Passes over more batches, from the next one asked for on."""
    self.windows = merged([*self.windows, (first, last)])

  def _pass_over(self) -> None:
    before = self._reader.state_dict()
    number = before['batches'] + 1
    last = next((b for a, b in self.windows if a <= number <= b), None)
    if last is None:
      return
    count = last - number + 1
    if hasattr(self._reader, 'skip'):
      self._reader.skip(batches=count)
    else:
      for _ in range(count):
        next(self._reader)
    if hasattr(self._reader, 'start_at'):  # what was passed over is no step
      self._reader.start_at(self._step)
    self.passed.append(
        Passed(
            first=number,
            last=last,
            before=before,
            after=self._reader.state_dict(),
        )
    )

  def state_dict(self) -> dict[str, Any]:
    """Position of the reader after the batches handed out."""
    return self._reader.state_dict()

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Goes to a position of the reader.

    Raises:
      ValueError: as the reader's own.
    """
    self._reader.load_state_dict(state)
    self.passed = []

  def close(self) -> None:
    """Ends the reader, if it can be."""
    if hasattr(self._reader, 'close'):
      self._reader.close()
