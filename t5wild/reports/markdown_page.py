# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A report as Markdown, for notes and issues: tables instead of curves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from t5wild.reports import contents as contents_lib
from t5wild.reports import events as events_lib
from t5wild.reports import money_table
from t5wild.reports import panels as panels_lib

_COLUMNS = 8  # steps of a curve that the table shows
# The others are only counted.
_ROUTINE = ('save', 'evaluate')
_LEVELS = {'bad': '**Wrong.**', 'warning': '**Look.**', 'note': 'Note.'}


def page(
    contents: contents_lib.Contents, *, picture: str | None = None
) -> str:
  """The whole text.

  Args:
    contents: of the run.
    picture: file name of the curves beside it; None = no picture.
  """
  parts = [
      f'# {contents.name}',
      contents.state,
      _table(['', ''], [[k, v] for k, v in contents.facts.items()]),
      '## What stands out',
      _findings(contents),
  ]
  if picture is not None:
    parts += ['## Curves', f'![curves]({picture})']
  parts += ['## Numbers', *map(_numbers, contents.panels)]
  parts += ['## Events', _events(contents.events)]
  rows = money_table.rows(contents)
  if rows:
    parts += ['## Where the time went', _time(rows), money_table.note(contents)]
  parts += _texts(contents)
  if contents.missing:
    missing = '\n'.join(f'- {each}' for each in contents.missing)
    parts += ['## What this run did not leave', missing]
  return '\n\n'.join(parts) + '\n'


def _findings(contents: contents_lib.Contents) -> str:
  if not contents.findings:
    return 'Nothing.'
  return '\n'.join(
      f'- {_LEVELS[each.level]} {each.text}' for each in contents.findings
  )


def _numbers(panel: panels_lib.Panel) -> str:
  """Each curve at a few steps, with its lowest and highest value."""
  unit = f' ({panel.unit})' if panel.unit else ''
  head = ['', 'lowest', 'highest', 'last', 'over the run']
  rows = []
  for line in panel.lines:
    curve = line.curve
    if not len(curve.values):
      rows.append([line.label, '', '', 'not finite', ''])
      continue
    low, high = int(np.argmin(curve.values)), int(np.argmax(curve.values))
    chosen = np.linspace(0, len(curve.values) - 1, _COLUMNS).round().astype(int)
    steps, values = curve.steps, curve.values
    last = f'{values[-1]:.5g} at {steps[-1]:,}'
    if curve.not_finite and curve.not_finite[-1][0] > steps[-1]:
      step, value = curve.not_finite[-1]
      last = f'{str(value).replace("nan", "NaN")} at {step:,}'
    rows.append([
        line.label,
        f'{values[low]:.5g} at {steps[low]:,}',
        f'{values[high]:.5g} at {steps[high]:,}',
        last,
        ' '.join(f'{values[row]:.3g}' for row in np.unique(chosen)),
    ])
  return f'### {panel.title}{unit}\n\n{_table(head, rows)}'


def _events(events: Sequence[events_lib.Event]) -> str:
  lines = [
      f'- step {event.step:,}: {event.text}'
      for event in events
      if event.kind not in _ROUTINE
  ]
  for kind, words in (('save', 'saves'), ('evaluate', 'evaluations')):
    steps = sorted({event.step for event in events if event.kind == kind})
    if steps:
      lines.append(f'- {words}: {len(steps):,}, the last at step {steps[-1]:,}')
  return '\n'.join(lines) or 'None.'


def _time(rows: Sequence[money_table.Row]) -> str:
  head = ['kind', 'time', 'share']
  has_money = rows[0].money is not None
  if has_money:
    head.append('money')
  return _table(
      head,
      [
          [row.label, row.time, f'{row.share:.1%}']
          + ([f'{row.money:,.2f}'] if has_money else [])
          for row in rows
      ],
  )


def _texts(contents: contents_lib.Contents) -> list[str]:
  parts = []
  samples = contents.texts.samples
  if samples:
    last = samples[-1].step
    parts.append(f'## What the model writes at step {last:,}')
    parts += [
        f'{label}:\n\n{_fenced(text)}'
        for sample in samples
        if sample.step == last
        for label, text in sample.texts.items()
    ]
  is_set = [each for each in contents.texts.settings if each.is_set]
  if is_set:
    lines = '\n'.join(f'{each.name} = {each.value}' for each in is_set)
    parts += ['## Configuration that was set', _fenced(lines, 'python')]
  environment = contents.texts.environment
  if environment:
    rows = [[name, value] for name, value in environment.items()]
    parts += ['## Environment', _table(['', ''], rows)]
  return parts


def _fenced(text: str, language: str = '') -> str:
  """A block of code, whatever back ticks the text has."""
  fence = '```'
  while fence in text:
    fence += '`'
  return f'{fence}{language}\n{text}\n{fence}'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
  lines = [head, ['---'] * len(head), *rows]
  return '\n'.join(
      f'| {" | ".join(_cell(each) for each in line)} |' for line in lines
  )


def _cell(text: str) -> str:
  return str(text).replace('|', '\\|').replace('\n', ' ')
