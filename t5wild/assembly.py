# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Puts a training run together in the one right order.

Processes first (the binary starts them), then mesh, data, state, trainer, loop.
The only file that sees data, checkpoints and trainer together.
"""

import contextlib
import functools
import time
from typing import Any

from absl import logging
import jax
import numpy as np

from t5wild import run_dir as run_dir_lib
from t5wild import training_data
from t5wild import training_plan
from t5wild.checkpoints import initialize
from t5wild.checkpoints import manager as checkpoint_manager
from t5wild.data import device_feed
from t5wild.partitioning import distributed
from t5wild.trainer import actions as actions_lib
from t5wild.trainer import cadence as cadence_lib
from t5wild.trainer import compile_ahead
from t5wild.trainer import evaluation
from t5wild.trainer import inference_evaluation
from t5wild.trainer import loop
from t5wild.trainer import metrics_manager
from t5wild.trainer import model_info
from t5wild.trainer import preemption
from t5wild.trainer import run_actions
from t5wild.trainer import run_sinks
from t5wild.vitals import goodput


def run_training(plan: training_plan.TrainingPlan) -> tuple[int, Any]:
  """Trains as planned.

  Returns:
    The last step and the train state after it (its abstract shape after a dry
    run).

  Raises:
    training_plan.BadPlanError: Something in the plan cannot work; nothing was
      compiled.
    preemption.Preempted: The run was asked to stop and has saved its state.
  """
  ledger = goodput.Ledger()
  with ledger.span('startup'), _as_bad_plan():
    init_rng, trainer_rng = _make_rngs(plan)
    data = training_data.open_training_data(plan)
    states = plan.train_state_initializer_cls(
        optimizer_def=plan.model.optimizer_def,
        init_fn=plan.model.get_initial_variables,
        input_shapes=data.input_shapes,
        input_types=data.input_types,
        partitioner=plan.partitioner,
    )
    info = model_info.describe(states, plan.partitioner)
  if plan.dry_run:
    _dry_run(plan, data, states, info, trainer_rng)
    return 0, states.global_train_state_shape
  with ledger.span('restore'), _as_bad_plan():
    make_trainer = functools.partial(
        _make_trainer, plan, data, states, trainer_rng
    )
    ahead = compile_ahead.CompileAhead(
        make_trainer,
        state_shape=states.global_train_state_shape,
        batch=data.abstract_batch(),
    )
    initial = _first_state(plan, states, init_rng, ahead=ahead)
    if initial.dataset_state is not None:
      data.reader.load_state_dict(initial.dataset_state)
    trainer = make_trainer(initial.train_state)
  with _as_bad_plan():
    opened = _Session(
        plan,
        data,
        trainer,
        ledger,
        train_state_axes=states.train_state_axes,
        first_step=initial.step,
    )
  with contextlib.closing(opened) as session:
    session.write_description(info)
    return session.fit(ahead), trainer.train_state


def _make_trainer(plan, data, states, rng, train_state):
  return plan.trainer_cls(
      model=plan.model,
      train_state=train_state,
      partitioner=plan.partitioner,
      train_state_axes=states.train_state_axes,
      eval_names=tuple(data.eval_datasets),
      summary_dir=plan.model_dir,
      rng=rng,
  )


def _dry_run(plan, data, states, info, rng) -> None:
  """Compiles the step for shapes alone, and prints what a run would need."""
  with _as_bad_plan():
    trainer = _make_trainer(
        plan, data, states, rng, states.global_train_state_shape
    )
    start = time.perf_counter()
    compiled = trainer.compile_train(data.abstract_batch())
  model_info.print_dry_run(
      info,
      batch_bytes=data.batch_bytes() // plan.partitioner.data_mesh_size,
      compiled=compiled,
      compile_seconds=time.perf_counter() - start,
  )


@contextlib.contextmanager
def _as_bad_plan():
  try:
    yield
  except (ValueError, LookupError, OSError, TypeError) as error:
    raise training_plan.BadPlanError(str(error)) from error


def _first_state(
    plan: training_plan.TrainingPlan,
    states,
    rng,
    *,
    ahead: compile_ahead.CompileAhead,
) -> initialize.InitialState:

  def when_checked(own_step: int | None) -> None:
    if own_step is None or plan.trains_after(own_step):
      ahead.start()

  initial = initialize.initialize_train_state(
      checkpoint_cfg=plan.checkpoint_cfg,
      model_dir=plan.model_dir,
      partitioner=plan.partitioner,
      train_state_shape=states.global_train_state_shape,
      train_state_axes=states.train_state_axes,
      init_fn=states.from_scratch,
      rng=rng,
      when_checked=when_checked,
  )
  logging.info('Start from %s at step %d', initial.source, initial.step)
  return initial


def _make_rngs(plan: training_plan.TrainingPlan) -> tuple[jax.Array, jax.Array]:
  """T5X's keys: `PRNGKey(seed)` split into initialisation and trainer."""
  seed = plan.random_seed
  if plan.use_hardware_rng or seed is None:
    jax.config.update('jax_default_prng_impl', 'unsafe_rbg')
    logging.warning(
        'Hardware RNG in use (random_seed=%s, use_hardware_rng=%s): dropout '
        'and initialisation depend on the mesh and cannot be repeated on '
        'another. Set RANDOM_SEED to a number and use_hardware_rng to False '
        'for the same losses on every mesh.', seed, plan.use_hardware_rng,
    )
  if seed is None:
    seed = int(distributed.broadcast_one_to_all(np.int32(time.time())))
    logging.info('random_seed is None: using %d', seed)
  init_rng, trainer_rng = jax.random.split(jax.random.PRNGKey(seed), 2)
  return init_rng, trainer_rng


class _Session:
  """A run under way: writers, checkpoints, feed, loop."""

  def __init__(
      self,
      plan: training_plan.TrainingPlan,
      data: training_data.TrainingData,
      trainer,
      ledger,
      *,
      train_state_axes,
      first_step: int,
  ):
    """Opens the writers and the checkpoint manager; trains nothing."""
    self._plan = plan
    self._data = data
    self._trainer = trainer
    self._train_state_axes = train_state_axes
    self._ledger = ledger
    self._first_step = first_step
    self._run_dir = run_dir_lib.RunDir(plan.model_dir)
    self._total_steps = plan.last_step(first_step)
    save_cfg = plan.checkpoint_cfg.save
    self._cadence = cadence_lib.Cadence(
        total_steps=self._total_steps,
        eval_period=plan.eval_period if data.is_evaluated else None,
        stats_period=plan.stats_period or plan.eval_period,
        save_period=save_cfg.period if save_cfg else None,
        checkpoint_steps=(save_cfg.checkpoint_steps or ()) if save_cfg else (),
    )
    self._sinks = run_sinks.RunSinks(
        self._run_dir,
        total_steps=self._total_steps,
        is_writer=jax.process_index() == 0,
    )
    self._metrics = metrics_manager.MetricsManager(
        'train',
        sinks=self._sinks.of('train'),
        host=jax.process_index(),
        cost=model_info.step_cost(plan.model, data.input_shapes),
    )
    self._checkpoints = None
    if save_cfg is not None:
      self._checkpoints = checkpoint_manager.CheckpointManager(
          plan.model_dir, config=save_cfg, on_event=self._record_checkpoint
      )
    self._feed = device_feed.DeviceFeed(
        data.reader, to_device=plan.partitioner.global_batch
    )

  def write_description(self, info) -> None:
    """Leaves model-info.txt and the operative config in the run directory."""
    self._metrics.write_scalars(
        self._first_step,
        {'data/position_is_exact': float(self._data.position_is_exact)},
    )
    if jax.process_index() == 0:
      model_info.write(info, self._run_dir)
      if self._plan.summarize_config_fn is not None:
        self._plan.summarize_config_fn(
            self._plan.model_dir, self._metrics, self._first_step
        )

  def fit(self, ahead: compile_ahead.CompileAhead) -> int:
    """Runs the loop with the step compiled ahead; returns the last step."""
    evaluators = self._make_evaluators()
    profiler = self._plan.profiler_cls(self._run_dir.profile)
    actions = run_actions.RunActions(
        trainer=self._trainer,
        train_metrics=self._metrics,
        evaluators=evaluators,
        save_checkpoint=self._save,
        save_retry_is_due=(
            self._checkpoints.retry_is_due if self._checkpoints else _never
        ),
        on_evaluation=(
            self._checkpoints.report_metrics if self._checkpoints else _ignore
        ),
        user_actions=actions_lib.parse_modes(self._plan.actions),
        profiler=profiler,
    )
    with (
        preemption.StopSignal() as stop_signal,
        contextlib.closing(profiler),
    ):
      self._compile(ahead)
      if self._plan.run_eval_before_training:
        with self._ledger.span('evaluate'):
          actions.evaluate(self._first_step)
      if self._cadence.save_period and self._first_step == 0:
        self._save(0)
      profiler.at_step(self._first_step)
      try:
        last = loop.run(
            step_fn=self._trainer.train_step,
            feed=self._feed,
            cadence=self._cadence,
            actions=actions,
            first_step=self._first_step,
            stop_signal=stop_signal,
            ledger=self._ledger,
            gc_period=self._plan.gc_period,
        )
      except preemption.Preempted as stop:
        self._make_sure_of_save(stop.step)
        raise
    with self._ledger.span('finish'):
      self._make_sure_of_save(last)
      for evaluator in evaluators.values():
        evaluator.close()
      self._metrics.flush()
    return last

  def _compile(self, ahead: compile_ahead.CompileAhead) -> None:
    if self._first_step >= self._total_steps:
      logging.warning(
          'The state already has %d of %d steps: nothing to train. Raise '
          'TRAIN_STEPS to go on.', self._first_step, self._total_steps,
      )
      return
    with self._ledger.span('compile'):
      seconds = ahead.finish(self._trainer)
    self._metrics.write_scalars(
        self._first_step,
        {
            'timing/compile_seconds': seconds,
            'timing/init_or_restore_seconds': self._ledger.seconds()['restore'],
        },
    )

  def _make_evaluators(self) -> dict[actions_lib.ActionMode, Any]:
    modes = actions_lib.ActionMode
    evaluators = {}
    if self._data.eval_datasets:
      evaluators[modes.TRAIN_EVAL] = evaluation.TrainingEvaluator(
          trainer=self._trainer,
          datasets=self._data.eval_datasets,
          to_device=self._plan.partitioner.global_batch,
          managers=self._managers(
              modes.TRAIN_EVAL, self._data.eval_datasets
          ),
      )
    decoder = self._data.inference_evaluator
    if decoder is not None:
      evaluators[modes.INFER_EVAL] = inference_evaluation.InferenceReports(
          start=lambda: decoder.start(
              self._trainer.train_state, self._train_state_axes
          ),
          managers=self._managers(
              modes.INFER_EVAL, [task.name for task in decoder.eval_tasks]
          ),
          close=decoder.close,
          is_awaited=self._plan.decides_by_inference_metrics,
          on_late_metrics=self._report_late_metrics,
      )
    return evaluators

  def _report_late_metrics(self, step: int, by_task) -> None:
    save, mode = self._plan.checkpoint_cfg.save, actions_lib.ActionMode
    # A best metric of another evaluation would seem to be missing.
    if save is not None and save.best_metric is None:
      named = run_actions.named_metrics(mode.INFER_EVAL, by_task)
      self._checkpoints.report_metrics(step, named)

  def _managers(self, mode: actions_lib.ActionMode, tasks) -> dict[str, Any]:
    """Task name to the writer of what that evaluation finds."""
    managers = {}
    for task in tasks:
      name = f'{run_actions.COLLECTIONS[mode]}/{task}'
      managers[task] = metrics_manager.MetricsManager(
          name, sinks=self._sinks.of(name), host=jax.process_index()
      )
    return managers

  def _record_checkpoint(self, event) -> None:
    names = {'saved': 'saved', 'save_failed': 'failed'}
    if event.kind in names:
      self._metrics.write_scalars(
          event.step,
          {
              f'checkpoint/{names[event.kind]}': 1.0,
              'timing/save_seconds': event.seconds,
              'timing/save_blocked_seconds': event.blocked_seconds,
          },
      )

  def _save(self, step: int) -> None:
    if self._checkpoints is None:
      return
    self._checkpoints.save(
        step,
        self._trainer.train_state,
        # Position after the batches trained on, not after those read ahead.
        dataset_state=self._feed.state_at(),
    )

  def _make_sure_of_save(self, step: int) -> None:
    """Waits for the last save; tries once more where it failed, or raises."""
    if self._checkpoints is None or self._checkpoints.wait():
      return
    if jax.process_count() == 1:
      self._save(step)
      if self._checkpoints.wait():
        return
    raise checkpoint_manager.StateNotSavedError(
        step,
        directory=self._plan.model_dir,
        newest=self._checkpoints.latest_step(),
    )

  def close(self) -> None:
    """Waits for savers and writers, whatever ended the run."""
    self._feed.close()
    if self._checkpoints is not None:
      self._checkpoints.close()
    self._metrics.close()
    self._sinks.close(self._ledger, step=int(self._trainer.train_state.step))


def _never() -> bool:
  return False


def _ignore(step, values) -> None:
  del step, values
