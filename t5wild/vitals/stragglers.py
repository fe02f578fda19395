# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Names the ranks that the others wait for, by the times that each tells.

Pure. In step with one another all ranks take the same time for a step; what
differs is how long each is busy on its host, and how long its device takes for
the same small piece of work.
"""

from collections.abc import Mapping
import dataclasses
import statistics

LEAST_RATIO = 1.3
LEAST_SECONDS = 1e-3
PATIENCE = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class Straggler:
  """A rank that takes longer than the others.

  Attributes:
    rank: its name.
    seconds: that it takes.
    others: median of what the others take.
  """

  rank: str
  seconds: float
  others: float

  def __str__(self) -> str:
    """One clause for a person."""
    return (
        f'{self.rank} takes {self.seconds * 1e3:.1f} ms, the others '
        f'{self.others * 1e3:.1f} ms'
    )


class Stragglers:
  """Judges one kind of time of all ranks, as it comes."""

  def __init__(
      self,
      *,
      least_ratio: float = LEAST_RATIO,
      least_seconds: float = LEAST_SECONDS,
      patience: int = PATIENCE,
  ):
    """Has seen nothing.

    Args:
      least_ratio: A rank is slow from so many times the others' median on.
      least_seconds: ... and so much more.
      patience: It is told when it was slow so many times in a row.
    """
    self._least_ratio = least_ratio
    self._least_seconds = least_seconds
    self._patience = patience
    self._in_a_row: dict[str, int] = {}

  def add(self, seconds: Mapping[str, float]) -> list[Straggler]:
    """Takes the times of all ranks; returns those that are slow since now.

    The slowest comes first; one that stays slow is not told again.
    """
    found = []
    for rank, own in seconds.items():
      others = [value for name, value in seconds.items() if name != rank]
      usual = statistics.median(others) if others else own
      is_slow = (
          own >= self._least_ratio * usual
          and own - usual >= self._least_seconds
      )
      self._in_a_row[rank] = self._in_a_row.get(rank, 0) + 1 if is_slow else 0
      if self._in_a_row[rank] == self._patience:
        found.append(Straggler(rank=rank, seconds=own, others=usual))
    return sorted(found, key=lambda one: -one.seconds)
