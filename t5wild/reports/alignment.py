# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Where a run stands by steps, tokens, wall time or money."""

from __future__ import annotations

import numpy as np

from t5wild.reports import history as history_lib

AXES = ('step', 'tokens', 'hours', 'money')
TOKENS_PER_SECOND = (
    'train/timing/nonpadding_tokens_per_second',
    'train/timing/nonpadding_target_tokens_per_second',
    'train/timing/target_tokens_per_second',
)
_STEP_SECONDS = 'train/timing/step_seconds'


class NoAxisError(ValueError):
  """A run does not tell what it is to be aligned by; three parts."""


def places(
    history: history_lib.History,
    steps: np.ndarray,
    *,
    axis: str,
    money_an_hour: float | None = None,
) -> np.ndarray:
  """Where steps of a run lie on an axis, [steps].

  Args:
    history: the run.
    steps: increasing.
    axis: one of `AXES`.
    money_an_hour: of all devices of the run; needed for 'money' only.

  Raises:
    NoAxisError: the run does not tell.
  """
  if axis == 'step':
    return steps
  if axis == 'tokens':
    return _tokens(history, steps)
  hours = _hours(history, steps)
  if axis == 'hours':
    return hours
  if money_an_hour is None:
    raise NoAxisError(
        f'The run {history.path!r} tells no price, or not its devices\n'
        '  expected: money for an hour of a device.\n'
        '  do: --price_per_device_hour=2.5, one for all runs or one each, '
        'separated by commas'
    )
  return hours * money_an_hour


def tokens_per_second(history: history_lib.History) -> np.ndarray | None:
  """The rate at each report, [reports]; None where it is not recorded."""
  for name in TOKENS_PER_SECOND:
    series = history.series(name)
    if series is not None:
      return series.values
  return None


def _tokens(history: history_lib.History, steps: np.ndarray) -> np.ndarray:
  """Tokens that were trained on until each step, padding left out."""
  rate = tokens_per_second(history)
  seconds = history.series(_STEP_SECONDS)
  if rate is None or seconds is None or len(rate) != len(seconds.values):
    raise NoAxisError(
        f'The run {history.path!r} does not tell its tokens\n'
        '  expected: records of tokens a second and of seconds a step.\n'
        '  do: --by=step'
    )
  counts = np.diff(seconds.steps, prepend=0)
  tokens = np.cumsum(np.nan_to_num(rate * seconds.values * counts))
  return np.interp(
      steps, np.append(0, seconds.steps), np.append(0.0, tokens)
  )


def _hours(history: history_lib.History, steps: np.ndarray) -> np.ndarray:
  longest = max(history.clocks, key=lambda c: len(c.steps))
  clock = history_lib.in_order_of_steps(longest)
  seconds = np.maximum.accumulate(clock.seconds) - history.first_seconds
  return np.interp(steps, clock.steps, seconds) / 3600
