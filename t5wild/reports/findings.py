# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What stands out in a run, in words, the worst first.

Each judgement says the numbers it rests on, so that it can be doubted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import dataclasses

import numpy as np

from t5wild.reports import episodes
from t5wild.reports import events as events_lib
from t5wild.reports import history as history_lib
from t5wild.reports import panels
from t5wild.reports import restarts as restarts_lib

LEVELS = ('bad', 'warning', 'note')
_SLOW = 0.7  # of the run's median throughput
_WAIT = 0.1  # share of a step that waiting for data may take unnoticed
_LEAST_RECORDS = 5  # that a share is judged by
_GROWTH = 1.5  # of host memory, from the first quarter to the end
_WORSE = 0.02  # relative, of the held-out loss after its best
_WINDOW = 21  # records that a training loss is judged by
_DIVERGED = 0.1  # relative, of the training loss after its best
_OTHER_PARTS = {
    'train/timing/data_wait_seconds': 'waiting for data',
    'train/timing/other_seconds': 'writing and callbacks',
    'train/timing/device_seconds': 'the device',
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
  """One thing that a person should know.

  Attributes:
    level: 'bad', 'warning' or 'note'.
    text: one sentence or two.
    step: where to look; None = no step in particular.
    events: what the timeline shows of it.
  """

  level: str
  text: str
  step: int | None = None
  events: Sequence[events_lib.Event] = ()


def find(history: history_lib.History) -> list[Finding]:
  """All findings, the worst first, and by step among equals."""
  judges: Sequence[Callable[[history_lib.History], list[Finding]]] = (
      _not_finite,
      _faults,
      _spikes,
      _diverged,
      _restarts,
      _silence,
      _slow,
      _waits_for_data,
      _held_out_worse,
      _memory_grows,
      _torn,
  )
  found = [finding for judge in judges for finding in judge(history)]
  return sorted(found, key=lambda f: (LEVELS.index(f.level), f.step or 0))


def _words(name: str) -> str:
  """A record's name as a person says it."""
  parts = name.split('/')
  if 'gradient_norm' in name or 'grad_norm' in name:
    return 'The gradient norm'
  if parts[0] in ('train', 'learning'):
    return 'The training loss'
  task = f' of {"/".join(parts[1:-1])}' if len(parts) > 2 else ''
  return f'The held-out loss{task}'


def _curves(history: history_lib.History, key: str) -> list[history_lib.Column]:
  kind = next(kind for kind in panels.KINDS if kind.key == key)
  return [history.series(name) for name in panels.chosen_names(history, kind)]


def _training_loss(history: history_lib.History) -> history_lib.Column | None:
  curves = _curves(history, 'loss')
  mine = [c for c in curves if c.name.startswith(('train/', 'learning/'))]
  return mine[0] if mine else None


def _event(
    kind: str, column: history_lib.Column, row: int, text: str
) -> events_lib.Event:
  return events_lib.Event(
      kind=kind,
      step=int(column.steps[row]),
      seconds=float(column.seconds[row]),
      text=text,
  )


def _not_finite(history: history_lib.History) -> list[Finding]:
  findings = []
  for column in _curves(history, 'loss') + _curves(history, 'gradient_norm'):
    bad = np.flatnonzero(~np.isfinite(column.values))
    if not len(bad):
      continue
    first = int(bad[0])
    words = _words(column.name)
    what = 'NaN' if np.isnan(column.values[first]) else 'infinite'
    end = 'and stays so to the end'
    if np.isfinite(column.values[-1]):
      end = f'in {len(bad):,} of {len(column.steps):,} records'
    text = f'{words} is {what} from step {column.steps[first]:,} on, {end}'
    if np.isfinite(column.values[-1]):
      text = f'{words} is {what} at step {column.steps[first]:,}, {end}'
    findings.append(
        Finding(
            level='bad',
            text=f'{text}.',
            step=int(column.steps[first]),
            events=[_event('not_finite', column, first, text)],
        )
    )
  return findings


def _faults(history: history_lib.History) -> list[Finding]:
  """What the supervisor and the watchdog wrote down, a finding a kind."""
  by_name: dict[str, list] = {}
  for event in events_lib.read_recorded(history):
    if event.kind == 'fault':
      by_name.setdefault(event.text.split(':', 1)[0], []).append(event)
  findings = []
  for name, events in by_name.items():
    last = events[-1]
    said = last.text.split(': ', 1)[-1]
    often = f', {_times(len(events))}, the last time' if len(events) > 1 else ''
    findings.append(
        Finding(
            level='bad',
            text=f'{name[:1].upper()}{name[1:]}{often} at step '
            f'{last.step:,}: {said}',
            step=last.step,
        )
    )
  return findings


def _spikes(history: history_lib.History) -> list[Finding]:
  findings = []
  loss = _training_loss(history)
  norms = _curves(history, 'gradient_norm')
  for column in ([loss] if loss is not None else []) + norms:
    spikes = episodes.spikes(column.steps, column.values)
    for spike in spikes[:3]:
      text = (
          f'{_words(column.name)} jumps to {spike.peak:.4g} at step '
          f'{spike.peak_step:,} (before: about {spike.level:.4g})'
      )
      is_loss = column is loss
      findings.append(
          Finding(
              level='warning' if is_loss else 'note',
              text=f'{text}{_length(spike)}.',
              step=spike.peak_step,
              events=[_event('spike', column, spike.peak_row, text)],
          )
      )
    if len(spikes) > 3:
      findings.append(
          Finding(
              level='note',
              text=f'{_words(column.name)} has {len(spikes) - 3} smaller '
              'spikes more.',
              events=[
                  _event(
                      'spike',
                      column,
                      spike.peak_row,
                      f'{_words(column.name)} jumps to {spike.peak:.4g}',
                  )
                  for spike in spikes[3:]
              ],
          )
      )
  return findings


def _length(spike: episodes.Spike) -> str:
  if spike.last_step == spike.first_step:
    return ''
  return f', and is back after step {spike.last_step:,}'


def _diverged(history: history_lib.History) -> list[Finding]:
  loss = _training_loss(history)
  if loss is None:
    return []
  finite = np.isfinite(loss.values)
  smooth = episodes.rolling_median(loss.values[finite], window=_WINDOW)
  if len(smooth) < _WINDOW:
    return []
  # The step in the middle of each window.
  steps = loss.steps[finite][_WINDOW // 2 :]
  best = int(np.argmin(smooth))
  last = float(smooth[-1])
  if last <= smooth[best] + _DIVERGED * abs(smooth[best]):
    return []
  return [
      Finding(
          level='bad',
          text=f'{_words(loss.name)} ends at {last:.4g}, above its best '
          f'({smooth[best]:.4g} around step {steps[best]:,}): it diverges.',
          step=int(steps[best]),
      )
  ]


def _restarts(history: history_lib.History) -> list[Finding]:
  restarts = restarts_lib.starts(history)[1:]
  if not restarts:
    return []
  again = sum(start.num_steps_again for start in restarts)
  steps = ', '.join(f'{start.step:,}' for start in restarts[:5])
  more = f' and {len(restarts) - 5} more' if len(restarts) > 5 else ''
  text = f'The run was started again {_times(len(restarts))}, from step {steps}'
  return [
      Finding(
          level='warning' if again else 'note',
          text=f'{text}{more}; {_count(again, "update")} '
          f'{"was" if again == 1 else "were"} done twice.',
          step=restarts[0].step,
      )
  ]


def _times(number: int) -> str:
  return 'once' if number == 1 else f'{number} times'


def _silence(history: history_lib.History) -> list[Finding]:
  findings = []
  for gap in episodes.silences(history):
    text = (
        f'Nothing was recorded for {duration(gap.seconds)} after step '
        f'{gap.step:,}'
    )
    usual = f'usually {duration(gap.usual_seconds)} at most'
    findings.append(
        Finding(
            level='warning',
            text=f'{text} ({usual}).',
            step=gap.step,
            events=[
                events_lib.Event(
                    kind='gap', step=gap.step, seconds=gap.since, text=text
                )
            ],
        )
    )
  return findings


def _slow(history: history_lib.History) -> list[Finding]:
  curves = _curves(history, 'throughput')
  if not curves:
    return []
  column = curves[0]
  slow = episodes.slow_part(column.steps, column.values, share=_SLOW)
  if slow is None:
    return []
  first, last = int(column.steps[slow.first]), int(column.steps[slow.last])
  parts = []
  for name, words in _OTHER_PARTS.items():
    part = history.series(name)
    if part is not None:
      inside = (part.steps >= first) & (part.steps <= last)
      if inside.any() and not inside.all():
        more = np.median(part.values[inside]) - np.median(part.values[~inside])
        parts.append((float(more), words))
  why = ''
  if parts and max(parts)[0] > 0:
    why = f'; what takes longer is {max(parts)[1]}'
  return [
      Finding(
          level='warning',
          text=f'Throughput falls to {slow.share:.0%} of its median from step '
          f'{first:,} to {last:,}{why}.',
          step=first,
      )
  ]


def _waits_for_data(history: history_lib.History) -> list[Finding]:
  wait = history.series('train/timing/data_wait_seconds')
  step = history.series('train/timing/step_seconds')
  if wait is None or step is None or len(wait.values) != len(step.values):
    return []
  if len(wait.values) < _LEAST_RECORDS:
    return []
  share = float(np.sum(wait.values) / max(np.sum(step.values), 1e-12))
  if share < _WAIT:
    return []
  return [
      Finding(
          level='warning',
          text=f'{share:.0%} of the step time is spent waiting for data.',
      )
  ]


def _held_out_worse(history: history_lib.History) -> list[Finding]:
  findings = []
  training = _training_loss(history)
  for column in _curves(history, 'loss'):
    if column is training or column.name.startswith('train/'):
      continue
    values = column.values
    if len(values) < 4 or not np.isfinite(values).all():
      continue
    best = int(np.argmin(values))
    if best >= len(values) - 2:
      continue
    if values[-1] > values[best] + _WORSE * abs(values[best]):
      findings.append(
          Finding(
              level='warning',
              text=f'{_words(column.name)} was best at step '
              f'{column.steps[best]:,} ({values[best]:.4g}) and is '
              f'{values[-1]:.4g} at the end.',
              step=int(column.steps[best]),
          )
      )
  return findings


def _memory_grows(history: history_lib.History) -> list[Finding]:
  column = history.series('train/memory/host_peak_bytes')
  if column is None or len(column.values) < 20:
    return []
  quarter = column.values[len(column.values) // 4]
  last = column.values[-1]
  if not quarter or last < _GROWTH * quarter:
    return []
  return [
      Finding(
          level='warning',
          text=f'Memory of the host grows: {quarter / 2**30:.1f} GiB after a '
          f'quarter of the run, {last / 2**30:.1f} GiB at the end.',
          step=int(column.steps[len(column.values) // 4]),
      )
  ]


def _torn(history: history_lib.History) -> list[Finding]:
  findings = []
  if history.num_broken_lines:
    findings.append(
        f'{_count(history.num_broken_lines, "line")} of metrics.jsonl left '
        'out: no whole record, such as a process that is killed leaves.'
    )
  if history.num_torn_files:
    findings.append(
        f'{_count(history.num_torn_files, "event file")} torn at the end: what '
        'stands before that is shown.'
    )
  return [Finding(level='note', text=text) for text in findings]


def _count(number: int, noun: str) -> str:
  return f'{number:,} {noun}' + ('' if number == 1 else 's')


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
