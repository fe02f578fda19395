# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A run as it is now, drawn with rich."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
from typing import Any

import numpy as np

from t5wild.reports import contents as contents_lib
from t5wild.reports import events as events_lib
from t5wild.reports import findings as findings_lib
from t5wild.reports import history as history_lib
from t5wild.reports import panels
from t5wild.reports import run_texts
from t5wild.reports import sparkline
from t5wild.vitals import heartbeats

_CURVES = 9  # at most this many rows
_EVENTS = 5
_FINDINGS = 4
_RECENT = 50  # records that the time left follows from
_SILENT_SECONDS = 30.0
_KEYS = ('loss', 'held_out', 'gradient_norm', 'learning_rate', 'throughput',
         'mfu', 'step_seconds')  # fmt: skip
_LOWEST_IS_WORST = ('held_out', 'throughput', 'mfu')
_COLOURS = {'bad': 'bold red', 'warning': 'yellow', 'note': 'dim'}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Now:
  """What the view shows.

  Attributes:
    history: the run; None = nothing is recorded yet.
    texts: None likewise.
    findings: what stands out.
    signs: signs of life of all processes.
    name: of the run.
    seconds: wall clock time.
  """

  history: history_lib.History | None
  texts: run_texts.Texts | None
  findings: Sequence[findings_lib.Finding]
  signs: Sequence[heartbeats.Heartbeat]
  name: str
  seconds: float


def view(now: Now, *, width: int) -> Any:
  """The whole view, for a terminal `width` characters wide."""
  from rich import console

  return console.Group(*_parts(now, width))


def seconds_left(
    history: history_lib.History, total_steps: int | None
) -> float | None:
  """Time until the last step at the recent pace, with all that interrupts it.

  None where the end or the pace is not known.
  """
  longest = max(history.clocks, key=lambda c: len(c.steps), default=None)
  if total_steps is None or longest is None:
    return None
  steps, seconds = longest.steps[-_RECENT:], longest.seconds[-_RECENT:]
  # Of the newest process only: it may have begun at an earlier step.
  back = np.flatnonzero(np.diff(steps) <= 0)
  if len(back):
    steps, seconds = steps[back[-1] + 1 :], seconds[back[-1] + 1 :]
  made = int(steps[-1] - steps[0]) if len(steps) else 0
  if made <= 0:
    return None
  pace = float(seconds[-1] - seconds[0]) / made
  return max(0, total_steps - history.last_step) * pace


def slowest_process(signs: Sequence[heartbeats.Heartbeat]) -> str:
  """The process that the others wait for, or whose steps take longest."""
  timed = [s for s in signs if s.median_step_seconds is not None]
  if not timed:
    return ''
  slowest = max(timed, key=lambda s: s.median_step_seconds)
  usual = float(np.median([s.median_step_seconds for s in timed]))
  return (
      f'process {slowest.process} on {slowest.host}, '
      f'{slowest.median_step_seconds:.3g} s a step (median {usual:.3g} s)'
  )


def _parts(now: Now, width: int) -> list[Any]:
  from rich import text

  parts: list[Any] = [text.Text(now.name, style='bold')]
  if now.history is None:
    told = 'nothing is recorded yet'
    if step := _signed_step(now):
      told += f'; step {step:,}'
    parts.append(text.Text(told))
  else:
    parts += _progress(now, width)
    parts.append(_curves(now.history, width))
  parts += _processes(now)
  parts += _judged(now)
  parts += _events(now)
  return parts


def _progress(now: Now, width: int) -> list[Any]:
  from rich import progress_bar
  from rich import table
  from rich import text

  history, texts = now.history, now.texts
  is_running = contents_lib.is_alive(history, texts, now=now.seconds)
  step = history.last_step
  if is_running:
    step = max(step, _signed_step(now))
  state = contents_lib.state_of(
      history, texts, is_running=is_running, now=now.seconds, step=step
  )
  left = seconds_left(history, texts.total_steps) if is_running else None
  if left is not None:
    state += f', {findings_lib.duration(left)} left'
  style = 'green' if is_running else ''
  if state.startswith('broken'):
    style = 'bold red'
  parts: list[Any] = [text.Text(state, style=style)]
  if texts.total_steps:
    bar = table.Table.grid()  # which gives it a line of its own
    bar.add_row(
        progress_bar.ProgressBar(
            total=texts.total_steps,
            completed=min(step, texts.total_steps),
            width=min(width - 1, 80),
        )
    )
    parts.append(bar)
  return parts


def _curves(history: history_lib.History, width: int) -> Any:
  from rich import table

  grid = table.Table(box=None, padding=(0, 1, 0, 0), show_header=False)
  grid.add_column(no_wrap=True, overflow='ellipsis', max_width=width // 3)
  grid.add_column(justify='right', no_wrap=True)
  grid.add_column(no_wrap=True)
  room = max(8, width - width // 3 - 26)
  rows = 0
  for key in _KEYS:
    kind = next(kind for kind in panels.KINDS if kind.key == key)
    for name in panels.chosen_names(history, kind)[:2]:
      if rows < _CURVES:
        grid.add_row(
            *_row(history, key, name, label_room=width // 3, room=room)
        )
        rows += 1
  return grid


def _row(
    history: history_lib.History,
    key: str,
    name: str,
    *,
    label_room: int,
    room: int,
) -> list[Any]:
  from rich import text

  series = history.series(name)
  value = float(series.values[-1])
  told = f'{value:.5g} {_short(series.unit)}' if np.isfinite(value) else 'NaN'
  if key == 'mfu' and name.endswith('mfu') and np.isfinite(value):
    told = f'{value:.1%}'
  line = sparkline.sparkline(
      series.steps,
      series.values,
      width=room,
      worst='lowest' if key in _LOWEST_IS_WORST else 'highest',
  )
  curve = text.Text(line, style='cyan')
  curve.highlight_words([sparkline.NOT_FINITE], style='bold red')
  return [
      _clipped(_label(name), label_room),
      text.Text(told.strip(), style='' if np.isfinite(value) else 'bold red'),
      curve,
  ]


def _label(name: str) -> str:
  """A record's name, without what every name has."""
  for long, short in (
      ('loss_per_nonpadding_target_token', 'loss'), ('training_eval/', ''),
      ('timing/', ''), ('weight_gradient_norm', 'gradient norm'),
      ('/current', ''),
  ):  # fmt: skip
    name = name.replace(long, short)
  return name


def _clipped(label: str, room: int) -> str:
  """A label that fits, without its middle: its last part is the metric."""
  if len(label) <= room:
    return label
  _, slash, last = label.rpartition('/')
  tail = f'{slash}{last}'
  if len(tail) + 2 > room:  # not even a letter of the head
    return f'…{label[len(label) - room + 1 :]}'
  return f'{label[: room - len(tail) - 1]}…{tail}'


def _short(unit: str) -> str:
  return unit.replace('/second', '/s').replace('seconds', 's')


def _newest_signs(now: Now) -> list[heartbeats.Heartbeat]:
  newest = max((sign.attempt for sign in now.signs), default=0)
  return [sign for sign in now.signs if sign.attempt == newest]


def _signed_step(now: Now) -> int:
  """The step of the slowest process, as its signs tell; 0 without any.

  Records come each `stats_period`, signs each second.
  """
  return min((sign.step for sign in _newest_signs(now)), default=0)


def _has_finished(now: Now, signs: Sequence[heartbeats.Heartbeat]) -> bool:
  """Whether the processes came to their end in order, and no new ones run."""
  if now.history is None:
    return False
  newest = max(sign.seconds for sign in signs)
  if now.history.ended is not None:
    return newest < now.history.ended + _SILENT_SECONDS
  return now.seconds - newest > _SILENT_SECONDS and contents_lib.is_done(
      now.history, now.texts
  )


def _processes(now: Now) -> list[Any]:
  from rich import text

  if not now.signs:
    return []
  signs = _newest_signs(now)
  phases = ', '.join(sorted({sign.phase for sign in signs}))
  count = f'{len(signs)} processes' if len(signs) > 1 else '1 process'
  if _has_finished(now, signs):
    return [text.Text(f'\n{count}, finished')]
  lines = [text.Text(f'\n{count}, in {phases}')]
  slowest = slowest_process(signs)
  if slowest and len(signs) > 1:
    lines.append(text.Text(f'slowest: {slowest}'))
  if now.history is None or contents_lib.is_alive(
      now.history, now.texts, now=now.seconds
  ):
    lines += [
        text.Text(late, style='bold red')
        for late in heartbeats.laggards(
            signs, now=now.seconds, silent_seconds=_SILENT_SECONDS
        )
    ]
  return lines


def _judged(now: Now) -> list[Any]:
  from rich import text

  if not now.findings:
    return []
  shown = [
      text.Text(f'• {finding.text}', style=_COLOURS[finding.level])
      for finding in now.findings[:_FINDINGS]
  ]
  more = len(now.findings) - _FINDINGS
  if more > 0:
    shown.append(text.Text(f'  {more} more; see t5wild report', style='dim'))
  return [text.Text(''), *shown]


def _events(now: Now) -> list[Any]:
  from rich import text

  if now.history is None:
    return []
  events = events_lib.read_events(now.history)[-_EVENTS:]
  lines = [
      text.Text(f'{_ago(now.seconds - event.seconds)}  {event.text}')
      for event in reversed(events)
  ]
  return [text.Text('\nlast events', style='bold'), *lines] if lines else []


def _ago(seconds: float) -> str:
  return f'{findings_lib.duration(max(0.0, round(seconds)))} ago'.rjust(18)
