# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which curves a report shows, by the names of t5wild, T5X and MaxText."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import dataclasses
import re

import numpy as np

from t5wild.reports import downsample
from t5wild.reports import history as history_lib
from t5wild.reports import layer_groups
from t5wild.vitals import records as records_lib

_HEAT_COLUMNS = 120


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kind:
  """A place for curves.

  Attributes:
    key: short name.
    title: above it.
    choices: lists of patterns; the names of the first list with a match are
      shown.
    is_log: whether its scale is logarithmic at first.
    is_noisy: whether a smoothed curve says more than the numbers.
    absent: what is missing where there is no curve, and what would make one.
    period: the argument of `train` that says how often it is recorded.
  """

  key: str
  title: str
  choices: Sequence[Sequence[str]]
  is_log: bool = False
  is_noisy: bool = True
  absent: str = ''
  period: str | None = None

  def why_absent(self, settings: Mapping[str, str]) -> str:
    """What is missing, and why, by the run's configuration."""
    value = settings.get(f'train_script.train.{self.period}')
    if value and value.startswith('%'):  # a macro
      value = settings.get(value[1:])
    what = self.absent.split(':', 1)[0]
    if value == 'None':
      return f'{what}: {self.period} is None, so it is never recorded'
    return f'{self.absent}; {self.period} is {value}' if value else self.absent


@dataclasses.dataclass(frozen=True, kw_only=True)
class Line:
  """One curve of a panel."""

  name: str
  label: str
  curve: downsample.Curve


@dataclasses.dataclass(frozen=True, kw_only=True)
class Panel:
  """Curves that stand together.

  Attributes:
    key: short name.
    title: above it.
    unit: of the vertical axis.
    lines: the curves.
    is_log: whether its scale is logarithmic at first.
    is_noisy: whether a smoothed curve says more than the numbers.
    is_stacked: whether the curves are parts of a whole.
  """

  key: str
  title: str
  unit: str
  lines: Sequence[Line]
  is_log: bool = False
  is_noisy: bool = True
  is_stacked: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class HeatMap:
  """Values of groups over steps, [groups, buckets]: the largest of each."""

  title: str
  groups: Sequence[str]
  steps: np.ndarray
  values: np.ndarray


_LOSS = re.escape(records_lib.LOSS)
LOSS_KIND = Kind(
    key='loss',
    title='Loss',
    choices=[
        [rf'train/{_LOSS}', rf'(training_)?eval/.+/{_LOSS}', rf'eval/{_LOSS}'],
        ['train/loss', r'(training_)?eval/.+/loss', 'eval/loss'],
        ['learning/loss', r'evaluation/avg_loss', r'eval/avg_loss'],
    ],
    absent='no loss: nothing was logged before the run ended (stats_period)',
    period='stats_period',
)
KINDS = (
    LOSS_KIND,
    Kind(
        key='held_out',
        title='Held-out metrics',
        choices=[
            [
                r'(training_eval|inference_eval|eval)/'
                r'(?!.*(timing/|memory/|loss|effective_batch_size/|'
                r'non_padding_fraction/)).+',
                r'evaluation/(?!.*loss)[^/]+',
                r'held_out/.+',
            ]
        ],
        is_noisy=False,
        absent='no held-out metrics: no evaluation was reached (eval_period)',
        period='eval_period',
    ),
    Kind(
        key='gradient_norm',
        title='Gradient norm',
        choices=[
            ['train/(weight_)?gradient_norm(/global)?', 'train/grad_norm'],
            ['learning/grad_norm', 'learning/raw_grad_norm'],
        ],
        is_log=True,
        absent='no gradient norm was recorded',
    ),
    Kind(
        key='learning_rate',
        title='Learning rate',
        choices=[
            ['train/learning_rate/current'],
            ['train/learning_rate'],
            ['learning/current_learning_rate'],
        ],
        is_noisy=False,
        absent='no learning rate was recorded',
    ),
    Kind(
        key='throughput',
        title='Throughput',
        choices=[
            ['train/timing/nonpadding_tokens_per_second'],
            ['train/timing/(nonpadding_)?target_tokens_per_second'],
            ['train/timing/(seqs|examples)_per_second'],
            ['perf/per_device_tokens_per_sec'],
            ['train/timing/steps_per_second', 'train/steps_per_second'],
        ],
        absent='no throughput was recorded',
    ),
    Kind(
        key='mfu',
        title='Model FLOPs utilisation (MFU)',
        choices=[['train/timing/mfu'], ['perf/per_device_tflops_per_sec']],
        absent='no MFU: the chip, or the network, is one whose peak, or '
        'operations, are not known',
    ),
    Kind(
        key='step_seconds',
        title='Step time',
        choices=[
            ['train/timing/step_seconds'],
            ['perf/step_time_seconds'],
        ],
        absent='no step time was recorded',
    ),
    Kind(
        key='memory',
        title='Memory',
        choices=[['train/memory/.+_bytes']],
        is_noisy=False,
        absent='no memory was recorded',
    ),
)
# What a step's time is made of, from the device upwards.
_SPLIT = (
    ('train/timing/device_seconds', 'device'),
    ('train/timing/data_wait_seconds', 'waiting for data'),
    ('train/timing/other_seconds', 'other'),
)


def chosen_names(history: history_lib.History, kind: Kind) -> list[str]:
  """Names that a kind of panel shows of this run; none if it has none."""
  for patterns in kind.choices:
    names = [n for p in patterns for n in history.matching(p)]
    if names:
      return list(dict.fromkeys(names))
  return []


def panels_of(
    history: history_lib.History,
    *,
    num_buckets: int,
    settings: Mapping[str, str],
) -> tuple[list[Panel], list[str]]:
  """The panels of a run, and what is missing for the others.

  Args:
    history: the run.
    num_buckets: parts of a curve that are told apart.
    settings: of its configuration, name -> value; says why something is absent.
  """
  panels, missing = [], []
  for kind in KINDS:
    names = chosen_names(history, kind)
    if kind.key == 'held_out':
      panels += _by_metric(history, kind, names, num_buckets)
    elif names:
      panels.append(_panel(history, kind, names, num_buckets))
    if not names:
      missing.append(kind.why_absent(settings))
    if kind.key == 'step_seconds':
      panels += _split_panel(history, num_buckets)
  return panels, missing


def num_lines(history: history_lib.History) -> int:
  """Curves that the panels would have."""
  split = sum(name in history.columns for name, _ in _SPLIT)
  return split + sum(len(chosen_names(history, kind)) for kind in KINDS)


def heat_map(
    history: history_lib.History, *, parameter_counts: Mapping[str, int]
) -> HeatMap | None:
  """Gradient norm by layer group over steps; None where it is not recorded."""
  groups = layer_groups.gradient_norms(
      history, parameter_counts=parameter_counts
  )
  if not groups.by_group:
    return None
  steps = np.unique(np.concatenate([s for s, _ in groups.by_group.values()]))
  first, last = int(steps[0]), int(steps[-1])
  columns = min(_HEAT_COLUMNS, len(steps))
  # The first bucket holds the first step.
  edges = np.linspace(first - 1, last, columns + 1)
  values = np.stack([
      downsample.extreme_by_bucket(s, v, edges)
      for s, v in groups.by_group.values()
  ])
  return HeatMap(
      title=groups.title,
      groups=list(groups.by_group),
      steps=edges[1:],
      values=values,
  )


def _panel(
    history: history_lib.History, kind: Kind, names: list[str], buckets: int
) -> Panel:
  labels = _labels(names)
  units = {history.columns[name].unit for name in names}
  return Panel(
      key=kind.key,
      title=kind.title,
      unit=units.pop() if len(units) == 1 else '',
      lines=[
          Line(name=n, label=labels[n], curve=_curve(history, n, buckets))
          for n in names
      ],
      is_log=kind.is_log,
      is_noisy=kind.is_noisy,
  )


def _by_metric(
    history: history_lib.History, kind: Kind, names: list[str], buckets: int
) -> list[Panel]:
  """A panel for each metric, since their scales differ."""
  by_metric: dict[str, list[str]] = {}
  for name in names:
    by_metric.setdefault(name.rsplit('/', 1)[-1], []).append(name)
  return [
      dataclasses.replace(
          _panel(history, kind, mine, buckets),
          key=f'{kind.key}_{number}',
          title=f'Held-out {metric.replace("_", " ")}',
      )
      for number, (metric, mine) in enumerate(by_metric.items())
  ]


def _split_panel(history: history_lib.History, buckets: int) -> list[Panel]:
  lines = [
      Line(name=name, label=label, curve=_curve(history, name, buckets))
      for name, label in _SPLIT
      if name in history.columns
  ]
  if not lines:
    return []
  return [
      Panel(
          key='split',
          title='Where a step\'s time goes',
          unit='seconds',
          lines=lines,
          is_stacked=True,
      )
  ]


def _curve(
    history: history_lib.History, name: str, buckets: int
) -> downsample.Curve:
  series = history.series(name)
  return downsample.curve(series.steps, series.values, num_buckets=buckets)


def _labels(names: list[str]) -> dict[str, str]:
  """Names without what all of them share."""
  if len(names) == 1:
    return {names[0]: names[0]}
  parts = [name.split('/') for name in names]
  head = 0
  while len({tuple(p[: head + 1]) for p in parts}) == 1:
    head += 1
  tail = 0
  while len({tuple(p[len(p) - tail - 1 :]) for p in parts}) == 1 and all(
      len(p) - tail - 1 > head for p in parts
  ):
    tail += 1
  return {
      name: '/'.join(p[head : len(p) - tail]) or p[-1]
      for name, p in zip(names, parts, strict=True)
  }
