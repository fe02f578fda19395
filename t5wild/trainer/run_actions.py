# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a run does when something is due: log, save, evaluate."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from t5wild import compilation_cache
from t5wild.trainer import actions as actions_lib
from t5wild.trainer import loop
from t5wild.trainer import metrics_manager as metrics_manager_lib
from t5wild.trainer import profiling

# Where each evaluation's figures are written.
COLLECTIONS = {
    actions_lib.ActionMode.TRAIN_EVAL: 'training_eval',
    actions_lib.ActionMode.INFER_EVAL: 'inference_eval',
}


class Evaluator(Protocol):
  """Evaluates the newest state and writes what it found."""

  def evaluate(self, step: int) -> Mapping[str, Mapping[str, float]]:
    """Returns task -> metric -> value."""


class RunActions:
  """Implements `loop.DueActions` with the parts it is handed."""

  def __init__(
      self,
      *,
      trainer: Any,
      train_metrics: metrics_manager_lib.MetricsManager,
      evaluators: Mapping[actions_lib.ActionMode, Evaluator],
      save_checkpoint: Callable[[int], None],
      save_retry_is_due: Callable[[], bool],
      on_evaluation: Callable[[int, Mapping[str, float]], None],
      user_actions: Mapping[actions_lib.ActionMode, Sequence[Any]],
      profiler: profiling.StepProfiler | None,
  ):
    """Keeps the parts.

    Args:
      trainer: Holds the state.
      train_metrics: Writes `train/...`.
      evaluators: Those of TRAIN_EVAL and INFER_EVAL that the run has.
      save_checkpoint: Starts a save of the state after a step.
      save_retry_is_due: Whether a failed save should be tried again.
      on_evaluation: Told the step and metric -> value of each evaluation.
      user_actions: T5X's actions by mode.
      profiler: Asked after each step, or None.
    """
    self._trainer = trainer
    self._train_metrics = train_metrics
    self._evaluators = dict(evaluators)
    self._save_checkpoint = save_checkpoint
    self._user_actions = user_actions
    self._profiler = profiler
    self._save_retry_is_due = save_retry_is_due
    self._on_evaluation = on_evaluation
    self._stop_asked = False

  def log(self, step: int, interval: loop.Interval) -> None:
    """Hands an interval to the metrics thread; waits for nothing."""
    on_loop = interval.seconds - interval.off_loop_seconds
    cache = compilation_cache.counts()
    future = self._train_metrics.submit(
        step,
        interval.metrics,
        num_steps=interval.num_steps,
        duration_seconds=on_loop,
        data_wait_seconds=interval.data_wait_seconds,
        other_seconds=max(
            0.0,
            on_loop
            - interval.data_wait_seconds
            - interval.device_wait_seconds
            - interval.dispatch_seconds,
        ),
        extra={
            f'compilation_cache/{name}': (float(count), '')
            for name, count in cache.items()
        },
    )
    modes = actions_lib.ActionMode
    if self._user_actions.get(modes.TRAIN):
      # Actions on training metrics decide, so their numbers are waited for.
      self._stop_asked |= actions_lib.run_actions(
          modes.TRAIN,
          self._user_actions,
          self._trainer.train_state,
          {'train': future.result()},
      )

  def save(self, step: int) -> None:
    """Starts an asynchronous save."""
    self._save_checkpoint(step)

  def evaluate(self, step: int) -> bool:
    """Evaluates and runs the actions on it; True asks the loop to stop."""
    results = {
        mode: evaluator.evaluate(step)
        for mode, evaluator in self._evaluators.items()
    }
    named = {}
    for mode, by_task in results.items():
      named.update(named_metrics(mode, by_task))
    self._on_evaluation(step, named)
    # A list: every action must see the metrics.
    asked = [
        actions_lib.run_actions(
            mode, self._user_actions, self._trainer.train_state, by_task
        )
        for mode, by_task in results.items()
    ]
    return any(asked)

  def after_step(self, step: int) -> bool:
    """Profiles, and retries a failed save; True asks the loop to stop."""
    if self._profiler is not None:
      self._profiler.at_step(
          step, block_on=self._trainer.train_state.step
      )
    if self._save_retry_is_due():
      self._save_checkpoint(step)
    return self._stop_asked


def named_metrics(
    mode: actions_lib.ActionMode, by_task: Mapping[str, Mapping[str, float]]
) -> dict[str, float]:
  """Metrics of tasks under the names that the run's records have."""
  return {
      f'{COLLECTIONS[mode]}/{task}/{name}': value
      for task, values in by_task.items()
      for name, value in values.items()
  }
