# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Where a run's wall time went, over all its restarts.

By the books that each process keeps in its run's directory. For a run that has
none, or has not all of them, the same kinds are added up from its records; what
they do not tell is `other`.
"""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses

import numpy as np

from t5wild import run_dir as run_dir_lib
from t5wild.reports import history as history_lib
from t5wild.vitals import goodput
from t5wild.vitals import goodput_report
from t5wild.vitals import lost_attempts
from t5wild.vitals import stalls

DOWN = goodput_report.DOWN  # between the records of two processes
AGAIN = goodput_report.LOST  # steps that a restart did once more
_LEDGER = r'goodput/(.+)_seconds'
_STEP_KINDS = {
    'train/timing/data_wait_seconds': 'data_wait',
    'train/timing/device_seconds': 'step',
    'train/timing/other_seconds': 'log',
}
_ONCE_KINDS = {
    'train/timing/compile_seconds': 'compile',
    'train/timing/init_or_restore_seconds': 'restore',
    'train/timing/save_blocked_seconds': 'save',
}
_EVALUATE = r'.+/timing/evaluate_seconds'


@dataclasses.dataclass(frozen=True, kw_only=True)
class TimeSpent:
  """The time of a run by kind.

  Attributes:
    seconds: kind -> seconds; the kinds of `vitals.goodput_report`. They add up
      to the wall time.
    is_estimate: whether the books of a process are missing.
    device_seconds: the same times devices; None = their number is not known.
    price_per_device_hour: None = not told.
  """

  seconds: dict[str, float]
  is_estimate: bool
  device_seconds: dict[str, float] | None = None
  price_per_device_hour: float | None = None

  @property
  def total_seconds(self) -> float:
    """Wall time."""
    return sum(self.seconds.values())

  @property
  def productive_share(self) -> float:
    """Share of the wall time that made steps that count."""
    total = self.total_seconds
    productive = sum(self.seconds.get(k, 0.0) for k in goodput.PRODUCTIVE)
    return productive / total if total else 0.0


  @property
  def money(self) -> dict[str, float] | None:
    """Money by kind; None where devices or price are not known."""
    if self.device_seconds is None or self.price_per_device_hour is None:
      return None
    hourly = self.price_per_device_hour / 3600
    return {kind: s * hourly for kind, s in self.device_seconds.items()}


def time_spent(
    history: history_lib.History,
    *,
    num_devices: int | None = None,
    price_per_device_hour: float | None = None,
) -> TimeSpent | None:
  """Adds up the time of all processes; None where no record tells of time.

  Args:
    history: the run.
    num_devices: of the run, where it kept no books; None = not known.
    price_per_device_hour: None = what the run was told, if anything.
  """
  attempts = history.attempts
  # A run that began before there were books has some processes without.
  if attempts and len(attempts) >= len(history.starts):
    events = lost_attempts.read_events(run_dir_lib.RunDir(history.path))
    report = goodput_report.make_report(
        lost_attempts.with_lost(attempts, events),
        stalls=stalls.of_others(events),
        price_per_device_hour=price_per_device_hour,
    )
    return TimeSpent(
        seconds={kind: s for kind, s in report.seconds.items() if s > 0},
        is_estimate=False,
        device_seconds=dict(report.device_seconds),
        price_per_device_hour=report.price_per_device_hour,
    )
  if not history.starts:
    return None
  seconds, is_estimate = _by_records(history)
  return TimeSpent(
      seconds=seconds,
      is_estimate=is_estimate,
      device_seconds=num_devices
      and {kind: s * num_devices for kind, s in seconds.items()},
      price_per_device_hour=price_per_device_hour,
  )


def _by_records(
    history: history_lib.History,
) -> tuple[dict[str, float], bool]:
  """Seconds by kind, and whether a process left no ledger among its records."""
  starts = history.starts
  seconds: dict[str, float] = {}
  is_estimate = False
  edges = [start.seconds for start in starts[1:]]
  for number, start in enumerate(starts):
    since = start.seconds if number else -np.inf
    until = edges[number] if number < len(edges) else np.inf
    booked = _ledger(history, since, until)
    if booked is None:
      is_estimate = True
      booked = _estimate(history, start, since, until)
    for kind, value in booked.items():
      seconds[kind] = seconds.get(kind, 0.0) + value
  _book_restarts(history, seconds)
  return {kind: v for kind, v in seconds.items() if v > 0}, is_estimate


def _between(
    column: history_lib.Column, since: float, until: float
) -> history_lib.Column:
  """Records of one process, in the order they were written."""
  rows = (column.seconds >= since - 1e-3) & (column.seconds < until - 1e-3)
  return dataclasses.replace(
      column,
      steps=column.steps[rows],
      seconds=column.seconds[rows],
      values=column.values[rows],
  )


def _ledger(
    history: history_lib.History, since: float, until: float
) -> dict[str, float] | None:
  """What the process wrote at its end; None if it did not come to it."""
  booked = {}
  for name in history.matching(_LEDGER):
    column = _between(history.columns[name], since, until)
    if len(column.values):
      kind = name.removeprefix('goodput/').removesuffix('_seconds')
      booked[kind] = float(column.values[-1])
  return booked or None


def _estimate(
    history: history_lib.History,
    start: history_lib.Start,
    since: float,
    until: float,
) -> dict[str, float]:
  booked = {}
  for name, kind in _STEP_KINDS.items():
    if name in history.columns:
      column = _between(history.columns[name], since, until)
      counts = np.diff(column.steps, prepend=start.step)
      booked[kind] = float(np.nansum(np.maximum(counts, 0) * column.values))
  for name, kind in _ONCE_KINDS.items():
    if name in history.columns:
      column = _between(history.columns[name], since, until)
      booked[kind] = float(np.nansum(column.values))
  for name in history.matching(_EVALUATE):
    column = _between(history.columns[name], since, until)
    booked['evaluate'] = booked.get('evaluate', 0.0) + float(
        np.nansum(column.values)
    )
  stamps = [_between(c, since, until).seconds for c in history.clocks]
  last = max((float(s.max()) for s in stamps if len(s)), default=start.seconds)
  before = booked.get('compile', 0.0) + booked.get('restore', 0.0)
  wall = last - start.seconds + before
  booked[goodput.OTHER] = max(0.0, wall - sum(booked.values()))
  return booked


def _book_restarts(
    history: history_lib.History, seconds: dict[str, float]
) -> None:
  """Adds the time between processes; moves steps that did not count."""
  step_seconds = history.series('train/timing/step_seconds')
  usual = (
      float(np.nanmedian(step_seconds.values))
      if step_seconds is not None
      else 0.0
  )
  for start in history.starts[1:]:
    if start.last_seconds_before is None:
      continue
    # Its first record comes after compiling and restoring, which are booked.
    before = _before_first_record(history, start)
    gap = start.seconds - start.last_seconds_before - before
    seconds[DOWN] = seconds.get(DOWN, 0.0) + max(0.0, gap)
    lost = min(start.num_steps_again * usual, seconds.get('step', 0.0))
    seconds[AGAIN] = seconds.get(AGAIN, 0.0) + lost
    seconds['step'] = seconds.get('step', 0.0) - lost


def _before_first_record(
    history: history_lib.History, start: history_lib.Start
) -> float:
  total = 0.0
  names: Sequence[str] = (
      'train/timing/compile_seconds',
      'train/timing/init_or_restore_seconds',
  )
  for name in names:
    column = history.columns.get(name)
    if column is not None:
      rows = np.abs(column.seconds - start.seconds) < 1e-3
      total += float(np.nansum(column.values[rows]))
  return total
