# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""How far an inference is, in a line every few seconds."""

from collections.abc import Iterator, Sequence
import time
from typing import Any

from absl import logging

_SECONDS = 5.0


class Progress:
  """Counts examples and tells of them now and then."""

  def __init__(self, name: str, *, total: int | None):
    """Starts the clock.

    Args:
      name: What is told of.
      total: Examples in all, or None where nobody knows.
    """
    self._name = name
    self._total = total
    self._done = 0
    self._computed = 0
    self._start = self._told = time.monotonic()

  def skip(self, count: int) -> None:
    """Counts examples that an earlier run has done."""
    self._done += count
    logging.info('%s: %d examples were there already', self._name, count)

  def watch(self, examples: Sequence[Any]) -> 'Watched':
    """Returns the examples, counted as they are taken."""
    return Watched(examples, self)

  def add_one(self) -> None:
    """Counts an example."""
    self._done += 1
    self._computed += 1
    if time.monotonic() - self._told > _SECONDS:
      self.tell()

  def tell(self) -> None:
    """Logs where it stands."""
    self._told = time.monotonic()
    rate = self._computed / max(self._told - self._start, 1e-9)
    of, left = '', ''
    if self._total is not None:
      of = f' of {self._total}'
      if rate:
        left = f', {(self._total - self._done) / rate:.0f} s left'
    logging.info(
        '%s: %d%s examples, %.1f a second%s', self._name, self._done, of, rate,
        left,
    )  # fmt: skip


class Watched(Sequence):
  """A list whose progress is counted while it is read."""

  def __init__(self, examples: Sequence[Any], progress: Progress):
    """Keeps both."""
    self._examples = examples
    self._progress = progress

  def __len__(self) -> int:
    """Number of examples."""
    return len(self._examples)

  def __getitem__(self, index):
    """One example, not counted."""
    return self._examples[index]

  def __iter__(self) -> Iterator[Any]:
    """Yields and counts the examples."""
    for example in self._examples:
      yield example
      self._progress.add_one()
