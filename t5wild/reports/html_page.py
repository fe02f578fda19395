# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A report as one HTML file."""

from __future__ import annotations

from collections.abc import Iterable
import time

import t5wild
from t5wild.reports import contents as contents_lib
from t5wild.reports import events_table
from t5wild.reports import findings as findings_lib
from t5wild.reports import gin_text
from t5wild.reports import html_document as document
from t5wild.reports import money_table
from t5wild.reports import page_data
from t5wild.reports import run_texts

_text = document.escaped
_WORDS = {'goodput': 'goodput: time in steps that count'}
_MEANINGS = {
    'goodput': 'share of the wall time, over all restarts, that went into '
    'steps whose result is in the model; the rest is in the table of times'
}
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
  sections = [
      _header(contents),
      _findings(contents),
      _facts(contents),
      _curves(contents),
      events_table.section(
          contents.events, first_seconds=contents.first_seconds
      ),
      _goodput(contents),
      _samples(contents.texts.samples),
      _settings(contents.texts.settings),
      _environment(contents.texts),
      _missing(contents),
  ]
  return document.document(
      contents.name,
      sections,
      data=page_data.of(contents, reload_seconds=reload_seconds),
  )


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
      f'<div title="{_text(_MEANINGS.get(label, label))}">'
      f'<dt>{_text(_WORDS.get(label, label))}</dt><dd>{_text(value)}</dd></div>'
      for label, value in contents.facts.items()
  )
  return f'<dl class="facts">{tiles}</dl>\n'


def _findings(contents: contents_lib.Contents) -> str:
  if not contents.findings:
    items = '<p class="soft">Nothing stands out.</p>'
  else:
    items = ''.join(
        _finding(each, contents.first_seconds) for each in contents.findings
    )
    items = f'<ul class="findings">{items}</ul>'
  return f'<section><h2>What stands out</h2>{items}</section>\n'


def _finding(finding: findings_lib.Finding, first_seconds: float) -> str:
  button = ''
  if finding.step is not None:
    place = f'data-step="{finding.step}"'
    if finding.seconds is not None:
      place += f' data-seconds="{finding.seconds - first_seconds:.3f}"'
    if finding.chart is not None:
      place += f' data-chart="{_text(finding.chart)}"'
    button = f'<button {place}>show</button>'
  return (
      f'<li class="{finding.level}"><b>{_LEVELS[finding.level]}</b>'
      f'{_text(finding.text)}{button}</li>'
  )


def _curves(contents: contents_lib.Contents) -> str:
  figures = [document.figure(panel) for panel in contents.panels]
  if contents.heat_map is not None:
    keys = [panel.key for panel in contents.panels]
    # Beside the norm of all, or at the end.
    place = keys.index('gradient_norm') if 'gradient_norm' in keys else -1
    figures.insert(
        place + 1 if place >= 0 else len(figures),
        document.wide_figure(
            'heat',
            contents.heat_map.title,
            height=min(760, 110 + 15 * len(contents.heat_map.groups)),
        ),
    )
  if contents.events:
    timeline = document.wide_figure('timeline', 'Events', height=300)
    figures.insert(1, timeline)
  return document.curves(figures)


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
      f'{_text(row.label)}</td><td class="number">{row.time}</td>'
      f'<td class="number">{row.share:.1%}</td>'
      + (f'<td class="number">{row.money:,.2f}</td>' if has_money else '')
      + '</tr>'
      for row in rows
  )
  note = money_table.note(contents)
  return (
      '<section><h2>Where the time went</h2><div class="card">'
      f'<div class="bar">{bar}</div><div class="scroll"><table><tr><th>kind'
      '</th><th class="number">time</th><th class="number">share</th>'
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
      f'<details class="printed"><summary>set</summary>'
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
