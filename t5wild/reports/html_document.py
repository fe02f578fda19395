# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""One HTML file that needs nothing else: no network, no folder.

The plotting library is plotly's JavaScript, taken from the installed package
when the page is built and put into it compressed; the browser unpacks it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
import functools
import gzip
import html
import importlib.resources
import importlib.util
import json
import math
import pathlib
from typing import Any

from t5wild.reports import downsample
from t5wild.reports import panels as panels_lib

INSTALL = 'pip install plotly'
_SCRIPT = 'package_data/plotly.min.js'
_ASSETS = importlib.resources.files('t5wild.reports') / 'page'
# Nothing may be fetched, whatever the page holds.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src "
    "'unsafe-inline'; img-src data: blob:; font-src data:"
)
# Scripts that stand before one that draws.
_BEFORE = {
    'report.js': ('shared.js', 'places.js'),
    'figures.js': ('shared.js',),
}
_WIDE = ('loss', 'difference')
_AXES = (
    '<label>over <select id="axis"><option value="step">steps</option>'
    '<option value="time">time</option></select></label>'
)


def document(
    title: str,
    sections: Iterable[str],
    *,
    data: dict[str, Any],
    script: str = 'report.js',
) -> str:
  """The whole file.

  Args:
    title: of the window.
    sections: HTML.
    data: what the script draws.
    script: of `page/`, that draws: `report.js`, or `figures.js` for figures
      that are made ready here.
  """
  scripts = '\n'.join(map(_asset, (*_BEFORE[script], script)))
  library = packed_library()
  packed = (
      f'<script type="application/octet-stream" id="library">{library}'
      '</script>\n'
      if library
      else ''
  )
  return ''.join([
      '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n',
      '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
      f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n',
      f'<title>{escaped(title)} · t5wild</title>\n',
      f'<style>{style(_asset("report.css"))}</style></head>\n<body>\n',
      *sections,
      '<script type="application/json" id="data">',
      _harmless(data),
      '</script>\n',
      packed,
      f'<script>{scripts}</script>\n',
      '</body></html>\n',
  ])


def curves(figures: Iterable[str], *, has_axes: bool = True) -> str:
  """The section of the charts; what to install where there can be none.

  Args:
    figures: HTML of each chart.
    has_axes: whether curves may be seen over time as well as over steps.
  """
  if packed_library() is None:
    return (
        '<section><h2>Curves</h2><p class="card">The curves are missing: they '
        'need plotly where the page is built. <code>'
        f'{INSTALL}</code>, then the same command again; or <code>--format=png'
        '</code>, which does without.</p></section>\n'
    )
  return (
      '<section id="curves"><h2>Curves</h2><p class="card" id="too-old" hidden>'
      'This browser cannot unpack the plotting library: it takes one of 2023 '
      'or newer.</p><noscript><p class="card">The curves need JavaScript.</p>'
      '<style>.plot:empty::before { content: none; }</style></noscript>'
      '<div class="controls"><label>smoothing <input id="smoothing" '
      'type="range" min="0" max="0.98" step="0.02" value="0.6"><span '
      f'id="smoothing-value">0.60</span></label>{_AXES if has_axes else ""}'
      '<button id="whole">whole run</button></div>'
      f'<div class="charts">{"".join(figures)}</div></section>\n'
  )


def figure(panel: panels_lib.Panel) -> str:
  """A chart with a scale of its own."""
  small = f' <small>{escaped(panel.unit)}</small>' if panel.unit else ''
  log = '' if panel.is_stacked else '<button class="log">log</button>'
  wide = ' class="wide"' if panel.key in _WIDE else ''
  return (
      f'<figure{wide}><figcaption><span>{escaped(panel.title)}{small}</span>{log}'
      f'</figcaption><div class="plot" id="plot-{panel.key}"></div></figure>'
  )


def wide_figure(key: str, title: str, *, height: int) -> str:
  """A wide chart, whose vertical axis has names."""
  return (
      f'<figure class="wide"><figcaption>{escaped(title)}</figcaption>'
      f'<div class="plot" style="height:{height}px" id="plot-{key}"></div>'
      '</figure>'
  )


@functools.cache
def packed_library() -> str | None:
  """The library, compressed, as base64; None where plotly is absent."""
  spec = importlib.util.find_spec('plotly')
  if spec is None or not spec.submodule_search_locations:
    return None
  path = pathlib.Path(spec.submodule_search_locations[0]) / _SCRIPT
  try:
    script = path.read_bytes()
  except OSError:
    return None
  return base64.b64encode(gzip.compress(script, 6, mtime=0)).decode()


def panel_data(panel: panels_lib.Panel) -> dict[str, Any]:
  """A panel as the script takes it."""
  return {
      'key': panel.key,
      'is_log': panel.is_log,
      'is_noisy': panel.is_noisy,
      'is_stacked': panel.is_stacked,
      'lines': [_line(line) for line in panel.lines],
  }


def style(own: str) -> str:
  """The style that all pages have, and a page's own."""
  return f'{_asset("shared.css")}\n{own}'


def escaped(value: Any) -> str:
  """A text as HTML."""
  return html.escape(str(value))


def _line(line: panels_lib.Line) -> dict[str, Any]:
  curve: downsample.Curve = line.curve
  # The middle of a part need be no truer than a pixel.
  middle = 6
  return {
      'label': line.label,
      'points': curve.num_points,
      'x': [number(step, digits=9) for step in curve.steps],
      'y': [number(value) for value in curve.values],
      'mean_x': [number(step, digits=middle) for step in curve.mean_steps],
      'mean_y': [number(value) for value in curve.means],
      'bad': [
          [step, 'NaN' if math.isnan(value) else 'infinite']
          for step, value in curve.not_finite[:200]
      ],
  }


def number(value: float, *, digits: int = 6) -> float | int | str | None:
  """A JSON number of some digits; words for infinities, null for nothing."""
  value = float(value)
  if math.isnan(value):
    return None
  if math.isinf(value):
    return 'infinite'
  short = float(f'{value:.{digits}g}')
  return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _asset(name: str) -> str:
  return (_ASSETS / name).read_text(encoding='utf-8')


def _harmless(data: dict[str, Any]) -> str:
  """JSON that cannot end the script's element."""
  text = json.dumps(data, separators=(',', ':'), allow_nan=False)
  return text.replace('<', '\\u003c').replace('&', '\\u0026')
