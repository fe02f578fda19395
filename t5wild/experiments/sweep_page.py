# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A sweep as one HTML file: the table, and what each value does."""

from __future__ import annotations

from collections.abc import Sequence
import math
import os
from typing import Any

import numpy as np

from t5wild.experiments import folder as folder_lib
from t5wild.experiments import points as points_lib
from t5wild.experiments import results as results_lib
from t5wild.experiments import sweep as sweep_lib
from t5wild.reports import downsample
from t5wild.reports import html_document as document
from t5wild.vitals import records as records_lib

_MOST_CURVES = 60
_BUCKETS = 100
_BEST_SHARE = 0.1
_MOST_TICKS = 8
_LOG_RATIO = 20.0  # of ends: from there on values are shown by logarithm
_text = document.escaped


def html(
    sweep: sweep_lib.Sweep,
    folder: folder_lib.Folder,
    results: Sequence[results_lib.Result],
) -> str:
  """The page.

  Args:
    sweep: see there.
    folder: of it.
    results: one for each run.
  """
  measure = sweep.measure
  ranked = results_lib.ranked(results, measure)
  counted = [result for result in ranked if result.value is not None]
  figures = []
  if counted:
    figures = [
        _parallel(counted, sweep),
        *_slices(counted, sweep),
        _curves(counted, sweep, folder),
    ]
  title = os.path.basename(os.path.abspath(folder.path))
  sections = [
      f'<header><div><h1>{_text(title)}</h1><p class="soft">'
      f'{_text(results_lib.summary(results))} · {_text(sweep.metric)}, '
      f'{measure.goal}imum first</p></div><button id="theme" title="light or '
      'dark">light / dark</button></header>\n',
      _best(counted),
      drawings(figures),
      f'<section><h2>All runs</h2>{_table(results, measure)}</section>\n',
  ]
  return document.document(
      title, sections, data={'figures': figures}, script='figures.js'
  )


def _figures_html(figures: Sequence[dict[str, Any]]) -> str:
  # What `figures.js` draws into.
  parts = []
  for figure in figures:
    wide = ' class="wide"' if figure.get('is_wide') else ''
    parts.append(
        f'<figure{wide}><figcaption><span>{_text(figure["caption"])}</span>'
        f'</figcaption><div class="plot" id="plot-{figure["key"]}"></div>'
        '</figure>'
    )
  return f'<div class="charts">{"".join(parts)}</div>'


def _best(counted: Sequence[results_lib.Result]) -> str:
  if not counted:
    return '<section><p class="card">No run has a result yet.</p></section>\n'
  best = counted[0]
  return (
      f'<section><p class="card">Best: <b>{best.value:.6g}</b> by <code>'
      f'{_text(results_lib.bindings_text(best.point.bindings))}</code>'
      '</p></section>\n'
  )


def drawings(figures: Sequence[dict[str, Any]]) -> str:
  """The section of the figures; what to install where there can be none."""
  if not figures:
    return ''
  if document.packed_library() is None:
    return (
        '<section><p class="card">The figures are missing: they need plotly '
        f'where the page is built. <code>{document.INSTALL}</code></p>'
        '</section>\n'
    )
  return (
      '<section><h2>Figures</h2><p class="card" id="too-old" hidden>This '
      'browser cannot unpack the plotting library: it takes one of 2023 or '
      'newer.</p><noscript><p class="card">The figures need JavaScript.</p>'
      f'</noscript>{_figures_html(figures)}</section>\n'
  )


def _table(
    results: Sequence[results_lib.Result], measure: results_lib.Measure
) -> str:
  heads, rows = results_lib.rows(results, measure)
  head = ''.join(
      f'<th title="{_text(name)}">{_text(results_lib.short(name))}</th>'
      for name in heads
  )
  body = ''.join(
      f'<tr>{"".join(f"<td>{_cell(value)}</td>" for value in row)}</tr>'
      for row in rows
  )
  return (
      f'<div class="card scroll"><table><tr>{head}</tr>{body}</table></div>'
  )


def _cell(value: Any) -> str:
  if value is None:
    return '–'
  if isinstance(value, float):
    return f'{value:.6g}'
  return _text(value)


class _Axis:
  """Values of one name as places on an axis, numbers or not."""

  def __init__(self, values: Sequence[Any]):
    self.is_number = all(
        isinstance(v, (int, float)) and not isinstance(v, bool) for v in values
    )
    self.is_log = False
    self.values = sorted(set(values)) if self.is_number else []
    if self.is_number:
      low, high = min(values), max(values)
      self.is_log = low > 0 and high / low >= _LOG_RATIO
    self.names = [] if self.is_number else list(
        dict.fromkeys(map(points_lib.gin_text, values))
    )

  def place(self, value: Any) -> float:
    """Where a value is."""
    if not self.is_number:
      return float(self.names.index(points_lib.gin_text(value)))
    return math.log10(value) if self.is_log else float(value)

  def scale(self) -> dict[str, Any]:
    """As an axis of a plot takes it."""
    if not self.is_number:
      return {'type': 'category'}
    scale = {'type': 'log'} if self.is_log else {}
    if len(self.values) <= _MOST_TICKS:
      scale |= {'tickvals': self.values,
                'ticktext': list(map(_said, self.values))}
    return scale  # fmt: skip


def _axes(
    counted: Sequence[results_lib.Result], sweep: sweep_lib.Sweep
) -> dict[str, _Axis]:
  return {
      name: _Axis([result.point.bindings[name] for result in counted])
      for name in sweep.values
  }


def _parallel(
    counted: Sequence[results_lib.Result], sweep: sweep_lib.Sweep
) -> dict[str, Any]:
  """A line a run through an axis for each name, and one for the metric.

  Drawn as plain lines: plotly's own parallel coordinates need WebGL, which not
  every browser has.
  """
  axes = [
      (results_lib.short(name), axis, [r.point.bindings[name] for r in counted])
      for name, axis in _axes(counted, sweep).items()
  ]
  values = [result.value for result in counted]
  axes.append((results_lib.short(sweep.metric), _Axis(values), values))
  heights = [_heights([axis.place(v) for v in vs]) for _, axis, vs in axes]
  num_best = max(1, round(len(counted) * _BEST_SHARE))
  traces = []
  # The best are drawn last, over the others.
  for row in reversed(range(len(counted))):
    is_best = row < num_best
    traces.append({
        'ink': 1 if is_best else 0,
        'mode': 'lines',
        'opacity': 1.0 if is_best else 0.35,
        'line': {'width': 2.6 if is_best else 1.2},
        'x': list(range(len(axes))),
        'y': [column[row] for column in heights],
        'text': [_said(vs[row]) for _, _, vs in axes],
        'name': _text(counted[row].point.name),
        'hovertemplate': '%{text}<extra>%{fullData.name}</extra>',
    })
  return {
      'key': 'parallel',
      'caption': 'A line a run, the best '
      + (f'{num_best} of {len(counted)} strong' if num_best > 1 else 'strong'),
      'is_wide': True,
      'has_legend': False,
      'x': {
          'title': '',
          'axis': {
              'tickvals': list(range(len(axes))),
              'ticktext': [_text(label) for label, _, _ in axes],
              'range': [-0.15, len(axes) - 0.7], 'gridwidth': 2,
          },
      },
      'y': {'title': '', 'axis': {'visible': False, 'range': [-0.1, 1.1]}},
      'annotations': [
          {
              'x': i, 'y': height, 'text': _text(told), 'showarrow': False,
              'xanchor': 'left', 'xshift': 4, 'font': {'size': 11},
          }
          for i, (_, axis, vs) in enumerate(axes)
          for height, told in _ticks(axis, vs)
      ],
      'traces': traces,
  }  # fmt: skip


def _heights(places: Sequence[float]) -> list[float]:
  """Places between 0 and 1; in the middle where all are the same."""
  low, high = min(places), max(places)
  return [(p - low) / (high - low) if high > low else 0.5 for p in places]


def _ticks(axis: _Axis, values: Sequence[Any]) -> list[tuple[float, str]]:
  """Heights and words along one axis: all values, or the ends of many."""
  by_place = {axis.place(value): value for value in values}
  places = sorted(by_place)
  if len(places) > _MOST_TICKS:
    places = [places[0], places[-1]]
  low, high = places[0], places[-1]
  return [
      ((p - low) / (high - low) if high > low else 0.5, _said(by_place[p]))
      for p in places
  ]


def _said(value: Any) -> str:
  if isinstance(value, float):
    return f'{value:.4g}'
  return str(value)


def _slices(
    counted: Sequence[results_lib.Result], sweep: sweep_lib.Sweep
) -> list[dict[str, Any]]:
  """The metric over one name, the best of each value joined."""
  figures = []
  metric = results_lib.short(sweep.metric)
  for number, (name, axis) in enumerate(_axes(counted, sweep).items()):
    shown = [
        value if axis.is_number else _text(points_lib.gin_text(value))
        for value in (r.point.bindings[name] for r in counted)
    ]
    best: dict[Any, float] = {}
    for value, result in zip(shown, counted, strict=True):
      best.setdefault(value, result.value)  # the best comes first
    ends = axis.values or list(map(_text, axis.names))
    figures.append({
        'key': f'slice{number}',
        'caption': f'{metric} over {name}',
        'has_legend': False,
        'x': {'title': results_lib.short(name), 'axis': axis.scale()},
        'y': {'title': metric, 'axis': {}},
        'traces': [
            {
                'ink': 0, 'mode': 'lines', 'x': ends,
                'y': [best[value] for value in ends],
                'hoverinfo': 'skip', 'opacity': 0.5,
            },
            {
                'ink': 0, 'mode': 'markers', 'x': shown,
                'y': [result.value for result in counted],
                'text': [_text(result.point.name) for result in counted],
                'hovertemplate': '%{text}<br>%{y:.6~g}<extra></extra>',
            },
        ],
    })  # fmt: skip
  return figures


def _curves(
    counted: Sequence[results_lib.Result],
    sweep: sweep_lib.Sweep,
    folder: folder_lib.Folder,
) -> dict[str, Any]:
  """The training loss of the best runs over steps."""
  name = f'train/{records_lib.LOSS}'
  traces = []
  for number, result in enumerate(counted[:_MOST_CURVES]):
    path = folder.run(result.point).run_dir.metrics_jsonl
    series = records_lib.series(records_lib.read_records(path), name)
    if not series:
      continue
    curve = downsample.curve(
        np.array([float(record.step) for record in series]),
        np.array([record.value for record in series]),
        num_buckets=_BUCKETS,
    )
    traces.append({
        'ink': number, 'mode': 'lines',
        'x': [document.number(step, digits=9) for step in curve.steps],
        'y': [document.number(value) for value in curve.values],
        'name': _text(result.point.name),
        'hovertemplate': '%{y:.5~g}<extra>%{fullData.name}</extra>',
    })  # fmt: skip
  return {
      'key': 'curves',
      'caption': 'Training loss'
      + (f', the best {_MOST_CURVES}' if len(counted) > _MOST_CURVES else ''),
      'is_wide': True,
      'has_legend': False,
      'x': {'title': 'step', 'axis': {'exponentformat': 'none'}},
      'y': {'title': 'loss', 'axis': {}},
      'traces': traces,
  }
