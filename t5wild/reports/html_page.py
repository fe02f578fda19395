# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A report as one HTML file that needs nothing else: no network, no folder.

The plotting library is plotly's JavaScript, taken from the installed package
when the page is built and put into it compressed; the browser unpacks it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
import gzip
import html
import importlib.resources
import importlib.util
import json
import math
import pathlib
import time
from typing import Any

import t5wild
from t5wild.reports import contents as contents_lib
from t5wild.reports import downsample
from t5wild.reports import events as events_lib
from t5wild.reports import findings as findings_lib
from t5wild.reports import gin_text
from t5wild.reports import money_table
from t5wild.reports import panels as panels_lib
from t5wild.reports import run_texts

INSTALL = 'pip install plotly'
_SCRIPT = 'package_data/plotly.min.js'
# Nothing may be fetched, whatever the page holds.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src "
    "'unsafe-inline'; img-src data: blob:; font-src data:"
)
_WIDE = ('loss',)
_LEVELS = {'bad': 'Wrong', 'warning': 'Look', 'note': 'Note'}


def page(
    contents: contents_lib.Contents, *, reload_seconds: int | None = None
) -> str:
  """The whole page.

  Args:
    contents: of the run.
    reload_seconds: how often a page that is served asks for itself anew; None =
      never.
  """
  library = packed_library()
  return ''.join([
      '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n',
      '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
      f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n',
      f'<title>{_text(contents.name)} · t5wild</title>\n',
      f'<style>{_asset("report.css")}</style></head>\n<body>\n',
      _header(contents),
      _facts(contents),
      _findings(contents),
      _curves(contents, has_library=library is not None),
      _goodput(contents),
      _samples(contents.texts.samples),
      _settings(contents.texts.settings),
      _environment(contents.texts),
      _missing(contents),
      '<script type="application/json" id="data">',
      _data(contents, reload_seconds),
      '</script>\n',
      (
          f'<script type="application/octet-stream" id="library">{library}'
          '</script>\n'
          if library
          else ''
      ),
      f'<script>{_asset("report.js")}</script>\n</body></html>\n',
  ])


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


def _asset(name: str) -> str:
  folder = importlib.resources.files('t5wild.reports') / 'page'
  return (folder / name).read_text(encoding='utf-8')


def _text(value: Any) -> str:
  return html.escape(str(value))


def _header(contents: contents_lib.Contents) -> str:
  made = time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime(contents.made_seconds))
  began = time.strftime(
      '%Y-%m-%d %H:%M UTC', time.gmtime(contents.first_seconds)
  )
  return (
      f'<header><div><h1>{_text(contents.name)}</h1>'
      f'<p>{_text(contents.state)}</p>'
      f'<p class="soft">began {began}; report of {made}, '
      f't5wild {t5wild.__version__}</p></div>'
      '<button id="theme" title="light or dark">light / dark</button>'
      '</header>\n'
  )


def _facts(contents: contents_lib.Contents) -> str:
  tiles = ''.join(
      f'<div><dt>{_text(label)}</dt><dd>{_text(value)}</dd></div>'
      for label, value in contents.facts.items()
  )
  return f'<dl class="facts">{tiles}</dl>\n'


def _findings(contents: contents_lib.Contents) -> str:
  if not contents.findings:
    items = '<p class="soft">Nothing stands out.</p>'
  else:
    items = ''.join(map(_finding, contents.findings))
    items = f'<ul class="findings">{items}</ul>'
  return f'<section><h2>What stands out</h2>{items}</section>\n'


def _finding(finding: findings_lib.Finding) -> str:
  button = ''
  if finding.step is not None:
    button = f'<button data-step="{finding.step}">show</button>'
  return (
      f'<li class="{finding.level}"><b>{_LEVELS[finding.level]}</b>'
      f'{_text(finding.text)}{button}</li>'
  )


def _curves(contents: contents_lib.Contents, *, has_library: bool) -> str:
  if not has_library:
    return (
        '<section><h2>Curves</h2><p class="card">The curves are missing: they '
        'need plotly where the page is built. <code>'
        f'{INSTALL}</code>, then <code>t5wild report</code> again; or '
        '<code>t5wild report --format=png</code>, which does without.</p>'
        '</section>\n'
    )
  figures = [_figure(panel) for panel in contents.panels]
  if contents.heat_map is not None:
    keys = [panel.key for panel in contents.panels]
    # Beside the norm of all, or at the end.
    place = keys.index('gradient_norm') if 'gradient_norm' in keys else -1
    figures.insert(
        place + 1 if place >= 0 else len(figures),
        _plot(
            'heat',
            contents.heat_map.title,
            height=min(760, 110 + 15 * len(contents.heat_map.groups)),
        ),
    )
  if contents.events:
    figures.insert(1, _plot('timeline', 'Events', height=300))
  return (
      '<section id="curves"><h2>Curves</h2><p class="card" id="too-old" hidden>'
      'This browser cannot unpack the plotting library: it takes one of 2023 '
      'or newer.</p><noscript><p class="card">The curves need JavaScript.</p>'
      '</noscript><div class="controls"><label>smoothing <input id="smoothing" '
      'type="range" min="0" max="0.98" step="0.02" value="0.6"><span '
      'id="smoothing-value">0.60</span></label><label>over <select id="axis">'
      '<option value="step">steps</option><option value="hours">hours</option>'
      '</select></label><button id="whole">whole run</button></div>'
      f'<div class="charts">{"".join(figures)}</div></section>\n'
  )


def _figure(panel: panels_lib.Panel) -> str:
  small = f' <small>{_text(panel.unit)}</small>' if panel.unit else ''
  log = '' if panel.is_stacked else '<button class="log">log</button>'
  wide = ' class="wide"' if panel.key in _WIDE else ''
  return (
      f'<figure{wide}><figcaption><span>{_text(panel.title)}{small}</span>{log}'
      f'</figcaption><div class="plot" id="plot-{panel.key}"></div></figure>'
  )


def _plot(key: str, title: str, *, height: int) -> str:
  """A wide chart without a scale of its own."""
  return (
      f'<figure class="wide"><figcaption>{_text(title)}</figcaption>'
      f'<div class="plot" style="height:{height}px" id="plot-{key}"></div>'
      '</figure>'
  )


def _goodput(contents: contents_lib.Contents) -> str:
  rows = money_table.rows(contents)
  if not rows:
    return ''
  bar = ''.join(
      f'<i style="flex:{row.share:.6f};background:{row.colour}" '
      f'title="{_text(row.label)}: {row.share:.1%}"></i>'
      for row in rows
  )
  has_money = rows[0].money is not None
  head = '<th class="number">money</th>' if has_money else ''
  body = ''.join(
      f'<tr><td><span class="key" style="background:{row.colour}"></span>'
      f'{_text(row.label)}</td><td class="number">{row.hours:.3f}</td>'
      f'<td class="number">{row.share:.1%}</td>'
      + (f'<td class="number">{row.money:,.2f}</td>' if has_money else '')
      + '</tr>'
      for row in rows
  )
  note = money_table.note(contents)
  return (
      '<section><h2>Where the time went</h2><div class="card">'
      f'<div class="bar">{bar}</div><div class="scroll"><table><tr><th>kind'
      '</th><th class="number">hours</th><th class="number">share</th>'
      f'{head}</tr>{body}</table></div><p class="soft">{_text(note)}</p></div>'
      '</section>\n'
  )


def _samples(samples: Iterable[run_texts.Sample]) -> str:
  by_step: dict[int, list[run_texts.Sample]] = {}
  for sample in samples:
    by_step.setdefault(sample.step, []).append(sample)
  if not by_step:
    return ''
  parts = []
  for step in sorted(by_step, reverse=True):
    is_open = ' open' if not parts else ''
    texts = ''.join(map(_sample, by_step[step]))
    parts.append(
        f'<details{is_open}><summary>step {step:,}</summary>{texts}</details>'
    )
  return (
      '<section><h2>What the model writes</h2><div class="card">'
      f'{"".join(parts)}</div></section>\n'
  )


def _sample(sample: run_texts.Sample) -> str:
  texts = ''.join(
      f'<div><span class="soft">{_text(label)}</span><pre>{_text(text)}</pre>'
      '</div>'
      for label, text in sample.texts.items()
  )
  return f'<div class="sample">{texts}</div>'


def _settings(settings: list[gin_text.Setting]) -> str:
  if not settings:
    return ''
  is_set = [each for each in settings if each.is_set]
  defaults = [each for each in settings if not each.is_set]
  return (
      '<section><h2>Configuration</h2><div class="card">'
      f'<p class="soft">{len(is_set):,} values that the recipe or a flag set; '
      f'{len(defaults):,} are defaults.</p>'
      f'<details class="printed" open><summary>set</summary>'
      f'<table class="gin">{_gin_rows(is_set)}</table></details>'
      f'<details><summary>defaults</summary><table class="gin">'
      f'{_gin_rows(defaults)}</table></details></div></section>\n'
  )


def _gin_rows(settings: list[gin_text.Setting]) -> str:
  return ''.join(
      f'<tr{"" if each.is_set else " class=default"}><td>{_text(each.name)}'
      f'</td><td>{_text(each.value)}</td></tr>'
      for each in settings
  )


def _environment(texts: run_texts.Texts) -> str:
  values = {'mesh': texts.mesh} if texts.mesh else {}
  values |= texts.environment
  if not values:
    return ''
  rows = ''.join(
      f'<tr><td>{_text(name)}</td><td>{_text(value)}</td></tr>'
      for name, value in values.items()
  )
  return (
      '<section><h2>Environment</h2><div class="card"><table class="gin">'
      f'{rows}</table></div></section>\n'
  )


def _missing(contents: contents_lib.Contents) -> str:
  if not contents.missing:
    return ''
  items = ''.join(f'<li>{_text(each)}</li>' for each in contents.missing)
  return (
      f'<section><h2>What this run did not leave</h2><ul class="soft">{items}'
      '</ul></section>\n'
  )


def _data(contents: contents_lib.Contents, reload_seconds: int | None) -> str:
  """What the script draws, as JSON that cannot end the script's element."""
  heat = contents.heat_map
  value = {
      'reload_seconds': reload_seconds,
      'clock': [
          [int(step) for step in contents.clock[0]],
          [round(float(hours), 5) for hours in contents.clock[1]],
      ],
      'kinds': events_lib.KINDS,
      'panels': [
          {
              'key': panel.key,
              'is_log': panel.is_log,
              'is_noisy': panel.is_noisy,
              'is_stacked': panel.is_stacked,
              'lines': [_line(line) for line in panel.lines],
          }
          for panel in contents.panels
      ],
      'heat_map': heat and {
          'groups': list(heat.groups),
          'steps': [int(step) for step in heat.steps],
          'values': [[_number(v, digits=4) for v in r] for r in heat.values],
      },
      'events': [
          {
              'kind': event.kind,
              'step': event.step,
              'hours': round(
                  (event.seconds - contents.first_seconds) / 3600, 4
              ),
              'text': event.text,
          }
          for event in contents.events
          if math.isfinite(event.seconds)
      ],
  }
  text = json.dumps(value, separators=(',', ':'), allow_nan=False)
  return text.replace('<', '\\u003c').replace('&', '\\u0026')


def _line(line: panels_lib.Line) -> dict[str, Any]:
  curve: downsample.Curve = line.curve
  return {
      'label': line.label,
      'points': curve.num_points,
      'x': [int(step) for step in curve.steps],
      'y': [_number(value) for value in curve.values],
      'mean_x': [round(float(step)) for step in curve.mean_steps],
      'mean_y': [_number(value) for value in curve.means],
      'bad': [
          [step, 'NaN' if math.isnan(value) else 'infinite']
          for step, value in curve.not_finite[:200]
      ],
  }


def _number(value: float, *, digits: int = 6) -> float | int | str | None:
  """A JSON number of some digits; words for infinities, null for nothing."""
  value = float(value)
  if math.isnan(value):
    return None
  if math.isinf(value):
    return 'infinite'
  short = float(f'{value:.{digits}g}')
  return int(short) if short.is_integer() and abs(short) < 1e15 else short
