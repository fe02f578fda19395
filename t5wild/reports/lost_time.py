# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Findings of time lost while a process ran: stalls, slow parts, waits."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from t5wild.reports import data_waits
from t5wild.reports import episodes
from t5wild.reports import events as events_lib
from t5wild.reports import finding as finding_lib
from t5wild.reports import history as history_lib
from t5wild.reports import judged_curves
from t5wild.reports import slow_parts

_SLOW = 0.7  # of the usual throughput
_WAIT = 0.1  # share of a step that waiting for data may take unnoticed
_LEAST_RECORDS = 5  # that a share is judged by
_MOST = 0.5  # of a stall, or of what a slow step takes longer
_STEP = 'train/timing/step_seconds'
_WAITING = 'train/timing/data_wait_seconds'
_PARTS = {
    _WAITING: 'waiting for data',
    'train/timing/device_seconds': 'the device (a step, or compiling one)',
    'train/timing/other_seconds': 'writing and callbacks',
}
_HANG = 'watchdog/hang'
# What is no silence, since a record tells of it, but may take far too long.
_ONCE = {
    'train/timing/save_blocked_seconds': 'A save held up training',
    '.+/timing/evaluate_seconds': 'An evaluation took',
}
_FAR_TOO_LONG = 10  # times the median of the others
_LEAST_OTHERS = 3
_LEAST_SECONDS = 60.0
_LEAST_COST = 0.01  # of the wall time, that waiting all along is told for


def find(history: history_lib.History) -> list[finding_lib.Finding]:
  """Each loss once, with its cause and its share of the wall time."""
  stalls = episodes.silences(history)
  slow = _slow_part(history)
  return [
      *(_stall(history, gap) for gap in stalls),
      *_long_ones(history),
      *([_slow(history, *slow)] if slow else []),
      *_waits(history, stalls, slow),
  ]


def _cost(history: history_lib.History, seconds: float) -> tuple[float, str]:
  """A share of the wall time, and in words."""
  share = min(1.0, seconds / finding_lib.wall_seconds(history))
  told = f'{share:.0%}' if share >= 0.01 else 'less than 1%'
  return share, f'{told} of the wall time'


def _stall(
    history: history_lib.History, gap: episodes.Silence
) -> finding_lib.Finding:
  share, words = _cost(history, gap.seconds)
  text = (
      f'Nothing was recorded for {finding_lib.duration(gap.seconds)} after '
      f'step {gap.step:,}, {words}'
  )
  usual = finding_lib.duration(gap.usual_seconds)
  usual = f'9 of 10 records come within {usual}'
  level = finding_lib.level_of_cost(share)
  return finding_lib.Finding(
      level='warning' if level == 'note' else level,
      text=f'{text} ({usual}). {_cause(history, gap)}',
      step=gap.step,
      events=[
          events_lib.Event(
              kind='gap', step=gap.step, seconds=gap.since, text=text
          )
      ],
      weight=share,
      chart='step_seconds',
      seconds=gap.since,
      label='stands still',
  )


def _cause(history: history_lib.History, gap: episodes.Silence) -> str:
  """What the process did meanwhile, by the first records after it."""
  until = gap.since + gap.seconds
  if any(
      each.name == _HANG and gap.since <= each.seconds <= until + 1
      for each in history.events
  ):
    return 'The watchdog saw the process hang.'
  spent = {
      words: seconds
      for name, words in _PARTS.items()
      if (seconds := _seconds_of(history, name, gap)) is not None
  }
  if not spent or max(spent.values()) < _MOST * gap.seconds:
    return 'No record tells what for.'
  words = max(spent, key=spent.get)
  text = (
      f'{finding_lib.duration(spent[words])} of it are booked as {words}'
  )
  if words == _PARTS[_WAITING]:
    step = _next_step(history, gap)
    reason = data_waits.reason(history, first_step=step, last_step=step)
    text += f' ({reason})' if reason else ''
  return (
      f'{text}. If somebody stopped the process meanwhile (SIGSTOP, a machine '
      'asleep), that is in these seconds too.'
  )


def _next_row(column: history_lib.Column, gap: episodes.Silence) -> int | None:
  """The row that was written first after a gap."""
  rows = np.flatnonzero(column.seconds > gap.since + 1e-3)
  return int(rows[np.argmin(column.seconds[rows])]) if len(rows) else None


def _next_step(history: history_lib.History, gap: episodes.Silence) -> int:
  column = history.columns[_WAITING]
  return int(column.steps[_next_row(column, gap)])


def _seconds_of(
    history: history_lib.History, name: str, gap: episodes.Silence
) -> float | None:
  """Seconds of a part of a step, over the steps of the record after a gap."""
  column = history.columns.get(name)
  row = None if column is None else _next_row(column, gap)
  if not row:
    return None
  steps = int(column.steps[row] - column.steps[row - 1])
  return float(column.values[row]) * max(1, steps)


def _long_ones(history: history_lib.History) -> list[finding_lib.Finding]:
  """Saves and evaluations that took far longer than the others of the run."""
  findings = []
  for pattern, words in _ONCE.items():
    for name in history.matching(pattern):
      column = history.columns[name]
      row = int(np.argmax(np.nan_to_num(column.values)))
      others = np.delete(column.values, row)
      longest = float(column.values[row])
      if len(others) < _LEAST_OTHERS or longest < _LEAST_SECONDS:
        continue
      usual = float(np.nanmedian(others))
      if longest < _FAR_TOO_LONG * usual:
        continue
      share, cost = _cost(history, longest)
      level = finding_lib.level_of_cost(share)
      findings.append(
          finding_lib.Finding(
              level='warning' if level == 'note' else level,
              text=f'{words} {finding_lib.duration(longest)} at step '
              f'{column.steps[row]:,}, {cost} (usually '
              f'{finding_lib.duration(usual)}).',
              step=int(column.steps[row]),
              weight=share,
              chart='timeline',
              seconds=float(column.seconds[row]),
              label='took long',
          )
      )
  return findings


def _slow_part(
    history: history_lib.History,
) -> tuple[history_lib.Column, slow_parts.SlowPart] | None:
  curves = judged_curves.of_kind(history, 'throughput')
  if not curves:
    return None
  part = slow_parts.find(curves[0].values, share=_SLOW)
  return None if part is None else (curves[0], part)


def _slow(
    history: history_lib.History,
    column: history_lib.Column,
    part: slow_parts.SlowPart,
) -> finding_lib.Finding:
  first, last = int(column.steps[part.first]), int(column.steps[part.last])
  usual = 'its median'
  if part.is_held_against_before:
    usual = 'the median before it'
  to = f'to the end ({last:,})' if part.is_to_the_end else f'to {last:,}'
  text = (
      f'Throughput falls to {part.share:.0%} of {usual} from step {first:,} '
      f'{to}'
  )
  means = _means(history, first, last)
  lost = _lost_seconds(history, part, first, last)
  share, cost = _cost(history, lost)
  level = finding_lib.level_of_cost(share)
  return finding_lib.Finding(
      level='warning' if level == 'note' and part.share < _MOST else level,
      text=f'{text}{_why(history, means, first, last)} Beyond the '
      f'usual pace it cost {finding_lib.duration(lost)}, {cost}.',
      step=first,
      events=[judged_curves.event('slow', column, part.first, text)],
      weight=share,
      chart='throughput',
      label='slow from here',
  )


def _means(
    history: history_lib.History, first: int, last: int
) -> Mapping[str, tuple[float, float]]:
  """Mean seconds of each part of a step: in a range of steps, and outside."""
  found = {}
  for name in (_STEP, *_PARTS):
    part = history.series(name)
    if part is None:
      continue
    inside = (part.steps >= first) & (part.steps <= last)
    if inside.any() and not inside.all():
      counts = _counts(part)
      found[name] = tuple(
          float(np.average(part.values[rows], weights=counts[rows]))
          for rows in (inside, ~inside)
      )
  return found


def _why(
    history: history_lib.History,
    means: Mapping[str, tuple[float, float]],
    first: int,
    last: int,
) -> str:
  more = {name: means[name][0] - means[name][1] for name in _PARTS
          if name in means}  # fmt: skip
  if not more or max(more.values()) <= 0:
    return '.'
  name = max(more, key=more.get)
  if name != _WAITING or _STEP not in means:
    return f'; what takes longer is {_PARTS[name]}.'
  inside, outside = (
      means[name][side] / max(means[_STEP][side], 1e-12) for side in (0, 1)
  )
  reason = data_waits.reason(history, first_step=first, last_step=last)
  reason = f' ({reason})' if reason else ''
  return (
      f': there {inside:.0%} of a step is waiting for data{reason}, elsewhere '
      f'{outside:.0%}.'
  )


def _lost_seconds(
    history: history_lib.History,
    part: slow_parts.SlowPart,
    first: int,
    last: int,
) -> float:
  """What the slow steps took beyond the usual."""
  steps = history.series(_STEP)
  if steps is None:
    clock = judged_curves.of_kind(history, 'throughput')[0]
    took = clock.seconds[part.last] - clock.seconds[max(0, part.first - 1)]
    return max(0.0, float(took) * (1 - part.share))
  inside = (steps.steps >= first) & (steps.steps <= last)
  took = float(np.sum(steps.values[inside] * _counts(steps)[inside]))
  return max(0.0, took * (1 - part.share))


def _counts(column: history_lib.Column) -> np.ndarray:
  """Steps that each record is the mean of."""
  return np.diff(column.steps, prepend=0)


def _waits(
    history: history_lib.History,
    stalls: list[episodes.Silence],
    slow: tuple[history_lib.Column, slow_parts.SlowPart] | None,
) -> list[finding_lib.Finding]:
  """Waiting for data all along, beside stalls and slow parts that are told."""
  wait, step = history.series(_WAITING), history.series(_STEP)
  if wait is None or step is None or len(wait.values) != len(step.values):
    return []
  rest = np.isfinite(wait.values) & np.isfinite(step.values)
  for gap in stalls:
    row = _next_row(wait, gap)
    if row is not None:
      rest[row] = False
  if slow:
    column, part = slow
    ends = column.steps[part.first], column.steps[part.last]
    rest[(wait.steps >= ends[0]) & (wait.steps <= ends[1])] = False
  if rest.sum() < _LEAST_RECORDS:
    return []
  counts = _counts(wait)[rest]
  waited = float(np.sum(wait.values[rest] * counts))
  share = waited / max(float(np.sum(step.values[rest] * counts)), 1e-12)
  if share < _WAIT:
    return []
  # A record is of the steps since the one before it.
  first = int(wait.steps[rest][0] - counts[0]) + 1
  last = int(wait.steps[rest][-1])
  reason = data_waits.reason(history, first_step=first, last_step=last)
  reason = f' ({reason})' if reason else ''
  cost, words = _cost(history, waited)
  level = finding_lib.level_of_cost(cost)
  if waited < _LEAST_SECONDS:
    # A trial run of seconds has no time to lose, whatever the share.
    if level == 'note':
      return []
    level = 'note'
  elif cost < _LEAST_COST:
    return []
  apart = 'Apart from the steps told above, f' if stalls or slow else 'F'
  return [
      finding_lib.Finding(
          level=level,
          text=f'{apart}rom step {first:,} to {last:,}, {share:.0%} of a '
          f'step is waiting for data{reason}. It cost '
          f'{finding_lib.duration(waited)}, {words}.',
          weight=cost,
      )
  ]
