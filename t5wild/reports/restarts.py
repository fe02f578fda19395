# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""How far a run was when it was started again, by its books where it has them.

Records end at the last `stats_period`; the books of time are a second old.
"""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import math

from t5wild.reports import history as history_lib
from t5wild.vitals import time_ledgers


def starts(history: history_lib.History) -> Sequence[history_lib.Start]:
  """The starts of a run, with the furthest step before each."""
  attempts = history.attempts
  # A run that began before there were books has some processes without.
  if len(attempts) < len(history.starts):
    return history.starts
  return [_by_books(start, attempts) for start in history.starts]


def _by_books(
    start: history_lib.Start, attempts: Sequence[time_ledgers.Attempt]
) -> history_lib.Start:
  if start.last_step_before is None:
    return start
  # The newest is the one that starts; one that ended before it had a state
  # knows no step.
  begun = [attempt for attempt in attempts if attempt.start <= start.seconds]
  steps = [attempt.step for attempt in begun[:-1] if attempt.step]
  if not steps:
    return start
  return dataclasses.replace(
      start, last_step_before=max(start.last_step_before, steps[-1])
  )


def step_reached(history: history_lib.History, seconds: float) -> int:
  """Finished updates at a moment, by records and books, whichever knows more.
  """
  steps = [history.step_at(seconds)]
  attempts = history.attempts
  running = [attempt for attempt in attempts if attempt.start <= seconds]
  # Books that go on after the moment tell nothing of it.
  if running and running[-1].end <= seconds and running[-1].step:
    steps.append(running[-1].step)
  return max(steps)


def last_sign_of_life(
    history: history_lib.History, seconds: float
) -> float | None:
  """The last moment before another at which something was written."""
  last, _ = history.last_between(-math.inf, seconds)
  attempts = history.attempts
  moments = [attempt.end for attempt in attempts if attempt.end <= seconds]
  if last is not None:
    moments.append(last)
  return max(moments, default=None)
