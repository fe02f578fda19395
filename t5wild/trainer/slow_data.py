# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Tells of an interval in which the loop waited for data, and for which."""

from collections.abc import Mapping
import logging

from t5wild.trainer import loop
from t5wild.trainer import sinks

_TOLD = 0.1  # share of the time from which it is worth telling
_MOST_NAMED = 3
# Buffers fill before the first batch: no news, where it is soon over.
_FIRST_SECONDS = 10.0


class SlowData:
  """Warns once of each thing that is waited for, and records every interval."""

  def __init__(self):
    """Has warned of nothing yet."""
    self._warned: set[str] = set()
    self._is_first = True

  def record(
      self, step: int, interval: loop.Interval, *, on_loop: float
  ) -> dict[str, tuple[float, str, str]]:
    """What to record of an interval, with the names; nothing of a quick one.

    Args:
      step: the last one of the interval.
      interval: as the loop measured it.
      on_loop: seconds of it outside of evaluation and saves.
    """
    waited = interval.data_wait_seconds
    share = waited / max(on_loop, 1e-9)
    is_start = self._is_first and waited < _FIRST_SECONDS
    self._is_first = False
    if share < _TOLD or is_start:
      return {}
    share = min(share, 1.0)
    words = names_of(interval.data_waits)
    slowest = max(
        interval.data_waits, key=interval.data_waits.__getitem__, default=''
    )
    if slowest not in self._warned:
      self._warned.add(slowest)
      logging.warning(
          'Until step %d %.0f%% of the time went into waiting for data%s',
          step,
          100 * share,
          f': {words}' if words else '',
      )
    return {sinks.DATA_WAIT_SHARE: (share, '', words)}


def names_of(waits: Mapping[str, float]) -> str:
  """What was waited for, longest first, with its part of the wait."""
  total = sum(waits.values())
  if not total:
    return ''
  longest = sorted(waits.items(), key=lambda each: -each[1])[:_MOST_NAMED]
  return '; '.join(
      f'{100 * seconds / total:.0f}% for {what}'
      for what, seconds in longest
      if seconds / total >= 0.01
  )
