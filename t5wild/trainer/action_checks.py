# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Refuses actions on tasks and metrics that are not there."""

from collections.abc import Collection, Iterator, Mapping
import difflib
from typing import Any

from t5wild.trainer import actions as actions_lib

TRAIN_TASK = 'train'
# The metrics thread adds these to what the step returns.
_ADDED = ('timing/', 'memory/', 'compilation_cache/')


class UnknownMetricError(ValueError):
  """An action watches what no evaluation and no step gives."""


def watched_by(
    actions: actions_lib.ActionMapType, mode: actions_lib.ActionMode
) -> Iterator[tuple[Any, str, str]]:
  """Yields (action, task, metric) of those actions that say what they watch."""
  for action in actions.get(mode, ()):
    watched = getattr(action, 'watched', None)
    if watched is not None:
      yield action, *watched


def check_tasks(
    actions: actions_lib.ActionMapType,
    tasks: Mapping[actions_lib.ActionMode, Collection[str]],
    *,
    eval_period: int | None,
) -> None:
  """Refuses actions of evaluations that a run does not have.

  Args:
    actions: By mode.
    tasks: Names of the tasks of each mode; empty where a run has no data.
    eval_period: The run's; where it is None, nothing is evaluated.

  Raises:
    UnknownMetricError: Lists the tasks there are.
  """
  for mode, of_mode in actions.items():
    missing = _missing(mode, tasks[mode], eval_period)
    if of_mode and missing:
      names = ', '.join(type(action).__name__ for action in of_mode)
      raise UnknownMetricError(
          f'train.actions has {names} of mode {mode.name}, and this run has no '
          f'such evaluation, since {missing} is None: expected one. Set it, or '
          'drop the actions.'
      )
    for action, task, _ in watched_by(actions, mode):
      if task not in tasks[mode]:
        raise UnknownMetricError(
            f'{type(action).__name__} of mode {mode.name} watches task '
            f'{task!r}, expected one of {sorted(tasks[mode])}'
            f'{_hint(task, tasks[mode])}: correct train.actions'
        )


def _missing(mode, tasks: Collection[str], eval_period) -> str | None:
  """Names the argument of train without which a mode never comes."""
  if mode is actions_lib.ActionMode.TRAIN:
    return None
  if not tasks:
    return f'{mode.name.lower()}_dataset_cfg'
  return 'eval_period' if eval_period is None else None


def check_step_metrics(
    actions: actions_lib.ActionMapType, names: Collection[str]
) -> None:
  """Refuses actions on metrics that a training step does not return.

  Args:
    actions: By mode.
    names: Names of the metrics of a step.

  Raises:
    UnknownMetricError: Lists the metrics there are.
  """
  for action, task, metric in watched_by(actions, actions_lib.ActionMode.TRAIN):
    is_part = metric.rsplit('/', 1)[0] in names  # of one that is no scalar
    if metric not in names and not metric.startswith(_ADDED) and not is_part:
      raise _unknown(action, task, metric, names)


def check_metrics(
    actions: actions_lib.ActionMapType,
    mode: actions_lib.ActionMode,
    metrics_by_task: Mapping[str, actions_lib.MetricValues],
) -> None:
  """Refuses actions on metrics that the first evaluation does not have.

  Raises:
    UnknownMetricError: Lists the metrics there are; or one is no number.
  """
  for action, task, metric in watched_by(actions, mode):
    values = metrics_by_task.get(task)
    if values is None:
      continue  # a task without a batch; that was told
    if metric not in values:
      raise _unknown(action, task, metric, values)
    if actions_lib.as_number(values[metric]) is None:
      raise UnknownMetricError(
          f'{type(action).__name__} watches {metric!r} of task {task!r}, which '
          f'is {values[metric]!r}, expected a number: choose another of '
          f'{sorted(values)} in train.actions'
      )


def _unknown(action, task, metric, names) -> UnknownMetricError:
  return UnknownMetricError(
      f'{type(action).__name__} watches metric {metric!r} of task {task!r}, '
      f'expected one of {sorted(names)}{_hint(metric, names)}: correct '
      'train.actions'
  )


def _hint(name: str, names: Collection[str]) -> str:
  close = difflib.get_close_matches(name, list(names), n=1)
  return f' (did you mean {close[0]!r}?)' if close else ''
