# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""One thing that stands out in a run, and how numbers are said in it."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses

from t5wild.reports import events as events_lib
from t5wild.reports import history as history_lib
from t5wild.reports import time_spent as time_spent_lib

LEVELS = ('bad', 'warning', 'note')
SURE = 1.0  # weight of what is a fault beyond doubt
LIKELY = 0.5
# Of the wall time: what costs less is a note, what costs more is bad.
_LITTLE = 0.05
_MUCH = 0.2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
  """One thing that a person should know.

  Attributes:
    level: 'bad', 'warning' or 'note'.
    text: one sentence or two.
    step: where to look; None = no step in particular.
    events: what the timeline shows of it.
    weight: among findings of a level, the share of the wall time that it cost,
      or how surely it is a fault: 0 to 1.
    chart: key of the panel that shows it, or 'timeline'; None = none.
    seconds: wall clock of it; None = when `step` was passed (for the last
      time, if it was passed twice).
    label: one or two words beside its mark.
  """

  level: str
  text: str
  step: int | None = None
  events: Sequence[events_lib.Event] = ()
  weight: float = 0.0
  chart: str | None = None
  seconds: float | None = None
  label: str = ''


def in_order(found: Sequence[Finding]) -> list[Finding]:
  """The worst first, then what weighs most, then by step."""
  return sorted(
      found, key=lambda f: (LEVELS.index(f.level), -f.weight, f.step or 0)
  )


def level_of_cost(share: float) -> str:
  """How grave it is to lose a share of the wall time."""
  if share < _LITTLE:
    return 'note'
  return 'bad' if share >= _MUCH else 'warning'


def wall_seconds(history: history_lib.History) -> float:
  """Wall time of the run, as its table of times has it."""
  spent = time_spent_lib.time_spent(history)
  span = history.last_seconds - history.first_seconds
  return max(spent.total_seconds if spent is not None else 0.0, span, 1e-9)


def count(number: int, noun: str) -> str:
  """`1 update`, `2,000 updates`."""
  return f'{number:,} {noun}' + ('' if number == 1 else 's')


def times(number: int) -> str:
  """`once`, `2 times`."""
  return 'once' if number == 1 else f'{number} times'


def duration(seconds: float) -> str:
  """Seconds as a person says them: `3.2 s`, `4 min 10 s`, `5 h 12 min`."""
  if seconds < 60:
    return f'{seconds:.3g} s'
  minutes, rest = divmod(round(seconds), 60)
  if minutes < 60:
    return f'{minutes} min {rest} s' if rest else f'{minutes} min'
  hours, minutes = divmod(minutes, 60)
  if hours < 48:
    return f'{hours} h {minutes} min'
  days, hours = divmod(hours, 24)
  return f'{days} d {hours} h'
