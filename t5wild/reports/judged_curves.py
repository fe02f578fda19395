# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The curves that a report judges, how they are called, and which steps a
record of one stands for.
"""

from __future__ import annotations

from collections.abc import Sequence

from t5wild.reports import events as events_lib
from t5wild.reports import history as history_lib
from t5wild.reports import panels
from t5wild.vitals import records as records_lib


def words(name: str) -> str:
  """A record's name as a person says it."""
  parts = name.split('/')
  if 'gradient_norm' in name or 'grad_norm' in name:
    return 'The gradient norm'
  if parts[0] in ('train', 'learning'):
    return 'The training loss'
  task = f' of {"/".join(parts[1:-1])}' if len(parts) > 2 else ''
  return f'The held-out loss{task}'


def of_kind(
    history: history_lib.History, key: str
) -> list[history_lib.Column]:
  """The curves of a panel."""
  kind = next(kind for kind in panels.KINDS if kind.key == key)
  return [history.series(name) for name in panels.chosen_names(history, kind)]


def training_loss(history: history_lib.History) -> history_lib.Column | None:
  """The first curve of the loss in training."""
  curves = of_kind(history, 'loss')
  mine = [c for c in curves if c.name.startswith(('train/', 'learning/'))]
  return mine[0] if mine else None


def event(
    kind: str, column: history_lib.Column, row: int, text: str
) -> events_lib.Event:
  """A record of a curve as an event."""
  return events_lib.Event(
      kind=kind,
      step=int(column.steps[row]),
      seconds=float(column.seconds[row]),
      text=text,
  )


def seen_at(
    history: history_lib.History,
    column: history_lib.Column,
    row: int,
    names: Sequence[str],
) -> tuple[str, records_lib.Record | None]:
  """The steps that a record is of, `287` or `286-290`, and what saw it exactly.

  A record of training is the mean of the steps since the one before it. Where
  the run itself saw the step, in events.jsonl, it is that one; None where it
  did not.

  Args:
    history: the run.
    column: the curve.
    row: of the record.
    names: of events that tell the step.
  """
  first, last = steps_of(column, row)
  seen = [
      each
      for each in history.events
      if each.name in names and first <= each.step <= last
  ]
  if seen:
    earliest = min(seen, key=lambda each: each.step)
    return f'{earliest.step:,}', earliest
  return (f'{first:,}-{last:,}' if first < last else f'{last:,}'), None


def steps_of(column: history_lib.Column, row: int) -> tuple[int, int]:
  """The first and the last step that a record is the mean of."""
  last = int(column.steps[row])
  is_mean = column.name.startswith('train/') and row > 0
  return (int(column.steps[row - 1]) + 1 if is_mean else last), last
