# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Values far above those before them, and values that do not fall any more.

Pure: the same values give the same verdicts, so that processes which see the
same numbers need not talk to agree. What is usual is the median of a window,
how much it varies the median absolute deviation (Hampel 1974): neither is moved
by the few values that are looked for.
"""

import bisect
import collections
from collections.abc import Mapping
import dataclasses
import math
import statistics
from typing import Any

# Of a normal distribution: its standard deviation by its MAD.
_DEVIATION_BY_MAD = 1.4826
# So many usual values end an episode: what comes after is told anew.
_QUIET_VALUES = 8


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sensitivity:
  """When a value is a spike.

  It must lie above the median of the window by `deviations` and by the share
  `least_rise` of it.

  Attributes:
    window_steps: values that say what is usual.
    warm_up_steps: values before the first verdict; until then nothing is a
      spike, and all is taken in.
    deviations: as the median absolute deviation of the window tells them; 1 is
      a standard deviation where values are normal.
    least_rise: 0.1: at least a tenth above the median.
  """

  window_steps: int = 101
  warm_up_steps: int = 50
  deviations: float = 10.0
  least_rise: float = 0.1

  def __post_init__(self):
    """Refuses what finds nothing, or everything."""
    _check_number('window_steps', self.window_steps, 3, kind=int)
    _check_number('warm_up_steps', self.warm_up_steps, 2, kind=int)
    _check_number('deviations', self.deviations, 1.0)
    _check_number('least_rise', self.least_rise, 0.0)
    if self.warm_up_steps > self.window_steps:
      raise ValueError(
          f'warm_up_steps is {self.warm_up_steps} and window_steps is '
          f'{self.window_steps}: expected no more than the window holds. Lower '
          'spikes.Sensitivity.warm_up_steps, or raise window_steps.'
      )


def _check_number(
    name: str, value: Any, least: float, *, kind: type = float
) -> None:
  is_number = isinstance(value, int | float) and not isinstance(value, bool)
  if kind is int:
    is_number = is_number and isinstance(value, int)
  if not is_number or not least <= value < math.inf:
    what = 'a whole number' if kind is int else 'a number'
    raise ValueError(
        f'{name} of Sensitivity is {value!r}: expected {what} of at least '
        f'{least}. Set spikes.Sensitivity.{name} to one, or leave it out.'
    )


# Norms of gradients have long tails: twice the median is no fault yet.
OF_GRADIENTS = Sensitivity(least_rise=2.0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spike:
  """A value far above those before it.

  Attributes:
    value: the value.
    level: what was usual.
    limit: what it should not have exceeded.
  """

  value: float
  level: float
  limit: float


class Detector:
  """Judges one series of values as they come."""

  def __init__(self, sensitivity: Sensitivity):
    """Has seen nothing."""
    self._sensitivity = sensitivity
    self._window: collections.deque[float] = collections.deque(
        maxlen=sensitivity.window_steps
    )
    self._sorted: list[float] = []  # the same
    self._above: list[float] = []  # spikes in a row
    self._quiet = _QUIET_VALUES
    self._level = self._limit = math.inf

  def _clear(self) -> None:
    self._window.clear()
    self._sorted.clear()
    self._level = self._limit = math.inf

  @property
  def limit(self) -> float:
    """A value above it would be a spike; infinite while warming up."""
    return self._limit

  @property
  def level(self) -> float:
    """What is usual; infinite while warming up."""
    return self._level

  def add(self, value: float) -> Spike | None:
    """Takes the next value.

    Returns:
      The spike that begins with it. Those that follow one closely belong to
      it; those that are not finite are somebody else's to tell.
    """
    if not math.isfinite(value):
      return None
    if value <= self._limit:
      self._above.clear()
      self._quiet += 1
      self._take_in(value)
      return None
    begins = self._quiet >= _QUIET_VALUES
    spike = Spike(value=value, level=self._level, limit=self._limit)
    self._quiet = 0
    self._above.append(value)
    if len(self._above) >= self._sensitivity.warm_up_steps:
      # It stays there: this is what is usual from now on.
      self._clear()
      for one in self._above:
        self._take_in(one)
      self._above.clear()
    return spike if begins else None

  def _take_in(self, value: float) -> None:
    if len(self._window) == self._window.maxlen:
      del self._sorted[bisect.bisect_left(self._sorted, self._window[0])]
    self._window.append(value)
    bisect.insort(self._sorted, value)
    if len(self._window) < self._sensitivity.warm_up_steps:
      self._level = self._limit = math.inf
      return
    level = _median(self._sorted)
    spread = _deviation(self._sorted, level)
    self._level = level
    self._limit = level + max(
        self._sensitivity.deviations * _DEVIATION_BY_MAD * spread,
        self._sensitivity.least_rise * abs(level),
    )

  def state(self) -> dict[str, Any]:
    """All it has seen, as JSON can hold it."""
    return {
        'window': list(self._window),
        'above': list(self._above),
        'quiet': self._quiet,
    }

  def load(self, state: Mapping[str, Any]) -> None:
    """Goes on from a `state`, perhaps of another window's length."""
    self._clear()
    for value in state['window']:
      self._take_in(value)
    self._above = list(state['above'])
    self._quiet = state['quiet']


def _median(ordered: list[float]) -> float:
  middle = len(ordered) // 2
  if len(ordered) % 2:
    return ordered[middle]
  return (ordered[middle - 1] + ordered[middle]) / 2


def _deviation(ordered: list[float], level: float) -> float:
  """The median absolute deviation, the upper one of an even number.

  The values nearest to the level lie next to one another, so that the half of
  them that is nearest is found by bisection.
  """
  half = len(ordered) // 2
  first, last = 0, len(ordered) - half - 1
  while first < last:
    middle = (first + last) // 2
    if level - ordered[middle] > ordered[middle + half + 1] - level:
      first = middle + 1
    else:
      last = middle
  return max(level - ordered[first], ordered[first + half] - level)


class Plateau:
  """Tells once when a series no longer falls."""

  def __init__(self, *, steps: int, least_improvement: float):
    """Has seen nothing.

    Args:
      steps: values of which two halves are compared.
      least_improvement: share by which the median of the later half must lie
        below the lowest before it.
    """
    self._half = max(1, steps // 2)
    self._least = least_improvement
    self._values: list[float] = []
    self._lowest: float | None = None
    self._has_told = False

  def add(self, value: float) -> tuple[float, float] | None:
    """Takes the next value; returns (lowest before, now) at a plateau."""
    if math.isfinite(value):
      self._values.append(value)
    if len(self._values) < self._half:
      return None
    now = statistics.median(self._values)
    self._values.clear()
    lowest = self._lowest
    if lowest is None or lowest - now >= self._least * abs(lowest):
      self._lowest = now
      self._has_told = False
      return None
    told, self._has_told = self._has_told, True
    return None if told else (lowest, now)

  def state(self) -> dict[str, Any]:
    """All it has seen, as JSON can hold it."""
    return {
        'values': list(self._values),
        'lowest': self._lowest,
        'has_told': self._has_told,
    }

  def load(self, state: Mapping[str, Any]) -> None:
    """Goes on from a `state`."""
    self._values = list(state['values'])
    self._lowest = state['lowest']
    self._has_told = state['has_told']
