# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Saves the state of a training run, with where its data stand."""

from collections.abc import Callable, Mapping
from typing import Any

import jax

from t5wild import loss_probe
from t5wild import run_dir as run_dir_lib
from t5wild import training_place
from t5wild import training_plan
from t5wild.checkpoint_files import health
from t5wild.checkpoint_files import named_steps
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import initialize
from t5wild.checkpoints import manager as checkpoint_manager
from t5wild.checkpoints import run_stores
from t5wild.data import ledger
from t5wild.trainer import actions as actions_lib
from t5wild.trainer import finite
from t5wild.trainer import metrics_manager
from t5wild.trainer import run_actions

_RECORDED = {'saved': 'saved', 'save_failed': 'failed'}


class TrainingSaves:
  """The checkpoints of a run; does nothing where the plan saves none."""

  def __init__(
      self,
      plan: training_plan.TrainingPlan,
      *,
      trainer: Any,
      metrics: metrics_manager.MetricsManager,
      dataset_state: Callable[[], Mapping[str, Any] | None],
      initial: initialize.InitialState,
      place: training_place.Place,
  ):
    """Opens the checkpoint manager.

    Args:
      plan: Says what to save, and where.
      trainer: Holds the state.
      metrics: Takes a record of each save.
      dataset_state: Tells this process's position after the batches trained
        on, not after those read ahead.
      initial: What the run begins with.
      place: Tells whether MODEL_DIR is still there.
    """
    self._place = place
    self._plan = plan
    self._trainer = trainer
    self._metrics = metrics
    self._dataset_state = dataset_state
    self._manager = self._stores = None
    if plan.checkpoint_cfg.save is not None:
      self._stores = run_stores.RunStores(
          plan.model_dir,
          plan.checkpoint_cfg.save,
          on_event=self._record,
          source=initial.source if initial.is_own else None,
      )
      self._stores.probe(trainer.train_state)
      self._manager = self._stores.main
    self._samples = ledger.SampleLedger(
        plan.model_dir,
        batch_size=getattr(plan.train_dataset_cfg, 'batch_size', None),
    )
    self._note(initial.step, dataset_state())
    self._source = initial.source if initial.is_own else None
    self._probe = None
    self._losses: dict[int, Any] = {}  # begun, by step

  def prepare(self, shapes: Mapping[str, jax.ShapeDtypeStruct]) -> None:
    """Compiles the loss of the probe, and holds a restored state against it.

    Args:
      shapes: Of a training batch.

    Raises:
      training_plan.BadPlanError: It gives another loss than when it was saved.
    """
    save = self._plan.checkpoint_cfg.save
    if save is None or not save.probe_loss:
      return
    self._probe = loss_probe.LossProbe(
        trainer=self._trainer,
        model=self._plan.model,
        partitioner=self._plan.partitioner,
    )
    self._probe.prepare(shapes)
    if self._source is not None:
      with training_plan.as_bad_plan():
        self._probe.check(self._source)

  def _note(self, step: int, state: Mapping[str, Any] | None) -> None:
    if jax.process_index() == 0:
      self._samples.note(step, state)

  def save(self, step: int) -> None:
    """Starts an asynchronous save of the state."""
    self._leave_if_lost(step)
    if self._manager is not None:
      state = self._dataset_state()
      if self._probe is not None:
        self._losses[step] = self._probe.start()
      self._manager.save(step, self._trainer.train_state, dataset_state=state)
      self._note(step, state)

  def _leave_if_lost(self, step: int) -> None:
    """Ends a run whose MODEL_DIR is gone; its state is saved where it may be.

    Raises:
      training_place.PlaceLostError: It is.
    """
    loss = self._place.loss()
    if loss is None:
      return
    is_saved = False
    if loss.rescue is not None and self._stores is not None:
      self._manager.wait()
      is_saved = self._stores.rescue(
          loss.rescue, step, self._trainer.train_state, self._dataset_state()
      )
    raise self._place.error(loss, step=step, is_saved=is_saved)

  def note_position(
      self, step: int, position: Mapping[str, Any] | None
  ) -> None:
    """Notes where the data stand after a step, other than one might think."""
    self._note(step, position)

  def promote(self, step: int, *, last_fault: int, after: int) -> None:
    """Makes checkpoints healthy that so many good steps followed; cheap.

    Args:
      step: Up to which steps are known to be good.
      last_fault: Newest step before it that was not.
      after: How many good steps it takes.
    """
    if self._manager is None:
      return
    shelf = self._manager.shelf
    shelf.promote([
        saved
        for saved in shelf.in_health(health.CANDIDATE)
        if step - max(saved, last_fault) >= after
    ])

  def oldest_step(self) -> int:
    """The oldest step with a complete checkpoint; 0 without any."""
    saved = [] if self._manager is None else self._manager.all_steps()
    return min(saved, default=0)

  def healthy_steps(self) -> list[int]:
    """Waits for the save under way; returns steps to go back to, in order."""
    if self._manager is None:
      return []
    self._manager.wait()
    return self._manager.shelf.in_health(health.HEALTHY)

  def restore(self, step: int, *, states: Any) -> Mapping[str, Any]:
    """Puts the trainer back to a checkpoint; returns where the data stood.

    Args:
      step: Of a checkpoint.
      states: Tells the shape and the axes of train states.

    Raises:
      steps.NotACheckpointError: It holds no position of the data.
    """
    self._manager.wait()
    # There may be no room for two states.
    for leaf in jax.tree.leaves(self._trainer.train_state):
      leaf.delete()
    shape = states.global_train_state_shape
    state, position = self._manager.restore(
        step,
        abstract_state=shape.state_dict(),
        shardings=initialize.shardings_of(
            self._plan.partitioner, shape, states.train_state_axes
        ),
    )
    self._trainer.train_state = shape.restore_state(state)
    restored = int(self._trainer.train_state.step)
    if restored != step:
      raise steps.NotACheckpointError(
          f'the checkpoint of step {step} is damaged: '
          + named_steps.explain(step, saved=restored)
      )
    if position is None:
      raise steps.NotACheckpointError(
          f'the checkpoint of step {step} holds no position of the data, '
          'expected one to go on from: set checkpoints.SaveCheckpointConfig.'
          'keep_dataset_checkpoints to None, and start again'
      )
    return position

  def fast_is_due(self, step: int) -> bool:
    """Whether the fast tier gets the state after a step; cheap."""
    return self._stores is not None and self._stores.fast_is_due(step)

  def save_fast(self, step: int) -> None:
    """Starts a save to the fast tier, of nothing but finite parameters."""
    state = self._trainer.train_state
    if finite.all_finite(state.params):
      self._stores.save_fast(step, state, self._dataset_state())

  def retry_is_due(self) -> bool:
    """Whether a save that failed should be tried again."""
    return self._manager is not None and self._manager.retry_is_due()

  def newest_step(self) -> int | None:
    """Waits for the save under way; returns the newest complete step."""
    if self._manager is None:
      return None
    self._manager.wait()
    return self._manager.latest_step()

  def quarantine_after(self, step: int, *, reason: str) -> list[int]:
    """Waits for the save under way; takes all later steps out of use.

    Returns:
      The steps of these checkpoints, which stay where they are.
    """
    if self._manager is None:
      return []
    return self._stores.quarantine_after(step, reason=reason)

  def report_metrics(self, step: int, metrics: Mapping[str, float]) -> None:
    """Tells what an evaluation found, for the best checkpoints."""
    if self._manager is not None:
      self._manager.report_metrics(step, metrics)

  def report_late_metrics(self, step: int, by_task) -> None:
    """The same for an evaluation by decoding that nothing waited for."""
    save = self._plan.checkpoint_cfg.save
    # A best metric of another evaluation would seem to be missing.
    if save is not None and save.best_metric is None:
      self.report_metrics(
          step,
          run_actions.named_metrics(actions_lib.ActionMode.INFER_EVAL, by_task),
      )

  def make_sure(self, step: int) -> None:
    """Waits for the last save; tries once more where it failed.

    Raises:
      checkpoint_manager.StateNotSavedError: In vain.
    """
    if self._manager is None or self._manager.wait():
      return
    if jax.process_count() == 1:
      self.save(step)
      if self._manager.wait():
        return
    raise checkpoint_manager.StateNotSavedError(
        step,
        directory=self._plan.model_dir,
        newest=self._manager.latest_step(),
    )

  def close(self) -> None:
    """Waits for the save under way."""
    if self._stores is not None:
      self._stores.close()

  def _record(self, event: checkpoint_manager.CheckpointEvent) -> None:
    loss = self._losses.pop(event.step, None)
    if event.kind == 'saved' and jax.process_index() == 0:
      path = run_dir_lib.RunDir(event.directory).checkpoint(event.step)
      if self._probe is not None:
        self._probe.write(path, loss)
    if event.kind in _RECORDED:
      self._metrics.write_scalars(
          event.step,
          {
              f'checkpoint/{_RECORDED[event.kind]}': 1.0,
              'timing/save_seconds': event.seconds,
              'timing/save_blocked_seconds': event.blocked_seconds,
          },
      )
