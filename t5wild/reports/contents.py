# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""All that a report tells of a run, whatever form it is then given."""

from __future__ import annotations

import dataclasses
import os
import time

import numpy as np

from t5wild import run_dir as run_dir_lib
from t5wild.reports import endings
from t5wild.reports import events as events_lib
from t5wild.reports import findings as findings_lib
from t5wild.reports import history as history_lib
from t5wild.reports import panels as panels_lib
from t5wild.reports import run_texts
from t5wild.reports import time_spent as time_spent_lib
from t5wild.vitals import heartbeats

# A curve's points cost about 45 bytes a bucket on the page, and all curves
# together may cost this.
_BYTES_OF_CURVES = 380_000
_BYTES_A_BUCKET = 46
_MAX_BUCKETS = 600
_MIN_BUCKETS = 40
_CLOCK_POINTS = 300
_ALIVE_SECONDS = 120.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Contents:
  """A run, ready to be shown.

  Attributes:
    name: the last part of its path.
    state: how far it is, and whether it goes on: one line.
    is_running: whether records were written just now.
    facts: the numbers to know, label -> value.
    findings: what stands out, the worst first.
    panels: curves.
    heat_map: gradient norm by layer group; None = not recorded.
    events: the timeline.
    time_spent: None = not recorded.
    texts: configuration, samples, environment.
    clock: [2, points] of steps and seconds since the beginning.
    first_seconds: wall clock time of the beginning: of the first process, by
      its books, or else of the first record.
    missing: what the run did not leave.
    made_seconds: when this was read.
  """

  name: str
  state: str
  is_running: bool
  facts: dict[str, str]
  findings: list[findings_lib.Finding]
  panels: list[panels_lib.Panel]
  heat_map: panels_lib.HeatMap | None
  events: list[events_lib.Event]
  time_spent: time_spent_lib.TimeSpent | None
  texts: run_texts.Texts
  clock: np.ndarray
  first_seconds: float
  missing: list[str]
  made_seconds: float


def read_contents(
    path: str,
    *,
    price_per_device_hour: float | None = None,
    now: float | None = None,
) -> Contents:
  """Reads a run and judges it.

  Args:
    path: of the run.
    price_per_device_hour: money; None = what the run was told, if anything.
    now: wall clock time, seconds since 1970.

  Raises:
    history.NoRunError: there is nothing to report.
  """
  now = time.time() if now is None else now
  history = history_lib.read_history(path)
  texts = run_texts.read_texts(history)
  findings = findings_lib.find(history)
  buckets = _BYTES_OF_CURVES // (
      _BYTES_A_BUCKET * max(1, panels_lib.num_lines(history))
  )
  panels, missing = panels_lib.panels_of(
      history,
      num_buckets=min(_MAX_BUCKETS, max(_MIN_BUCKETS, buckets)),
      settings={each.name: each.value for each in texts.settings},
  )
  heat_map = panels_lib.heat_map(
      history, parameter_counts=texts.parameter_counts
  )
  if heat_map is None:
    missing.append(
        'no gradient norms by layer: set trainer.Trainer.'
        'weight_metrics_computer = @trainer.WeightMetricsComputer()'
    )
  spent = time_spent_lib.time_spent(
      history,
      num_devices=texts.num_devices,
      price_per_device_hour=price_per_device_hour,
  )
  if spent is None:
    missing.append('nothing tells where the wall time went')
  events = events_lib.read_events(history)
  events += [event for finding in findings for event in finding.events]
  is_running = is_alive(history, texts, now=now)
  first_seconds = min(
      [history.first_seconds, *(each.start for each in history.attempts)]
  )
  return Contents(
      name=os.path.basename(os.path.abspath(path)),
      state=state_of(history, texts, is_running=is_running, now=now),
      is_running=is_running,
      facts=_facts(history, texts, spent),
      findings=findings,
      panels=panels,
      heat_map=heat_map,
      events=events_lib.thinned(events),
      time_spent=spent,
      texts=texts,
      clock=_clock(history, first_seconds=first_seconds),
      first_seconds=first_seconds,
      missing=[*missing, *texts.missing],
      made_seconds=now,
  )


def is_alive(
    history: history_lib.History, texts: run_texts.Texts, *, now: float
) -> bool:
  """Whether the run goes on, as far as its records tell."""
  if endings.ending(history) is not None or is_done(history, texts):
    return False
  return _silent_seconds(history, now=now) < max(
      _ALIVE_SECONDS, 5 * _usual_seconds(history)
  )


def _silent_seconds(history: history_lib.History, *, now: float) -> float:
  """How long ago the newest record was written."""
  run_dir = run_dir_lib.RunDir(history.path)
  return heartbeats.runs_now(run_dir, now=now) - history.last_seconds


def is_done(history: history_lib.History, texts: run_texts.Texts) -> bool:
  """Whether the run has come to its last step."""
  return texts.total_steps is not None and (
      history.last_step >= texts.total_steps
  )


def _usual_seconds(history: history_lib.History) -> float:
  """The usual time between records; 0 if there are too few."""
  longest = max(history.clocks, key=lambda c: len(c.seconds), default=None)
  if longest is None or len(longest.seconds) < 3:
    return 0.0
  return float(np.median(np.abs(np.diff(longest.seconds))))


def state_of(
    history: history_lib.History,
    texts: run_texts.Texts,
    *,
    is_running: bool,
    now: float,
    step: int | None = None,
) -> str:
  """How far the run is, and whether it goes on, in one line.

  Args:
    history: the run's numbers.
    texts: its configuration.
    is_running: whether it goes on.
    now: wall clock.
    step: where it is; None = as far as records tell.
  """
  step = history.last_step if step is None else step
  of = f' of {texts.total_steps:,}' if texts.total_steps is not None else ''
  where = f'step {step:,}{of}'
  ago = findings_lib.duration(max(0.0, _silent_seconds(history, now=now)))
  if is_running:
    return f'running: {where}, last record {ago} ago'
  if is_done(history, texts):
    return f'finished: {where}'
  ending = endings.ending(history)
  if ending is not None:
    return f'{ending.words}, at {where}'
  if history.source == 'events':
    return f'{where}, last event {ago} ago'
  return f'broken off or hanging: {where}, last record {ago} ago'


def _facts(
    history: history_lib.History,
    texts: run_texts.Texts,
    spent: time_spent_lib.TimeSpent | None,
) -> dict[str, str]:
  facts = {
      **_latest(history, 'loss', 'loss', '{:.4g}'),
      **_latest(history, 'throughput', 'throughput', '{:,.0f}'),
      **_latest(history, 'mfu', 'MFU', '{:.1%}'),
  }
  if spent is not None:
    facts['goodput'] = f'{spent.productive_share:.1%}'
    facts['wall time'] = findings_lib.duration(spent.total_seconds)
    if spent.money is not None:
      facts['money'] = f'{sum(spent.money.values()):,.2f}'
  else:
    facts['time span'] = findings_lib.duration(
        history.last_seconds - history.first_seconds
    )
  if texts.num_parameters is not None:
    facts['parameters'] = f'{texts.num_parameters:,}'
  if texts.num_devices is not None:
    facts['devices'] = f'{texts.num_devices:,}'
  return facts


def _latest(
    history: history_lib.History, key: str, label: str, form: str
) -> dict[str, str]:
  """The last finite value of a panel's first curve; of the loss, held out too.
  """
  kind = next(kind for kind in panels_lib.KINDS if kind.key == key)
  facts = {}
  names = panels_lib.chosen_names(history, kind)
  for name in names[: 2 if key == 'loss' else 1]:
    series = history.series(name)
    is_training = name.startswith(('train/', 'learning/', 'perf/'))
    text = _last_finite(series, form, of_many=is_training)
    if key == 'mfu' and not name.endswith('mfu'):
      label = 'TFLOP/s a device'
      text = _last_finite(series, '{:.4g}', of_many=is_training)
    if key == 'throughput':
      text += ' ' + series.unit.replace('tokens/second', 'tokens/s')
    which = 'last records' if is_training else 'last record'
    label = label if is_training else f'held-out {label}'
    facts[f'{label}, {which}'] = text.strip()
  return facts


def _last_finite(
    series: history_lib.Column, form: str, *, of_many: bool
) -> str:
  """The last value that is a number, or the median of the last few.

  What comes after it is told, so that no run looks sound that is not.
  """
  rows = np.flatnonzero(np.isfinite(series.values))
  if not len(rows):
    return 'never finite'
  many = min(5, max(1, len(rows) // 10)) if of_many else 1
  text = form.format(float(np.median(series.values[rows[-many:]])))
  last = int(rows[-1])
  if last == len(series.values) - 1:
    return text
  bad = series.values[last + 1]
  what = 'NaN' if np.isnan(bad) else 'infinite'
  return f'{text} to step {series.steps[last]:,}, then {what}'


def _clock(
    history: history_lib.History, *, first_seconds: float
) -> np.ndarray:
  """Steps and seconds since the beginning, both increasing."""
  # Where nothing but a start is recorded, by what that wrote.
  clocks = history.clocks or tuple(history.columns.values())
  longest = max(clocks, key=lambda c: len(c.steps))
  series = history_lib.in_order_of_steps(longest)
  rows = np.unique(
      np.linspace(0, len(series.steps) - 1, _CLOCK_POINTS).round().astype(int)
  )
  seconds = series.seconds - first_seconds
  return np.stack((series.steps[rows], np.maximum.accumulate(seconds[rows])))
