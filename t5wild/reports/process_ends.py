# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Findings of processes that ended as they should not, and of restarts."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import re

from t5wild.reports import events as events_lib
from t5wild.reports import finding as finding_lib
from t5wild.reports import history as history_lib
from t5wild.reports import one_fault
from t5wild.reports import restarts as restarts_lib

_SIGNAL = re.compile(r'\bSIG[A-Z]+\b')
_EXIT = 'a process was killed'
# What a mark's one or two words leave out.
_LABEL = re.compile(r'^(a process (was )?|the run ended with an )')
_MOST_CHARACTERS = 400  # of what an error says


@dataclasses.dataclass(frozen=True, kw_only=True)
class _End:
  """An end, and the start that came after it, if one did."""

  name: str
  said: str
  event: events_lib.Event
  seen_after: float | None
  start: history_lib.Start | None


def find(history: history_lib.History) -> list[finding_lib.Finding]:
  """A finding for each kind of fault, and one for the restarts beside them."""
  starts = restarts_lib.starts(history)
  by_name: dict[str, list[_End]] = {}
  records = one_fault.with_own_words(history.events)
  for event in events_lib.read_recorded(history, records):
    if event.kind == 'fault':
      end = _end(history, starts, event)
      by_name.setdefault(end.name, []).append(end)
  findings = [_finding(history, ends) for ends in by_name.values()]
  explained = [e.start for ends in by_name.values() for e in ends if e.start]
  others = [start for start in starts[1:] if start not in explained]
  return findings + _restarts(history, others)


def _end(
    history: history_lib.History,
    starts: Sequence[history_lib.Start],
    event: events_lib.Event,
) -> _End:
  name, said = event.text.split(': ', 1)
  if not event.is_of_supervisor:
    return _End(name=name, said=said, event=event, seen_after=None, start=None)
  later = [start for start in starts[1:] if start.seconds > event.seconds]
  signal = _SIGNAL.search(said)
  if name == _EXIT and signal:
    name, said = f'{name} by {signal.group()}', ''
  return _End(
      name=name,
      said=said,
      event=event,
      seen_after=_seen_after(history, event),
      start=later[0] if later else None,
  )


def _seen_after(
    history: history_lib.History, event: events_lib.Event
) -> float | None:
  """Seconds from the last sign of life to when the supervisor saw the end."""
  seen = [
      each.seconds
      for each in history.events
      if each.name == one_fault.DETECTED
      and 0 <= event.seconds - each.seconds < one_fault.SOON_SECONDS
  ]
  alive = restarts_lib.last_sign_of_life(history, event.seconds)
  if alive is None:
    return None
  return max(0.0, (seen[-1] if seen else event.seconds) - alive)


def _finding(
    history: history_lib.History, ends: Sequence[_End]
) -> finding_lib.Finding:
  last = ends[-1]
  text = f'{last.name[:1].upper()}{last.name[1:]}'
  if len(ends) > 1:
    text += f', {finding_lib.times(len(ends))}, the last time'
  text += f' at step {last.event.step:,}'
  if last.event.is_of_supervisor:
    text += ' or later'
  if last.seen_after is not None:
    after = finding_lib.duration(last.seen_after)
    text += f', seen {after} after its last sign of life'
  if last.said:
    text += f': {_shortened(last.said)}'
  starts = [end.start for end in ends if end.start]
  if starts:
    text = f'{text.rstrip(".")}. {_resumed(history, starts)}'
  elif not last.said:
    text += '.'
  cost = _cost(history, starts)
  is_over = last.event.is_of_supervisor and last.start is None
  return finding_lib.Finding(
      level='bad',
      text=text,
      step=last.event.step,
      weight=finding_lib.SURE if is_over or not starts else cost,
      chart='timeline',
      seconds=last.event.seconds,
      label=_LABEL.sub('', last.name),
  )


def _shortened(said: str) -> str:
  said = ' '.join(said.split())
  return f'{said[:_MOST_CHARACTERS]} ...' if said[_MOST_CHARACTERS:] else said


def _resumed(
    history: history_lib.History, starts: Sequence[history_lib.Start]
) -> str:
  again = sum(start.num_steps_again for start in starts)
  return (
      f'The run was resumed from the checkpoint of step {_steps(starts)}; '
      f'{_done_twice(again)}{_down(starts)}.{_why_older(history, starts[-1])}'
  )


def _why_older(
    history: history_lib.History, start: history_lib.Start
) -> str:
  """Why no newer checkpoint was taken, as far as it is on record."""
  since = start.last_seconds_before
  if since is None:
    return ''
  told = one_fault.why_older(
      history.events, since=since, until=start.seconds
  )
  if told:
    return f' Of checkpoints it told: {_shortened(told)}.'
  saved = history.columns.get('train/checkpoint/saved')
  if saved is None:
    return ''
  newest = max(saved.steps[saved.seconds < start.seconds].tolist(), default=0)
  if newest and newest == start.step:
    return ' It was the newest that was whole.'
  if newest > start.step:
    return (
        f' That of step {newest:,} was whole once, too; `t5wild checkpoints '
        'list` tells how it is now.'
    )
  return ''


def _down(starts: Sequence[history_lib.Start]) -> str:
  """How long it took until the run trained again."""
  seconds = sum(
      start.seconds - start.last_seconds_before
      for start in starts
      if start.last_seconds_before is not None
  )
  if not seconds:
    return ''
  return (
      f', and {finding_lib.duration(seconds)} passed until training could go on'
  )


def _restarts(
    history: history_lib.History, starts: Sequence[history_lib.Start]
) -> list[finding_lib.Finding]:
  if not starts:
    return []
  again = sum(start.num_steps_again for start in starts)
  return [
      finding_lib.Finding(
          level='warning' if again else 'note',
          text='The run was started again '
          f'{finding_lib.times(len(starts))}, from step {_steps(starts)}; '
          f'{_done_twice(again)}.{_why_older(history, starts[-1])}',
          step=starts[0].step,
          weight=_cost(history, starts),
          chart='timeline',
          seconds=starts[0].seconds,
          label='restart',
      )
  ]


def _steps(starts: Sequence[history_lib.Start]) -> str:
  steps = ', '.join(f'{start.step:,}' for start in starts[:5])
  return steps + (f' and {len(starts) - 5} more' if len(starts) > 5 else '')


def _done_twice(again: int) -> str:
  were = 'was' if again == 1 else 'were'
  return f'{finding_lib.count(again, "update")} {were} done twice'


def _cost(
    history: history_lib.History, starts: Sequence[history_lib.Start]
) -> float:
  """Share of the wall time from the last records to those after a restart."""
  lost = sum(
      start.seconds - start.last_seconds_before
      for start in starts
      if start.last_seconds_before is not None
  )
  return min(1.0, lost / finding_lib.wall_seconds(history))
