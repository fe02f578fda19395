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
  """Something done with the state and the newest metrics."""

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
    ValueError: For an unknown mode, or something without a method `run`.
  """
  parsed = {}
  for mode, of_mode in (actions or {}).items():
    for action in of_mode:
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


def run_actions(
    mode: ActionMode,
    actions: ActionMapType,
    train_state: Any,
    metrics_by_task: Mapping[str, MetricValues],
) -> bool:
  """Runs all actions of a mode; True if any asks for the end of training."""
  # A list, not a generator: every action must see the metrics.
  asked = [
      action.run(train_state, metrics_by_task)
      for action in actions.get(mode, ())
  ]
  return any(asked)


class EarlyStoppingAction(BaseAction):
  """Stops when a metric has not improved from one look to the next.

  Improvement is against the value just before, `patience - 1` times in a row.
  """

  def __init__(
      self,
      metric: tuple[str, str],
      mode: str,
      patience: int = 3,
      atol: float = 0.0,
      rtol: float = 0.0,
  ):
    """Keeps what to watch.

    Args:
      metric: Name of the task and name of its metric.
      mode: 'min' if the metric should fall, 'max' if it should rise.
      patience: Number of values in a row that are compared.
      atol: Smallest change that counts as improvement.
      rtol: The same, relative to the value before; both add up.

    Raises:
      ValueError: For an argument that makes no sense.
    """
    if mode not in ('min', 'max'):
      raise ValueError(
          f"mode of EarlyStoppingAction is {mode!r}, expected 'min' or 'max': "
          "write 'min' for a loss, 'max' for an accuracy"
      )
    for name, value in (('atol', atol), ('rtol', rtol)):
      if value < 0:
        raise ValueError(
            f'{name} of EarlyStoppingAction is {value!r}, expected at least 0: '
            'it is the size of a change, whatever the mode'
        )
    if patience < 2:
      raise ValueError(
          f'patience of EarlyStoppingAction is {patience!r}, expected at least '
          '2: with less no two values are compared'
      )
    self._task, self._metric = metric
    self._mode = mode
    self._patience = patience
    self._atol = atol
    self._rtol = rtol
    self._history: list[float] = []

  def _improved(self, current: float, previous: float) -> bool:
    change = self._atol + self._rtol * abs(previous)
    if self._mode == 'min':
      return current < previous - change
    return current > previous + change

  def run(
      self, train_state: Any, metrics_by_task: Mapping[str, MetricValues]
  ) -> bool:
    """Returns True when the metric has stopped improving."""
    del train_state
    value = _find_number(self, metrics_by_task, self._task, self._metric)
    if value is None:
      return False
    self._history = [*self._history, value][-self._patience :]
    if len(self._history) < self._patience:
      return False
    pairs = zip(self._history[1:], self._history[:-1], strict=True)
    # NaN compares False both ways; it is no reason to stop here.
    if any(self._improved(*pair) or math.isnan(sum(pair)) for pair in pairs):
      return False
    logging.warning(
        'Stopping: %s of %s has not improved in its last %d values %s',
        self._metric,
        self._task,
        self._patience,
        self._history,
    )
    return True


class TerminateOnNanAction(BaseAction):
  """Stops when a metric is NaN or infinite."""

  def __init__(self, task: str, metric: str = 'loss'):
    """Keeps what to watch.

    Args:
      task: Name of the task ('train' for training metrics).
      metric: Name of its metric.
    """
    self._task = task
    self._metric = metric

  def run(
      self, train_state: Any, metrics_by_task: Mapping[str, MetricValues]
  ) -> bool:
    """Returns True when the metric is not finite."""
    del train_state
    value = _find_number(self, metrics_by_task, self._task, self._metric)
    if value is None or math.isfinite(value):
      return False
    logging.warning(
        'Stopping: %s of %s is %s', self._metric, self._task, value
    )
    return True


def _find_number(
    action: BaseAction,
    metrics_by_task: Mapping[str, MetricValues],
    task: str,
    metric: str,
) -> float | None:
  """Returns a metric as a float; None, with a warning, if it is not there."""
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
  # clu wraps a number as Scalar(value).
  value = np.asarray(getattr(values[metric], 'value', values[metric]))
  if value.size != 1 or not np.issubdtype(value.dtype, np.number):
    logging.warning(
        '%s did not run: metric %r of task %r is %r, expected a number',
        name, metric, task, values[metric],
    )
    return None
  return float(value.reshape(()))
