# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Actions on metrics: look at what was measured, say whether to stop."""

import abc
from collections.abc import Mapping, Sequence
import difflib
import enum
import math
from typing import Any

from absl import logging
import numpy as np

MetricValues = Mapping[str, Any]


@enum.unique
class ActionMode(enum.Enum):
  """After what an action runs."""

  TRAIN = 1
  TRAIN_EVAL = 2
  INFER_EVAL = 3


class BaseAction(abc.ABC):
  """Something done with the state and the newest metrics, on process 0.

  A subclass may say more of itself. `watched`, a pair (task, metric): names not
  there are then an error. `recall(values)`: called when a run resumes, with the
  values of that metric until then; returns whether the last one asked for the
  end. `stop_reason`: a text. `is_failure`: whether a run that it ends has
  failed (`exit_codes.NON_FINITE`).
  """

  @abc.abstractmethod
  def run(
      self, train_state: Any, metrics_by_task: Mapping[str, MetricValues]
  ) -> bool:
    """Acts; True asks for the end of training.

    Args:
      train_state: The current state.
      metrics_by_task: Task -> metric -> value: a number, or a clu value.
    """


ActionMapType = Mapping[ActionMode, Sequence[BaseAction]]


def parse_modes(
    actions: Mapping[str | ActionMode, Sequence[BaseAction]] | None,
) -> dict[ActionMode, Sequence[BaseAction]]:
  """Returns actions by mode, where gin may have given modes as names.

  Raises:
    ValueError: For an unknown mode, no list, or something that is no action.
  """
  parsed = {}
  for mode, of_mode in (actions or {}).items():
    if isinstance(of_mode, str) or not isinstance(of_mode, Sequence):
      raise ValueError(
          f'actions of mode {mode} are {of_mode!r}, expected a list of them: '
          f'in gin write {{{str(mode)!r}: [@MyAction()]}}'
      )
    for action in of_mode:
      if isinstance(action, type):
        raise ValueError(
            f'action {action.__name__} of mode {mode} is a class, expected an '
            f'object of it: in gin write @{action.__name__}() with parentheses'
        )
      if not hasattr(action, 'run'):
        raise ValueError(
            f'action {action!r} of mode {mode} has no method run, expected a '
            'subclass of trainer.BaseAction: in gin write @MyAction() with '
            'parentheses'
        )
    parsed[_parse_mode(mode)] = of_mode
  return parsed


def _parse_mode(mode: str | ActionMode) -> ActionMode:
  if isinstance(mode, ActionMode):
    return mode
  if mode not in ActionMode.__members__:
    close = difflib.get_close_matches(str(mode), ActionMode.__members__, n=1)
    hint = f' (did you mean {close[0]!r}?)' if close else ''
    raise ValueError(
        f'unknown action mode {mode!r}, expected one of '
        f'{list(ActionMode.__members__)}{hint}: correct train.actions'
    )
  return ActionMode[mode]


def asking(
    mode: ActionMode,
    actions: ActionMapType,
    train_state: Any,
    metrics_by_task: Mapping[str, MetricValues],
) -> list[BaseAction]:
  """Runs all actions of a mode; returns those that ask for the end."""
  # A list, not a generator: every action must see the metrics.
  return [
      action
      for action in actions.get(mode, ())
      if action.run(train_state, metrics_by_task)
  ]


def run_actions(
    mode: ActionMode,
    actions: ActionMapType,
    train_state: Any,
    metrics_by_task: Mapping[str, MetricValues],
) -> bool:
  """Runs all actions of a mode; True if any asks for the end of training."""
  return bool(asking(mode, actions, train_state, metrics_by_task))


class EarlyStoppingAction(BaseAction):
  """Stops when a metric has not improved in its newest `patience` values.

  As in T5X each value is compared with the one just before it, so a metric that
  swings is never stopped; `compare_with='best'` compares with the best so far.
  """

  def __init__(
      self,
      metric: tuple[str, str],
      mode: str,
      patience: int = 3,
      atol: float = 0.0,
      rtol: float = 0.0,
      *,
      compare_with: str = 'previous',
  ):
    """Keeps what to watch.

    Args:
      metric: Name of the task ('train' for training metrics) and name of its
        metric.
      mode: 'min' if the metric should fall, 'max' if it should rise.
      patience: Number of values in a row that are compared: it stops after
        `patience - 1` of them without improvement.
      atol: Smallest change that counts as improvement.
      rtol: The same, relative to the value compared with; both add up.
      compare_with: 'previous': each value with the one before it. 'best': each
        with the best value before it.

    Raises:
      ValueError: For an argument that makes no sense.
    """
    _check_choice('mode', mode, ('min', 'max'),
                  "write 'min' for a loss, 'max' for an accuracy")
    _check_choice('compare_with', compare_with, ('previous', 'best'),
                  "'previous' is T5X's")  # fmt: skip
    for name, value in (('atol', atol), ('rtol', rtol)):
      if not value >= 0:
        raise ValueError(
            f'{name} of EarlyStoppingAction is {value!r}, expected at least 0: '
            'it is the size of a change, whatever the mode'
        )
    if patience < 2:
      raise ValueError(
          f'patience of EarlyStoppingAction is {patience!r}, expected at least '
          '2: with less no two values are compared'
      )
    self._task, self._metric = self.watched = _checked_pair(metric)
    self._mode = mode
    self._patience = patience
    self._atol = atol
    self._rtol = rtol
    self._keeps_best = compare_with == 'best'
    self._history: list[float] = []

  @property
  def stop_reason(self) -> str:
    """Why it asks for the end."""
    return (
        f'{self._metric} of {self._task} has not improved{self._tolerance()} '
        f'in its last {self._patience} values {self._history}'
    )

  def _tolerance(self) -> str:
    sizes = {'atol': self._atol, 'rtol': self._rtol}
    named = [f'{name}={size:g}' for name, size in sizes.items() if size]
    return f' by more than {" + ".join(named)}' if named else ''

  def run(
      self, train_state: Any, metrics_by_task: Mapping[str, MetricValues]
  ) -> bool:
    """Returns True when the metric has stopped improving."""
    del train_state
    value = _find_number(self, metrics_by_task, self._task, self._metric)
    return value is not None and self._take(value)

  def recall(self, values: Sequence[float]) -> bool:
    """Forgets all and takes what a run saw before it was resumed.

    Args:
      values: Values of the metric, in their order.

    Returns:
      Whether the last of them asked for the end.
    """
    self._history = []
    asked = False
    for value in values:
      asked = self._take(value)
    return asked

  def _take(self, value: float) -> bool:
    if self._keeps_best:
      return self._take_with_best(value)
    self._history = [*self._history, value][-self._patience :]
    if len(self._history) < self._patience:
      return False
    pairs = zip(self._history[1:], self._history[:-1], strict=True)
    # NaN compares False both ways; it is no reason to stop here.
    return not any(
        self._improved(*pair) or math.isnan(sum(pair)) for pair in pairs
    )

  def _take_with_best(self, value: float) -> bool:
    """The history begins with the best value, until it is beaten."""
    if math.isnan(value):
      return False
    if self._history and not self._improved(value, self._history[0]):
      self._history.append(value)
    else:
      self._history = [value]
    return len(self._history) >= self._patience

  def _improved(self, current: float, previous: float) -> bool:
    change = self._atol + self._rtol * abs(previous)
    if self._mode == 'min':
      return current < previous - change
    return current > previous + change


class TerminateOnNanAction(BaseAction):
  """Stops when a metric is NaN or infinite."""

  # A run that ends so has failed; a restart would repeat it.
  is_failure = True

  def __init__(self, task: str, metric: str = 'loss'):
    """Keeps what to watch.

    Args:
      task: Name of the task ('train' for training metrics).
      metric: Name of its metric.
    """
    self._task, self._metric = self.watched = _checked_pair((task, metric))
    self._value = math.nan

  @property
  def stop_reason(self) -> str:
    """Why it asks for the end."""
    return f'{self._metric} of {self._task} is {self._value}'

  def run(
      self, train_state: Any, metrics_by_task: Mapping[str, MetricValues]
  ) -> bool:
    """Returns True when the metric is not finite."""
    del train_state
    value = _find_number(self, metrics_by_task, self._task, self._metric)
    if value is None or math.isfinite(value):
      return False
    self._value = value
    return True


def _check_choice(
    name: str, value: Any, choices: Sequence[str], mend: str
) -> None:
  if value not in choices:
    raise ValueError(
        f'{name} of EarlyStoppingAction is {value!r}, expected '
        f'{" or ".join(map(repr, choices))}: {mend}'
    )


def _checked_pair(metric: Any) -> tuple[str, str]:
  if (
      isinstance(metric, tuple | list)
      and len(metric) == 2
      and all(isinstance(name, str) for name in metric)
  ):
    return tuple(metric)
  raise ValueError(
      f'metric of an action is {metric!r}, expected a task and a metric: write '
      "('my_task', 'accuracy')"
  )


def _find_number(
    action: BaseAction,
    metrics_by_task: Mapping[str, MetricValues],
    task: str,
    metric: str,
) -> float | None:
  """Returns a metric as a float; None, with a warning, if it is not there.

  `action_checks` refuses names that never were there before it comes to this.
  """
  name = type(action).__name__
  if task not in metrics_by_task:
    logging.warning(
        '%s did not run: no task %r, expected one of %s',
        name, task, sorted(metrics_by_task),
    )
    return None
  values = metrics_by_task[task]
  if metric not in values:
    logging.warning(
        '%s did not run: task %r has no metric %r, expected one of %s',
        name, task, metric, sorted(values),
    )
    return None
  number = as_number(values[metric])
  if number is None:
    logging.warning(
        '%s did not run: metric %r of task %r is %r, expected a number',
        name, metric, task, values[metric],
    )
  return number


def as_number(value: Any) -> float | None:
  """Returns a metric's value as a float, or None if it is none."""
  # clu wraps a number as Scalar(value).
  array = np.asarray(getattr(value, 'value', value))
  if array.size != 1 or not np.issubdtype(array.dtype, np.number):
    return None
  return float(array.reshape(()))
