# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of a run that differ from the rest: spikes of a curve, silences."""

from __future__ import annotations

import dataclasses

import numpy as np

from t5wild.reports import history as history_lib

_WINDOW = 31  # records that a spike is held against
_LEAST_BEFORE = 8
_DEVIATIONS = 8.0  # of the median absolute deviation, as a standard deviation's
_LEAST_JUMP = 0.05  # relative
_MAD_TO_DEVIATION = 1.4826
_SILENCE_FACTOR = 10
# Records of how long something took that is no step.
_TOLD = (
    r'(.+/timing/evaluate_seconds|train/timing/(compile|init_or_restore|'
    r'save_blocked)_seconds)'
)
_LEAST_SILENCE_SECONDS = 60.0
_MAX_SILENCES = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spike:
  """Values far above those before them, close to one another.

  Attributes:
    first_step: where it begins.
    last_step: the last value that is far above.
    peak_step: where it is highest.
    peak_row: the row of that.
    peak: the value there.
    level: the median before it.
  """

  first_step: int
  last_step: int
  peak_step: int
  peak_row: int
  peak: float
  level: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Silence:
  """A time without records, of a process that went on."""

  step: int
  since: float
  seconds: float
  usual_seconds: float


def rolling_median(values: np.ndarray, *, window: int) -> np.ndarray:
  """The median of each `window` values, [len(values) - window + 1] at least 1.
  """
  window = min(window, len(values))
  if not window:
    return values
  return np.median(
      np.lib.stride_tricks.sliding_window_view(values, window), axis=1
  )


def spikes(steps: np.ndarray, values: np.ndarray) -> list[Spike]:
  """The spikes of a curve, the highest above its level first.

  A value is one of a spike if it lies above the median of the values before it
  by 8 deviations, as the median absolute deviation tells them, and by 5 %.

  Args:
    steps: increasing, [points].
    values: [points]; what is not finite is left out.
  """
  rows = np.flatnonzero(np.isfinite(values))
  if len(rows) <= _LEAST_BEFORE:
    return []
  finite = values[rows]
  level, spread = before(finite, window=_WINDOW)
  excess = finite - level
  is_high = (excess > _DEVIATIONS * spread) & (
      excess > _LEAST_JUMP * np.abs(level)
  )
  is_high[:_LEAST_BEFORE] = False
  found = []
  for first, last in runs(np.flatnonzero(is_high), apart=_LEAST_BEFORE):
    peak = first + int(np.argmax(finite[first : last + 1]))
    found.append(
        Spike(
            first_step=int(steps[rows[first]]),
            last_step=int(steps[rows[last]]),
            peak_step=int(steps[rows[peak]]),
            peak_row=int(rows[peak]),
            peak=float(finite[peak]),
            level=float(level[first]),
        )
    )
  return sorted(found, key=lambda s: s.level - s.peak)


def silences(history: history_lib.History) -> list[Silence]:
  """The longest times without records; those before a restart are none.

  Held against the run's usual ones: ten times their 90th percentile, and a
  minute.
  """
  if not history.clocks:  # nothing but the records of a start
    return []
  stamps = np.concatenate([c.seconds for c in history.clocks])
  steps = np.concatenate([c.steps for c in history.clocks])
  order = np.argsort(stamps, kind='stable')
  stamps, steps = stamps[order], steps[order]
  gaps = np.diff(stamps)
  gaps = gaps - _accounted_for(history, stamps)
  real = gaps[gaps > 0]
  if len(real) < 10:
    return []
  usual = float(np.quantile(real, 0.9))
  least = max(_LEAST_SILENCE_SECONDS, _SILENCE_FACTOR * usual)
  restarts = [start.seconds for start in history.starts]
  found = [
      Silence(
          step=int(steps[row]),
          since=float(stamps[row]),
          seconds=float(gaps[row]),
          usual_seconds=usual,
      )
      for row in np.flatnonzero(gaps > least)
      if not any(stamps[row] < at <= stamps[row + 1] for at in restarts)
  ]
  return sorted(found, key=lambda s: -s.seconds)[:_MAX_SILENCES]


def _accounted_for(
    history: history_lib.History, stamps: np.ndarray
) -> np.ndarray:
  """Seconds of each gap that an evaluation, save or start tells as its own."""
  told = np.zeros(len(stamps) - 1)
  for name in history.matching(_TOLD):
    column = history.columns[name]
    # A record is written at the end of what took the time.
    row = np.searchsorted(stamps, column.seconds, side='left') - 1
    inside = (row >= 0) & (row < len(told))
    np.add.at(told, row[inside], np.nan_to_num(column.values[inside]))
  return told


def before(
    values: np.ndarray, *, window: int
) -> tuple[np.ndarray, np.ndarray]:
  """Median and spread of up to `window` values before each one."""
  level = np.full(len(values), np.nan)
  spread = np.full(len(values), np.nan)
  for row in range(1, min(window, len(values))):
    level[[row]], spread[[row]] = _level_and_spread(values[None, :row])
  if len(values) > window:
    windows = np.lib.stride_tricks.sliding_window_view(values[:-1], window)
    level[window:], spread[window:] = _level_and_spread(windows)
  return level, spread


def _level_and_spread(windows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  level = np.median(windows, axis=1)
  deviation = np.abs(windows - level[:, None])
  return level, _MAD_TO_DEVIATION * np.median(deviation, axis=1)


def runs(rows: np.ndarray, *, apart: int) -> list[tuple[int, int]]:
  """First and last of rows that lie within `apart` of one another."""
  if not len(rows):
    return []
  cuts = np.flatnonzero(np.diff(rows) > apart)
  firsts = rows[np.concatenate(([0], cuts + 1))]
  lasts = rows[np.concatenate((cuts, [len(rows) - 1]))]
  return list(zip(firsts.tolist(), lasts.tolist(), strict=True))
