# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A ladder as one HTML file: its runs, its laws, and the run foretold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from t5wild.experiments import findings
from t5wild.experiments import ladder as ladder_lib
from t5wild.experiments import sweep_page
from t5wild.reports import html_document as document

_POINTS = 60  # of a curve
_ROOM = 1.5  # beyond the ends, as a factor
_text = document.escaped
_LOG = {'type': 'log', 'dtick': 'D2'}  # 1, 2, 5, 10, ...
_HEADS = ('size', 'parameters', 'tokens', 'steps', 'operations', 'loss',
          'by the law', 'status')  # fmt: skip


def html(found: findings.Findings) -> str:
  """The page."""
  figures = [_over_compute(found), _over_parameters(found), _over_tokens(found)]
  lines = ''.join(f'<p>{_text(line)}</p>' for line in found.lines)
  title = f'{found.predicted} foretold'
  sections = [
      f'<header><div><h1>{_text(title)}</h1><p class="soft">'
      f'{_text(found.metric)}</p></div><button id="theme" title="light or '
      'dark">light / dark</button></header>\n',
      f'<section class="card">{lines}</section>\n',
      sweep_page.drawings(figures),
      f'<section><h2>Runs</h2>{_table(found)}</section>\n',
  ]
  return document.document(
      title, sections, data={'figures': figures}, script='figures.js'
  )


def _over_compute(found: findings.Findings) -> dict[str, Any]:
  flops = [r.flops for r in found.runs] + [found.target.flops]
  compute = _between(flops)
  best = found.law.best_split(
      compute,
      flops_per_parameter_and_token=found.flops_per_parameter_and_token,
  )
  traces = [_line('lowest for the compute', 9, compute, found.law.loss(*best))]
  if found.power_law is not None:
    losses = found.power_law.loss(compute)
    traces.append(_line('plain power of compute', 8, compute, losses, 'dot'))
  traces += [
      _dots(name, ink, [r.flops for r in runs], runs)
      for ink, (name, runs) in enumerate(_by_size(found).items())
  ]
  traces += _target(found, found.target.flops)
  return _figure('compute', 'Loss over compute', 'operations', traces)


def _over_parameters(found: findings.Findings) -> dict[str, Any]:
  sizes = [r.num_parameters for r in found.runs]
  places = _between([*sizes, found.target.num_parameters])
  traces = []
  budgets = sorted({round(r.tokens, -3) for r in found.runs})
  for ink, tokens in enumerate(budgets):
    runs = [r for r in found.runs if round(r.tokens, -3) == tokens]
    name = f'{tokens:,.0f} tokens'
    traces += _with_law(
        found, name, ink, runs, places, lambda n, t=tokens: (n, t),
        place=lambda run: run.num_parameters,
    )  # fmt: skip
  tokens = found.target.tokens
  losses = found.law.loss(places, np.full_like(places, tokens))
  traces.append(_line(f'{tokens:,.0f} tokens', 8, places, losses, 'dash'))
  traces += _target(found, found.target.num_parameters)
  return _figure('parameters', 'Loss over parameters', 'parameters', traces)


def _over_tokens(found: findings.Findings) -> dict[str, Any]:
  places = _between([r.tokens for r in found.runs] + [found.target.tokens])
  traces = []
  for ink, (name, runs) in enumerate(_by_size(found).items()):
    size = runs[0].num_parameters
    traces += _with_law(
        found, name, ink, runs, places, lambda d, n=size: (n, d),
        place=lambda run: run.tokens,
    )  # fmt: skip
  size = found.target.num_parameters
  low, high = found.law.band(np.full_like(places, size), places)
  traces.insert(0, {
      'ink': 8, 'band': True, 'name': 'target, 95 %', 'hoverinfo': 'skip',
      'x': _numbers([*places, *places[::-1]]),
      'y': _numbers([*low, *high[::-1]]), 'showlegend': False,
  })  # fmt: skip
  losses = found.law.loss(np.full_like(places, size), places)
  traces.append(_line('target', 8, places, losses, 'dash'))
  traces += _target(found, found.target.tokens)
  return _figure('tokens', 'Loss over tokens', 'tokens', traces)


def _with_law(
    found: findings.Findings,
    name: str,
    ink: int,
    runs: Sequence[ladder_lib.Rung],
    places: np.ndarray,
    at: Callable[[np.ndarray], tuple[Any, Any]],
    *,
    place: Callable[[ladder_lib.Rung], float],
) -> list[dict[str, Any]]:
  parameters, tokens = at(places)
  losses = found.law.loss(*np.broadcast_arrays(parameters, tokens))
  line = _line(name, ink, places, losses)
  line['showlegend'] = False
  return [line, _dots(name, ink, [place(run) for run in runs], runs)]


def _by_size(
    found: findings.Findings,
) -> dict[str, list[ladder_lib.Rung]]:
  runs: dict[str, list[ladder_lib.Rung]] = {}
  for run in found.runs:
    runs.setdefault(f'{run.size}: {run.num_parameters:,}', []).append(run)
  return runs


def _between(values: Sequence[float]) -> np.ndarray:
  return np.geomspace(min(values) / _ROOM, max(values) * _ROOM, _POINTS)


def _figure(
    key: str, caption: str, across: str, traces: Sequence[dict[str, Any]]
) -> dict[str, Any]:
  losses = [y for trace in traces for y in trace['y']]
  loss_axis = {'type': 'log', 'exponentformat': 'none'}
  if max(losses) > 10 * min(losses):
    loss_axis['dtick'] = 'D2'  # 1, 2, 5, 10, ...
  return {
      'key': key,
      'caption': caption,
      'is_wide': key == 'compute',
      'has_legend': True,
      'x': {'title': across, 'axis': _LOG},
      'y': {'title': 'loss', 'axis': loss_axis},
      'traces': traces,
  }


def _line(name, ink, places, losses, dash='solid') -> dict[str, Any]:
  return {
      'ink': ink, 'mode': 'lines', 'name': _text(name), 'line': {'dash': dash},
      'x': _numbers(places), 'y': _numbers(losses), 'hoverinfo': 'skip',
  }  # fmt: skip


def _dots(name, ink, places, runs) -> dict[str, Any]:
  return {
      'ink': ink, 'mode': 'markers', 'name': _text(name), 'x': _numbers(places),
      'y': _numbers([run.result.value for run in runs]),
      'text': [
          f'{run.num_parameters:,} parameters, {run.tokens:,.0f} tokens'
          for run in runs
      ],
      'hovertemplate': '%{text}<br>%{y:.5~g}<extra></extra>',
  }  # fmt: skip


def _target(found: findings.Findings, place: float) -> list[dict[str, Any]]:
  predicted = found.predicted
  traces = [{
      'ink': 3, 'mode': 'markers', 'name': 'foretold', 'x': [place],
      'y': _numbers([predicted.value]),
      'marker': {'symbol': 'diamond-open', 'size': 12},
      'error_y': {
          'type': 'data', 'symmetric': False, 'thickness': 1.5,
          'array': _numbers([predicted.high - predicted.value]),
          'arrayminus': _numbers([predicted.value - predicted.low]),
      },
      'hovertemplate': f'{_text(predicted)}<extra>foretold</extra>',
  }]  # fmt: skip
  measured = found.target.result.value
  if measured is not None:
    traces.append({
        'ink': 1, 'mode': 'markers', 'name': 'came to', 'x': [place],
        'y': _numbers([measured]), 'marker': {'symbol': 'star', 'size': 12},
        'hovertemplate': '%{y:.5~g}<extra>came to</extra>',
    })  # fmt: skip
  return traces


def _numbers(values: Sequence[float]) -> list[Any]:
  return [document.number(value) for value in values]


def _table(found: findings.Findings) -> str:
  head = ''.join(f'<th class="number">{name}</th>' for name in _HEADS)
  rows = []
  for run in (*found.runs, *found.lost, found.target):
    value = run.result.value
    cells = (
        _text(run.size), f'{run.num_parameters:,}', f'{run.tokens:,.0f}',
        f'{run.num_steps:,}', f'{run.flops:.3g}',
        '–' if value is None else f'{value:.5g}',
        f'{found.law.loss(run.num_parameters, run.tokens):.5g}',
        _text(run.result.status),
    )  # fmt: skip
    rows.append(''.join(f'<td class="number">{cell}</td>' for cell in cells))
  body = ''.join(f'<tr>{row}</tr>' for row in rows)
  return (
      f'<div class="card scroll"><table><tr>{head}</tr>{body}</table></div>'
  )
