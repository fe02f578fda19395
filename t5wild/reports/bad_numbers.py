# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Findings of numbers that are not finite: since when, and how that ended."""

from __future__ import annotations

import dataclasses

import numpy as np

from t5wild import run_dir as run_dir_lib
from t5wild.reports import endings
from t5wild.reports import finding as finding_lib
from t5wild.reports import history as history_lib
from t5wild.reports import judged_curves
from t5wild.reports import run_texts

_SEEN = ('vitals/not_finite',)
_SAVED = 'train/checkpoint/saved'


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Bad:
  """A curve from its first bad record on."""

  chart: str
  column: history_lib.Column
  row: int
  number: int

  @property
  def is_to_the_end(self) -> bool:
    return not np.isfinite(self.column.values[-1])

  @property
  def what(self) -> str:
    value = self.column.values[self.row]
    return 'NaN' if np.isnan(value) else 'infinite'


def find(history: history_lib.History) -> list[finding_lib.Finding]:
  """One finding for all curves that go bad at the same step."""
  alike: dict[tuple, list[_Bad]] = {}
  for key in ('loss', 'gradient_norm'):
    for column in judged_curves.of_kind(history, key):
      rows = np.flatnonzero(~np.isfinite(column.values))
      if len(rows):
        bad = _Bad(
            chart=key, column=column, row=int(rows[0]), number=len(rows)
        )
        step = int(column.steps[bad.row])
        alike.setdefault((step, bad.what, bad.is_to_the_end), []).append(bad)
  return [_finding(history, curves) for curves in alike.values()]


def _finding(
    history: history_lib.History, curves: list[_Bad]
) -> finding_lib.Finding:
  first = curves[0]
  where, seen = judged_curves.seen_at(history, first.column, first.row, _SEEN)
  names = [judged_curves.words(curve.column.name) for curve in curves]
  names = list(dict.fromkeys(names))
  who = ' and '.join([names[0], *(_small(name) for name in names[1:])])
  is_many = len(names) > 1
  text = f'{who} {"are" if is_many else "is"} {first.what}'
  if first.is_to_the_end:
    text += f' from step {where} on, and stay{"" if is_many else "s"} so to '
    text += 'the end'
    more = _ending(history, first)
  else:
    text += f' at step {where}, in {first.number:,} of '
    text += f'{len(first.column.steps):,} records'
    more = ''
  return finding_lib.Finding(
      level='bad',
      text=f'{text}.{more}',
      step=int(first.column.steps[first.row]) if seen is None else seen.step,
      # The run's own event is on the timeline already.
      events=[judged_curves.event('not_finite', first.column, first.row, text)]
      if seen is None
      else [],
      weight=finding_lib.SURE,
      chart=first.chart,
      seconds=None if seen is None else seen.seconds,
      label=first.what,
  )


def _small(name: str) -> str:
  return name[:1].lower() + name[1:]


def _ending(history: history_lib.History, bad: _Bad) -> str:
  """How the run ended for it, and from where it can go on."""
  words = ''
  total = run_texts.read_total_steps(history)
  last = history.last_step
  if total is not None and last < total and endings.ending(history):
    words = (
        f' The run ended because of it at step {last:,} of {total:,}, by all '
        'that is recorded.'
    )
  column = history.columns.get(_SAVED)
  if column is None:
    return words
  good = int(bad.column.steps[bad.row - 1]) if bad.row else 0
  saved = [int(step) for step in column.steps if step <= good]
  if not saved:
    return f'{words} No checkpoint was saved before it.'
  kept = run_dir_lib.RunDir(history.path).local_checkpoint_steps()
  here = [step for step in saved if step in kept]
  if here:
    return f'{words} The last good checkpoint is that of step {max(here):,}.'
  return (
      f'{words} The last good checkpoint was that of step {max(saved):,}, '
      'which is no longer in the folder.'
  )
