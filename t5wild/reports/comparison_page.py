# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A comparison as HTML, as Markdown, and as JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
import json
import math
from typing import Any

from t5wild.reports import alignment
from t5wild.reports import comparison as comparison_lib
from t5wild.reports import downsample
from t5wild.reports import html_document as document
from t5wild.reports import panels as panels_lib
from t5wild.reports import verdict
from t5wild.vitals import records as records_lib

_BUCKETS = 200
_SHOWN = ('loss', 'held_out', 'gradient_norm', 'learning_rate', 'throughput',
          'mfu')  # fmt: skip
_text = document.escaped
_NO = '–'
_DIFFERENCES = 'What differs, most telling first'


def html(comparison: comparison_lib.Comparison, *, by: str) -> str:
  """A page that needs nothing else.

  Args:
    comparison: what is told.
    by: what curves are drawn over, one of `alignment.AXES`.

  Raises:
    alignment.NoAxisError: a run does not tell it.
  """
  panels = _panels(comparison, by)
  names = ' · '.join(run.name for run in comparison.runs)
  sections = [
      f'<header><div><h1>{_text(names)}</h1><p class="soft">the first is held '
      'against the others</p></div><button id="theme" title="light or dark">'
      'light / dark</button></header>\n',
      _section('In words', _list(verdict.verdict(comparison))),
      document.curves(map(document.figure, panels), has_axes=False),
      _section('Numbers', _table(_numbers(comparison))),
      _section('Speed', _table(_speeds(comparison))),
      _section(_DIFFERENCES, _table(_settings(comparison))),
  ]
  ends = [
      (float(s.min()), float(s.max()))
      for p in panels
      for s in (line.curve.steps for line in p.lines)
      if len(s)
  ]
  low, high = min(e[0] for e in ends), max(e[1] for e in ends)
  data = {
      'reload_seconds': None,
      'across': by,
      'clock': [[low, high], [low, high]],
      'kinds': {},
      'panels': list(map(document.panel_data, panels)),
      'heat_map': None,
      'events': [],
  }
  return document.document(names, sections, data=data)


def markdown(comparison: comparison_lib.Comparison) -> str:
  """The same in tables."""
  parts = [
      f'# {" against ".join(run.name for run in comparison.runs)}',
      '\n'.join(f'- {line}' for line in verdict.verdict(comparison)),
  ]
  for title, rows in (
      ('Numbers', _numbers(comparison)),
      ('Speed', _speeds(comparison)),
      (_DIFFERENCES, _settings(comparison)),
  ):
    head, *body = rows
    lines = [head, ['---'] * len(head), *body]
    table = '\n'.join(
        f'| {" | ".join(_cell(each) for each in line)} |' for line in lines
    )
    parts += [f'## {title}', table if body else 'Nothing.']
  return '\n\n'.join(parts) + '\n'


def as_json(comparison: comparison_lib.Comparison) -> str:
  """The same for programs; what is not finite is a word."""
  value = {
      'runs': [
          {'name': run.name, 'path': run.history.path}
          for run in comparison.runs
      ],
      'verdict': verdict.verdict(comparison),
      'curves': [
          {
              'run': curve.run,
              'metric': curve.metric,
              'common_steps': curve.num_steps,
              'first_step': curve.first_step,
              'first_step_beyond': {
                  f'{level:g}': step for level, step in curve.beyond.items()
              },
              'largest_relative': _finite(curve.largest),
              'largest_step': curve.largest_step,
              'end': [_finite(value) for value in curve.end],
          }
          for curve in comparison.curves
      ],
      'speeds': [
          {name: getattr(speed, name) for name in speed.__dataclass_fields__}
          for speed in comparison.speeds
      ],
      'differences': [
          {'kind': d.kind, 'name': d.name, 'values': list(d.values)}
          for d in comparison.differences
      ],
  }
  return json.dumps(value, indent=2, allow_nan=False) + '\n'


def _panels(
    comparison: comparison_lib.Comparison, by: str
) -> list[panels_lib.Panel]:
  panels = []
  for kind in panels_lib.KINDS:
    if kind.key in _SHOWN:
      names = list(
          dict.fromkeys(
              name
              for run in comparison.runs
              for name in panels_lib.chosen_names(run.history, kind)
          )
      )
      panels += [
          _panel(comparison, kind, name, by, number)
          for number, name in enumerate(names)
      ]
  lines = _difference_lines(comparison)
  if lines:
    difference = panels_lib.Panel(
        key='difference',
        title='Relative difference to the first run'
        + ('' if by == 'step' else ', over steps'),
        unit='',
        lines=lines,
        is_log=True,
    )
    # Over steps only: there the runs have points in common.
    if by == 'step':
      panels.insert(1, difference)
  return panels


def _panel(
    comparison: comparison_lib.Comparison,
    kind: panels_lib.Kind,
    name: str,
    by: str,
    number: int,
) -> panels_lib.Panel:
  lines = []
  for run in comparison.runs:
    series = run.history.series(name)
    if series is not None:
      across = alignment.places(
          run.history, series.steps, axis=by, money_an_hour=run.money_an_hour
      )
      curve = downsample.curve(across, series.values, num_buckets=_BUCKETS)
      lines.append(panels_lib.Line(name=name, label=run.name, curve=curve))
  return panels_lib.Panel(
      key=f'{kind.key}{number or ""}',
      title=f'{kind.title}: {_short(name)}',
      unit=next(
          run.history.columns[name].unit
          for run in comparison.runs
          if name in run.history.columns
      ),
      lines=lines,
      is_log=kind.is_log,
      is_noisy=kind.is_noisy,
  )


def _difference_lines(
    comparison: comparison_lib.Comparison,
) -> list[panels_lib.Line]:
  lines = []
  for curve in comparison.curves:
    differs = curve.relative > 0
    if curve.num_steps > 2 and differs.any():
      lines.append(
          panels_lib.Line(
              name=curve.metric,
              label=f'{curve.run}: {_short(curve.metric)}',
              curve=downsample.curve(
                  curve.steps[differs],
                  curve.relative[differs],
                  num_buckets=_BUCKETS,
              ),
          )
      )
  return lines


def _numbers(comparison: comparison_lib.Comparison) -> list[list[str]]:
  head = ['run', 'metric', 'common steps', 'first other step']
  head += [f'beyond {level:g}' for level in comparison_lib.LEVELS]
  head += ['largest', 'end: first', 'end: this']
  return [head] + [
      [
          curve.run,
          _short(curve.metric),
          f'{curve.num_steps:,}',
          _step(curve.first_step),
          *(_step(curve.beyond.get(level)) for level in comparison_lib.LEVELS),
          _largest(curve),
          *(
              f'{value:.5g}' if math.isfinite(value) else _finite(value)
              for value in curve.end
          ),
      ]
      for curve in comparison.curves
  ]


def _largest(curve: comparison_lib.CurveDifference) -> str:
  if curve.first_step is None:
    return _NO
  if not math.isfinite(curve.largest):
    return f'not finite at {curve.largest_step:,}'
  return f'{curve.largest:.1e} at {curve.largest_step:,}'


def _short(name: str) -> str:
  return name.replace(records_lib.LOSS, 'loss')


def _step(step: int | None) -> str:
  return _NO if step is None else f'{step:,}'


def _speeds(comparison: comparison_lib.Comparison) -> list[list[str]]:
  head = ['run', 'devices', 'tokens/s', 'tokens/s a device', 'MFU', 'goodput',
          'tokens per unit of money']  # fmt: skip
  return [head] + [
      [
          speed.run,
          _told(speed.num_devices, ',d'),
          _told(speed.tokens_per_second, ',.0f'),
          _told(speed.tokens_per_second_per_device, ',.0f'),
          _told(speed.mfu, '.1%'),
          _told(speed.goodput, '.1%'),
          _told(speed.tokens_per_money, ',.0f'),
      ]
      for speed in comparison.speeds
  ]


def _told(value: float | None, form: str) -> str:
  return _NO if value is None else format(value, form)


def _settings(comparison: comparison_lib.Comparison) -> list[list[str]]:
  head = ['kind', 'what', *(run.name for run in comparison.runs)]
  return [head] + [[d.kind, d.name, *d.values] for d in comparison.differences]


def _section(title: str, body: str) -> str:
  return f'<section><h2>{_text(title)}</h2>{body}</section>\n'


def _list(lines: Sequence[str]) -> str:
  items = ''.join(f'<li class="note">{_text(line)}</li>' for line in lines)
  return f'<ul class="findings">{items}</ul>'


def _table(rows: list[list[str]]) -> str:
  head, *body = rows
  if not body:
    return '<p class="soft">Nothing.</p>'
  cells = ''.join(f'<th>{_text(each)}</th>' for each in head)
  lines = ''.join(
      '<tr>' + ''.join(f'<td>{_text(each)}</td>' for each in row) + '</tr>'
      for row in body
  )
  return (
      f'<div class="card scroll"><table><tr>{cells}</tr>{lines}</table></div>'
  )


def _cell(text: Any) -> str:
  return str(text).replace('|', '\\|').replace('\n', ' ')


def _finite(value: float) -> float | str:
  if math.isfinite(value):
    return value
  return 'NaN' if math.isnan(value) else 'infinite'
