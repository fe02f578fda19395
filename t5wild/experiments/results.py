# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What the runs of a sweep came to: one row each, as a table and as CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import csv
import dataclasses
import difflib
import io
import logging
import math
import os
from typing import Any

import rich.console
import rich.table

from t5wild.experiments import folder as folder_lib
from t5wild.experiments import points as points_lib
from t5wild.vitals import records as records_lib

GOALS = ('min', 'max')
_LISTED = 40


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measure:
  """What runs are judged by.

  Attributes:
    metric: a record's name, such as `training_eval/TASK/accuracy`.
    goal: 'min' or 'max'.
  """

  metric: str
  goal: str = 'min'

  def __post_init__(self):
    """Refuses a goal that there is not."""
    if self.goal not in GOALS:
      raise points_lib.BadExperimentError(
          f'goal is {self.goal!r}\n  expected: one of '
          f"{', '.join(map(repr, GOALS))}.\n  do: goal = 'min'"
      )

  def is_better(self, a: float, b: float) -> bool:
    """Whether `a` is the better result."""
    return a < b if self.goal == 'min' else a > b

  def order(self, value: float) -> float:
    """Smaller is better."""
    return value if self.goal == 'min' else -value


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
  """One run.

  Attributes:
    point: what it bound.
    status: one of `folder.STATUSES`.
    value: of the metric; None unless the run is done and it is finite.
    step: of the value.
    seconds: of training, all attempts together.
    rung: of a halving sweep, the last that it reached, from 0.
    why: why there is no value.
  """

  point: points_lib.Point
  status: str
  value: float | None = None
  step: int | None = None
  seconds: float | None = None
  rung: int = 0
  why: str = ''


def result_of(
    run: folder_lib.RunFolder,
    point: points_lib.Point,
    *,
    measure: Measure,
    steps: int | None = None,
    rung: int = 0,
    of: str = 'sweep.Sweep.metric',
) -> Result:
  """A run's result after some steps; None = those of the recipe.

  Raises:
    points.BadExperimentError: it is done, and has no such metric.
  """
  status = run.status(steps)
  end = run.end()
  told = Result(
      point=point,
      status=status,
      seconds=end.seconds if end else None,
      rung=rung,
      why=end.why if end and status != 'missing' else '',
  )
  if status != 'done':
    return told
  last = last_value(run, measure.metric, until=steps)
  if last is None:
    raise points_lib.BadExperimentError(
        unknown_metric(run, measure.metric, of=of)
    )
  if not math.isfinite(last.value):
    return dataclasses.replace(
        told, status='diverged', why=f'{measure.metric} is {last.value}'
    )
  return dataclasses.replace(told, value=last.value, step=last.step)


def last_value(
    run: folder_lib.RunFolder, metric: str, *, until: int | None = None
) -> records_lib.Record | None:
  """The last record of a metric, up to a step; None = there is none."""
  series = records_lib.series(_records(run), metric)
  series = [r for r in series if until is None or r.step <= until]
  return series[-1] if series else None


def unknown_metric(
    run: folder_lib.RunFolder, metric: str, *, of: str
) -> str:
  """The error of a metric that a run did not record."""
  names = sorted({record.name for record in _records(run)})
  # Evaluations and losses are meant more often than timings.
  names.sort(key=lambda name: ('/timing/' in name, 'eval/' not in name))
  close = difflib.get_close_matches(metric, names, n=1)
  hint = f'; did you mean {close[0]!r}?' if close else ''
  listed = '\n    '.join(names[:_LISTED])
  more = len(names) - _LISTED
  rest = f'\n    and {more} more' if more > 0 else ''
  return (
      f'{run.run_dir.path!r} is done and did not record {metric!r}{hint}\n'
      f'  expected: one of\n    {listed}{rest}\n'
      f'  do: mend {of}; the same command again reads it, and trains nothing '
      'twice'
  )


def _records(run: folder_lib.RunFolder) -> list[records_lib.Record]:
  if not os.path.exists(run.run_dir.metrics_jsonl):
    logging.warning('%s is not there', run.run_dir.metrics_jsonl)
    return []
  return list(records_lib.read_records(run.run_dir.metrics_jsonl))


def ranked(results: Sequence[Result], measure: Measure) -> list[Result]:
  """The best first; those without a value last."""

  def place(result: Result):
    if result.value is None:
      return (1, 0, 0.0)
    return (0, -result.rung, measure.order(result.value))

  return sorted(results, key=place)


def rows(
    results: Sequence[Result], measure: Measure
) -> tuple[list[str], list[list[Any]]]:
  """Heads and rows of the table, the best first."""
  names = list(dict.fromkeys(n for r in results for n in r.point.bindings))
  with_rungs = any(result.rung for result in results)
  heads = [*names, measure.metric, 'status', 'step', 'seconds',
           *(['rung'] if with_rungs else []), 'run', 'why']  # fmt: skip
  table = []
  for result in ranked(results, measure):
    row = [_bound(result.point.bindings, name) for name in names]
    row += [result.value, result.status, result.step, result.seconds]
    row += [result.rung] if with_rungs else []
    table.append([*row, result.point.name, result.why])
  return heads, table


def _bound(bindings: Mapping[str, Any], name: str) -> Any:
  """A value as it is; a None that was bound is a word, and no gap."""
  value = bindings.get(name, '')
  return 'None' if value is None else value


def as_csv(results: Sequence[Result], measure: Measure) -> str:
  """The table as CSV, numbers in full; empty where there is no value."""
  text = io.StringIO()
  heads, table = rows(results, measure)
  writer = csv.writer(text, lineterminator='\n')
  writer.writerow(heads)
  writer.writerows(
      ['' if value is None else value for value in row] for row in table
  )
  return text.getvalue()


def print_table(results: Sequence[Result], measure: Measure) -> None:
  """Shows the table in the terminal."""
  heads, table = rows(results, measure)
  table_view = rich.table.Table(
      caption=f'{measure.metric}, {measure.goal}imum first'
  )
  hidden = {heads.index('run')}
  if not any(row[-1] for row in table):
    hidden.add(len(heads) - 1)
  kept = [i for i in range(len(heads)) if i not in hidden]
  for i in kept:
    table_view.add_column(short(heads[i]), overflow='fold')
  for row in table:
    style = None if row[heads.index(measure.metric)] is not None else 'red'
    table_view.add_row(*(_said(row[i]) for i in kept), style=style)
  rich.console.Console().print(table_view)


def short(name: str) -> str:
  """The last part of a name."""
  last = name.rsplit('/', 1)[-1].rsplit('.', 1)[-1]
  return 'loss' if last == records_lib.LOSS else last


def summary(results: Sequence[Result]) -> str:
  """How many runs are what, in a line."""
  counts: dict[str, int] = {}
  for result in results:
    counts[result.status] = counts.get(result.status, 0) + 1
  return ', '.join(
      f'{counts[status]} {status}'
      for status in folder_lib.STATUSES
      if status in counts
  )


def bindings_text(bindings: Mapping[str, Any]) -> str:
  """Bindings as flags, for a person to copy."""
  return ' '.join(points_lib.flags_of(bindings))


def _said(value: Any) -> str:
  if value is None:
    return '–'
  if isinstance(value, float):
    return f'{value:.5g}'
  return str(value)
