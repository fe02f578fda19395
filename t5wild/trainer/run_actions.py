# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a run does when something is due: log, save, evaluate."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

from absl import logging

from t5wild import compilation_cache
from t5wild.partitioning import distributed
from t5wild.trainer import action_checks
from t5wild.trainer import actions as actions_lib
from t5wild.trainer import finite
from t5wild.trainer import loop
from t5wild.trainer import metrics_manager as metrics_manager_lib
from t5wild.trainer import profiling
from t5wild.trainer import rank_times as rank_times_lib
from t5wild.trainer import recall as recall_lib
from t5wild.trainer import slow_data
from t5wild.trainer import step_watch
from t5wild.trainer import stopping
from t5wild.trainer import training_actions
from t5wild.vitals import answers as answers_lib


class Evaluator(Protocol):
  """Evaluates the newest state and writes what it found."""

  def evaluate(self, step: int) -> Mapping[str, Mapping[str, float]]:
    """Returns task -> metric -> value."""


class Saves(Protocol):
  """The checkpoints of a run."""

  def save(self, step: int) -> None:
    """Starts a save of the state after a step."""

  def retry_is_due(self) -> bool:
    """Whether a save that failed should be tried again."""

  def report_metrics(self, step: int, metrics: Mapping[str, float]) -> None:
    """Takes what an evaluation found."""

  def newest_step(self) -> int | None:
    """Waits for the save under way; tells the newest step."""

  def quarantine_after(self, step: int, *, reason: str) -> list[int]:
    """Takes the checkpoints of later steps out of use."""


class RunActions:
  """Implements `loop.DueActions` with the parts it is handed.

  Attributes:
    watch: Judges every step; None: nobody does.
    rank_times: Takes each interval; None: nobody does.
    on_stop: Told step and reason before a run that has failed stops.
  """

  def __init__(
      self,
      *,
      trainer: Any,
      train_metrics: metrics_manager_lib.MetricsManager,
      evaluators: Mapping[actions_lib.ActionMode, Evaluator],
      saves: Saves,
      user_actions: Mapping[actions_lib.ActionMode, Sequence[Any]],
      profiler: profiling.StepProfiler | None,
      on_step: Callable[[int], None] = lambda step: None,
  ):
    """Keeps the parts.

    Args:
      trainer: Holds the state.
      train_metrics: Writes `train/...`.
      evaluators: Those of TRAIN_EVAL and INFER_EVAL that the run has.
      saves: Saves the state, and is told the metrics of each evaluation.
      user_actions: T5X's actions by mode.
      profiler: Asked after each step, or None.
      on_step: Told each step, first of all.
    """
    self._trainer = trainer
    self._train_metrics = train_metrics
    self._evaluators = dict(evaluators)
    self._saves = saves
    self._user_actions = user_actions
    self._profiler = profiler
    self._on_step = on_step
    self._checked: set[actions_lib.ActionMode] = set()
    self._slow_data = slow_data.SlowData()
    self.watch: step_watch.StepWatch | None = None
    self.rank_times: rank_times_lib.RankTimes | None = None
    self.on_stop: Callable[[int, str], object] = lambda step, why: None
    self._start()

  def _start(self) -> None:
    self._training = training_actions.TrainingActions(
        self._user_actions, trainer=self._trainer
    )

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
        }
        | self._slow_data.record(step, interval, on_loop=on_loop),
    )
    self._training.log(step, future)
    if self.watch is not None:
      self.watch.tell_good_steps()
    if self.rank_times is not None:
      self.rank_times.log(step, interval)

  def save(self, step: int) -> None:
    """Starts an asynchronous save, of nothing but finite parameters.

    Raises:
      finite.NotFiniteError: They are not; what is saved stays as it is.
      step_watch.RewindAsked: Likewise, and the run is to go back.
    """
    if not finite.all_finite(self._trainer.train_state.params):
      self._answer(step, self.watch and self.watch.look_at_all())
      what = f'parameters are not finite after step {step}'
      first = self._training.watch.first()
      self._fail(step, f'{what} ({first})' if first else what)
    if self.watch is not None:
      self.watch.keep(step)
    self._saves.save(step)

  def evaluate(self, step: int) -> bool:
    """Evaluates and runs the actions on it; True asks the loop to stop.

    Raises:
      finite.NotFiniteError: An action says that the run has failed.
      action_checks.UnknownMetricError: An action watches what is not there;
        the state is saved.
    """
    results = {
        mode: evaluator.evaluate(step)
        for mode, evaluator in self._evaluators.items()
    }
    named = {}
    for mode, by_task in results.items():
      named.update(named_metrics(mode, by_task))
    self._saves.report_metrics(step, named)
    # A list: every action must see the metrics.
    asked = [
        self._decide(mode, step, by_task)
        for mode, by_task in results.items()
        if self._user_actions.get(mode)
    ]
    return any(asked)

  def _decide(
      self,
      mode: actions_lib.ActionMode,
      step: int,
      by_task: Mapping[str, Mapping[str, float]],
  ) -> bool:
    if mode not in self._checked:
      try:
        action_checks.check_metrics(self._user_actions, mode, by_task)
      except action_checks.UnknownMetricError:
        self.save(step)  # Mended, the same command goes on from here.
        raise
      self._checked.add(mode)
    answer = stopping.ask(
        mode, self._user_actions, self._trainer.train_state, by_task
    )
    request = stopping.share(answer, f'actions of {mode.name}')
    return self._ends(step, request)

  def after_step(self, step: int, metrics: Mapping[str, Any]) -> bool:
    """Profiles, retries a failed save, looks at what earlier steps gave.

    Raises:
      finite.NotFiniteError: An action says that the run has failed.
      action_checks.UnknownMetricError: An action watches what no step gives.
      step_watch.RewindAsked: The run is to go back.
      step_watch.UnstableError: It is to stop.
    """
    self._on_step(step)
    if self.watch is not None:
      self._answer(step, self.watch.after_step(step, metrics))
      self.watch.set_limit(self._trainer, step=step + 1)
    if self._profiler is not None:
      self._profiler.at_step(
          step, block_on=self._trainer.train_state.step
      )
    if self._saves.retry_is_due():
      self.save(step)
    return self._ends(step, self._training.after_step(step, metrics))

  def recall(
      self, past: recall_lib.Past, step: int
  ) -> stopping.StopRequest | None:
    """Tells the actions what a run saw until a step; all processes call it.

    Args:
      past: What it recorded; read on process 0 only.
      step: Where it goes on.

    Returns:
      Why it has ended at this step already, or None.
    """
    asked = None
    if distributed.process_index() == 0:
      asked = recall_lib.recall(past, self._user_actions, step=step)
    asked = distributed.meet('what actions recall', value=asked)[0]
    if asked is None:
      return None
    ends_at, reason = asked
    request = stopping.StopRequest(reason=reason)
    if ends_at == step:
      return request
    self._training.stop_at(ends_at, request)
    return None

  def finish(self, step: int) -> None:
    """Looks at the metrics of the last steps, which nothing waited for.

    Raises:
      finite.NotFiniteError: An action says that the run has failed.
      step_watch.RewindAsked: The run is to go back.
      step_watch.UnstableError: It is to stop.
    """
    if self.watch is not None:
      self._answer(step, self.watch.look_at_all())
    self._ends(step, self._training.finish())

  def go_back(self) -> None:
    """Forgets the steps that a rewind takes back."""
    self._training.close()
    self._start()

  def _answer(self, step: int, found: step_watch.Finding | None) -> None:
    if found is None:
      return
    if found.answer == answers_lib.REWIND:
      raise step_watch.RewindAsked(found, step=step)
    self._saves.quarantine_after(found.step - 1, reason=str(found))
    if found.kind == answers_lib.NOT_FINITE:
      self._fail(step, str(found))
    raise step_watch.UnstableError(found, why=f'{found.kind} is answered so')

  def close(self) -> None:
    """Ends the thread."""
    self._training.close()

  def _ends(self, step: int, request: stopping.StopRequest | None) -> bool:
    if request is None:
      return False
    if request.is_failure:
      first = self._training.watch.first()
      reason = request.reason
      self._fail(step, f'{first} ({reason})' if first else reason)
    logging.warning('Stopping after step %d: %s', step, request.reason)
    return True

  def _fail(self, step: int, what: str) -> NoReturn:
    error = finite.NotFiniteError(
        what, after_step=step, kept=self._saves.newest_step()
    )
    self.on_stop(step, str(error))
    raise error


def named_metrics(
    mode: actions_lib.ActionMode, by_task: Mapping[str, Mapping[str, float]]
) -> dict[str, float]:
  """Metrics of tasks under the names that the run's records have."""
  return {
      recall_lib.metric_name(mode, task, name): value
      for task, values in by_task.items()
      for name, value in values.items()
  }
