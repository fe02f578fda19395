# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The clock of a run's records: seconds since 1970 that never run back.

A machine's clock is set while a run goes on (by NTP, at a boot, on another
host). Records that were dated by it said that a run which was done went on at
an earlier step, that steps which were made twice were not, and booked hours in
which nothing happened. So the date is asked for once, when a process begins,
and counted on from there; and a run that is resumed where the clock is behind
its newest record goes on from that.
"""

from collections.abc import Iterable
import contextlib
import logging
import math
import os
import time

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import records

# Counts while the machine is suspended, and no change of the date does.
STEADY = getattr(time, 'CLOCK_BOOTTIME', time.CLOCK_MONOTONIC)
_TAIL_BYTES = 1 << 16
_WORTH_A_LINE_SECONDS = 60.0


def steady() -> float:
  """Seconds since this machine was started; for differences."""
  return time.clock_gettime(STEADY)


class RunClock:
  """Dates of one process."""

  def __init__(self):
    """Asks the machine for the date."""
    self.ahead = 0.0
    self.start()

  def start(self, *, ahead: float | None = None) -> None:
    """Asks for the date anew.

    Args:
      ahead: of `steady`, where another process of this machine was asked
        before; None: the machine is.
    """
    self.ahead = time.time() - steady() if ahead is None else ahead

  def now(self) -> float:
    """Seconds since 1970."""
    return steady() + self.ahead

  def go_on_after(self, then: float) -> float:
    """Puts the clock forward to a date; returns how far it was behind."""
    behind = max(0.0, then - self.now())
    self.ahead += behind
    return behind


_clock = RunClock()
now = _clock.now


def ahead() -> float:
  """Of `steady`; for `start` in another process of this machine."""
  return _clock.ahead


def start(
    run_dir: run_dir_lib.RunDir, *, ahead: float | None = None
) -> float:
  """Has this process date its records from now on after those of a run.

  Args:
    run_dir: of the run; in a bucket nothing is read.
    ahead: see `RunClock.start`.

  Returns:
    Seconds that this machine's clock is behind the run's newest record; 0
    where it is not.
  """
  _clock.start(ahead=ahead)
  if run_dir.is_bucket:
    return 0.0
  behind = _clock.go_on_after(
      _newest((run_dir.metrics_jsonl, run_dir.events_jsonl))
  )
  if behind > _WORTH_A_LINE_SECONDS:
    logging.warning(
        "This machine's clock is %.0f s behind the newest record of %s: what "
        'is recorded from here on is dated as if it were not, so that it comes '
        'after what is there.', behind, run_dir.path,
    )  # fmt: skip
  return behind


def _newest(paths: Iterable[str]) -> float:
  """The date of the newest record at the ends of some files; 0 without."""
  found = [0.0]
  for path in paths:
    with contextlib.suppress(OSError), open(path, 'rb') as file:
      file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
      lines = file.read().decode('utf-8', 'replace').splitlines()
      told = filter(None, map(records.from_line, lines))
      found += [each.seconds for each in told if math.isfinite(each.seconds)]
  return max(found)
