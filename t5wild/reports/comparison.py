# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs held against the first of them: numbers, speed, settings, a verdict."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import os

import numpy as np

from t5wild.reports import alignment
from t5wild.reports import history as history_lib
from t5wild.reports import panels
from t5wild.reports import run_texts
from t5wild.reports import setting_differences
from t5wild.reports import time_spent

# Relative differences whose first steps are told.
LEVELS = (1e-6, 1e-4, 1e-2)
_COMPARED = ('loss', 'held_out', 'gradient_norm', 'learning_rate')
_LAST_SHARE = 0.1  # of the common steps, whose median stands for the end


class NothingInCommonError(ValueError):
  """Runs cannot be compared; the message has three parts."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
  """One run of a comparison.

  Attributes:
    name: by which it is told from the others.
    history: its numbers.
    texts: its configuration and environment.
    spent: its time and money; None = not recorded.
  """

  name: str
  history: history_lib.History
  texts: run_texts.Texts
  spent: time_spent.TimeSpent | None

  @property
  def money_an_hour(self) -> float | None:
    """Of all devices; None = not known."""
    if self.spent is None or self.spent.money is None:
      return None
    hours = self.spent.total_seconds / 3600
    return sum(self.spent.money.values()) / hours if hours else None


@dataclasses.dataclass(frozen=True, kw_only=True)
class CurveDifference:
  """How a curve of a run differs from the first run's, at common steps.

  Attributes:
    run: its name.
    metric: the record's name.
    num_steps: common steps.
    first_step: the first with other bits; None = none.
    beyond: level -> the first step whose relative difference is larger.
    largest: the largest relative difference; infinite where one is not finite.
    largest_step: its step.
    end: medians of the last tenth of the common steps: the first run's, this
      one's.
    steps: the common steps.
    relative: the relative difference at each.
  """

  run: str
  metric: str
  num_steps: int
  first_step: int | None
  beyond: dict[float, int]
  largest: float
  largest_step: int
  end: tuple[float, float]
  steps: np.ndarray
  relative: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class Speed:
  """What a run makes of its devices; None = not recorded."""

  run: str
  tokens_per_second: float | None
  tokens_per_second_per_device: float | None
  tokens_per_money: float | None
  mfu: float | None
  goodput: float | None
  num_devices: int | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
  """All that is told of some runs; the first is held against the others.

  `left_out` are names of runs that share nothing with the first.
  """

  runs: Sequence[Run]
  curves: Sequence[CurveDifference]
  differences: Sequence[setting_differences.Difference]
  speeds: Sequence[Speed]
  left_out: Sequence[str] = ()


def read_run(
    path: str, *, name: str, price_per_device_hour: float | None
) -> Run:
  """Reads a run.

  Raises:
    history.NoRunError: there is none.
  """
  history = history_lib.read_history(path)
  texts = run_texts.read_texts(history)
  spent = time_spent.time_spent(
      history,
      num_devices=texts.num_devices,
      price_per_device_hour=price_per_device_hour,
  )
  return Run(name=name, history=history, texts=texts, spent=spent)


def names_of(paths: Sequence[str]) -> list[str]:
  """The last parts of paths that tell them apart."""
  parts = [os.path.abspath(path).split(os.sep) for path in paths]
  for length in range(1, max(map(len, parts)) + 1):
    names = ['/'.join(each[-length:]) for each in parts]
    if len(set(names)) == len(names):
      return names
  return [f'{name} ({i + 1})' for i, name in enumerate(names)]


def compare(runs: Sequence[Run]) -> Comparison:
  """Compares runs with the first that has something in common with another.

  Raises:
    NothingInCommonError: no two runs share a metric at a common step.
  """
  for first in runs[:-1]:
    others = [run for run in runs if run is not first]
    curves = {run.name: _curves(first, run) for run in others}
    if any(curves.values()):
      break
  else:
    raise NothingInCommonError(_nothing(*runs[:2]))
  kept = [first, *(run for run in others if curves[run.name])]
  return Comparison(
      runs=kept,
      curves=[curve for found in curves.values() for curve in found],
      differences=setting_differences.differences([r.texts for r in kept]),
      speeds=[_speed(run) for run in kept],
      left_out=[run.name for run in others if not curves[run.name]],
  )


def compared_names(history: history_lib.History) -> list[str]:
  """Names of a run's curves that are compared, the loss first."""
  return [
      name
      for kind in panels.KINDS
      if kind.key in _COMPARED
      for name in panels.chosen_names(history, kind)
  ]


def _curves(first: Run, run: Run) -> list[CurveDifference]:
  theirs = set(compared_names(run.history))
  found = []
  for name in compared_names(first.history):
    if name in theirs:
      difference = _difference(first, run, name)
      if difference is not None:
        found.append(difference)
  return found


def _difference(first: Run, run: Run, name: str) -> CurveDifference | None:
  a, b = first.history.series(name), run.history.series(name)
  steps, rows_a, rows_b = np.intersect1d(
      a.steps, b.steps, assume_unique=True, return_indices=True
  )
  if not len(steps):
    return None
  x, y = a.values[rows_a], b.values[rows_b]
  relative = relative_difference(x, y)
  other = np.flatnonzero(relative > 0)
  largest = int(np.argmax(relative))
  num_last = max(1, int(len(steps) * _LAST_SHARE))
  return CurveDifference(
      run=run.name,
      metric=name,
      num_steps=len(steps),
      first_step=int(steps[other[0]]) if len(other) else None,
      beyond={
          level: int(steps[np.argmax(relative > level)])
          for level in LEVELS
          if (relative > level).any()
      },
      largest=float(relative[largest]),
      largest_step=int(steps[largest]),
      end=(float(np.median(x[-num_last:])), float(np.median(y[-num_last:]))),
      steps=steps,
      relative=relative,
  )


def relative_difference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
  """|x - y| over the larger of both; 0 where the same, NaN with NaN too.

  Infinite where one of both is not finite.
  """
  with np.errstate(invalid='ignore', divide='ignore'):
    scale = np.maximum(np.abs(x), np.abs(y))
    relative = np.abs(x - y) / np.where(scale > 0, scale, 1.0)
  same = (x == y) | (np.isnan(x) & np.isnan(y))
  finite = np.isfinite(x) & np.isfinite(y)
  return np.where(same, 0.0, np.where(finite, relative, np.inf))


def _speed(run: Run) -> Speed:
  rates = alignment.tokens_per_second(run.history)
  rate = None if rates is None else float(np.nanmedian(rates))
  mfu = run.history.series('train/timing/mfu')
  devices = run.texts.num_devices
  return Speed(
      run=run.name,
      tokens_per_second=rate,
      tokens_per_second_per_device=rate / devices if rate and devices else None,
      tokens_per_money=_tokens_per_money(run),
      mfu=None if mfu is None else float(np.nanmedian(mfu.values)),
      goodput=run.spent.productive_share if run.spent else None,
      num_devices=devices,
  )


def _tokens_per_money(run: Run) -> float | None:
  """Tokens of the whole run for its whole money, what was lost included."""
  if run.spent is None or run.spent.money is None:
    return None
  money = sum(run.spent.money.values())
  try:
    tokens = alignment.places(
        run.history, np.array([run.history.last_step]), axis='tokens'
    )
  except alignment.NoAxisError:
    return None
  return float(tokens[0]) / money if money else None


def _nothing(first: Run, run: Run) -> str:
  def told(one: Run) -> str:
    names = compared_names(one.history)
    steps = one.history.last_step
    return f'    {one.name}: {", ".join(names[:4]) or "nothing"} (to {steps:,})'

  return (
      f'{run.name!r} and {first.name!r} have no metric at a common step\n'
      f'{told(first)}\n{told(run)}\n'
      '  expected: records of the same name at the same steps.\n'
      '  do: compare runs of one task, with the same stats_period or a multiple'
  )
