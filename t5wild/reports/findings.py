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

Finding = finding.Finding
duration = finding.duration

_GROWTH = 1.5  # of host memory, from the first quarter to the end
_WORSE = 0.02  # relative, of the held-out loss after its best
_WINDOW = 21  # records that a training loss is judged by
_DIVERGED = 0.1  # relative, of the training loss after its best
# Events of the run itself that confirm a spike, and tell its step.
_SPIKES = ('vitals/loss_spike', 'vitals/gradient_spike')


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
      where, is_seen = judged_curves.seen_at(
          history, column, spike.peak_row, _SPIKES
      )
      text = (
          f'{name} jumps to {spike.peak:.4g} at step '
          f'{where} (before: about {spike.level:.4g})'
      )
      is_loss = column is loss
      findings.append(
          Finding(
              level='warning' if is_loss else 'note',
              text=f'{text}{_length(spike)}.',
              step=spike.peak_step,
              events=[
                  judged_curves.event('spike', column, spike.peak_row, text)
              ],
              weight=finding.SURE if is_seen else finding.LIKELY,
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
        f'{finding.count(history.num_broken_lines, "line")} of metrics.jsonl '
        'left out: no whole record, such as a process that is killed leaves.'
    )
  if history.num_torn_files:
    findings.append(
        f'{finding.count(history.num_torn_files, "event file")} torn at the '
        'end: what stands before that is shown.'
    )
  return [Finding(level='note', text=text) for text in findings]
