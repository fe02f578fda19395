# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What stands out in a run, in words, the worst first.

Each judgement says the numbers it rests on, so that it can be doubted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from t5wild.reports import bad_numbers
from t5wild.reports import episodes
from t5wild.reports import finding
from t5wild.reports import history as history_lib
from t5wild.reports import judged_curves
from t5wild.reports import lost_time
from t5wild.reports import process_ends
from t5wild.vitals import records as records_lib

Finding = finding.Finding
duration = finding.duration

_GROWTH = 1.5  # of host memory, from the first quarter to the end
_WORSE = 0.02  # relative, of the held-out loss after its best
_WINDOW = 21  # records that a training loss is judged by
_DIVERGED = 0.1  # relative, of the training loss after its best
# The run's own event of a spike of a chart's curve; it tells the very step.
_SPIKES = {
    'loss': 'vitals/loss_spike',
    'gradient_norm': 'vitals/gradient_spike',
}


def find(history: history_lib.History) -> list[Finding]:
  """All findings, the worst first."""
  judges: Sequence[Callable[[history_lib.History], list[Finding]]] = (
      bad_numbers.find,
      process_ends.find,
      lost_time.find,
      _spikes,
      _diverged,
      _held_out_worse,
      _memory_grows,
      _torn,
  )
  return finding.in_order([each for judge in judges for each in judge(history)])


def _spikes(history: history_lib.History) -> list[Finding]:
  findings = []
  loss = judged_curves.training_loss(history)
  norms = judged_curves.of_kind(history, 'gradient_norm')
  for column in ([loss] if loss is not None else []) + norms:
    name = judged_curves.words(column.name)
    spikes = episodes.spikes(column.steps, column.values)
    for spike in spikes[:3]:
      chart = 'loss' if column is loss else 'gradient_norm'
      seen = judged_curves.seen_at(
          history, column, spike.peak_row, (_SPIKES[chart],)
      )[1]
      text = f'{name} jumps {_height(column, spike, seen)}'
      own = judged_curves.event('spike', column, spike.peak_row, text)
      findings.append(
          Finding(
              level='warning' if column is loss else 'note',
              text=f'{text}{_length(spike)}.',
              step=spike.peak_step if seen is None else seen.step,
              # The run's own event is on the timeline already.
              events=[own] if seen is None else [],
              weight=finding.LIKELY if seen is None else finding.SURE,
              chart=chart,
              seconds=None if seen is None else seen.seconds,
              label='spike',
          )
      )
    if len(spikes) > 3:
      findings.append(
          Finding(
              level='note',
              text=f'{name} has {len(spikes) - 3} smaller '
              'spikes more.',
              events=[
                  judged_curves.event(
                      'spike',
                      column,
                      spike.peak_row,
                      f'{name} jumps to {spike.peak:.4g}',
                  )
                  for spike in spikes[3:]
              ],
          )
      )
  return findings


def _height(
    column: history_lib.Column,
    spike: episodes.Spike,
    seen: records_lib.Record | None,
) -> str:
  """To what, where and from what; which number is of one step, which of many.
  """
  first, last = judged_curves.steps_of(column, spike.peak_row)
  before = f'before: about {spike.level:.4g}'
  if first == last:
    return f'to {spike.peak:.4g} at step {last:,} ({before})'
  steps = f'{first:,}-{last:,}'
  if seen is None or not np.isfinite(seen.value):
    return f'to {spike.peak:.4g} in the mean of steps {steps} ({before})'
  return (
      f'to {seen.value:.4g} at step {seen.step:,} (the curve shows means: '
      f'{spike.peak:.4g} for steps {steps}; {before})'
  )


def _length(spike: episodes.Spike) -> str:
  if spike.last_step == spike.first_step:
    return ''
  return f', and is back after step {spike.last_step:,}'


def _diverged(history: history_lib.History) -> list[Finding]:
  loss = judged_curves.training_loss(history)
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
  name = judged_curves.words(loss.name)
  return [
      Finding(
          level='bad',
          text=f'{name} ends at {last:.4g}, above its '
          f'best ({smooth[best]:.4g} around step {steps[best]:,}): it '
          'diverges.',
          step=int(steps[best]),
          weight=finding.SURE,
          chart='loss',
          label='diverges from here',
      )
  ]


def _held_out_worse(history: history_lib.History) -> list[Finding]:
  findings = []
  training = judged_curves.training_loss(history)
  for column in judged_curves.of_kind(history, 'loss'):
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
              text=f'{judged_curves.words(column.name)} was best at step '
              f'{column.steps[best]:,} ({values[best]:.4g}) and is '
              f'{values[-1]:.4g} at the end.',
              step=int(column.steps[best]),
              weight=finding.LIKELY,
              chart='loss',
              label='best here',
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
          chart='memory',
          label='memory grows',
      )
  ]


def _torn(history: history_lib.History) -> list[Finding]:
  findings = []
  if history.num_broken_lines:
    findings.append(
        f'{finding.count(history.num_broken_lines, "line")} of metrics.jsonl '
        'left out: no whole record, such as a process that is killed leaves.'
    )
  if history.num_torn_files:
    findings.append(
        f'{finding.count(history.num_torn_files, "event file")} torn at the '
        'end: what stands before that is shown.'
    )
  return [Finding(level='note', text=text) for text in findings]
