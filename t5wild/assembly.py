# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Puts a training run together in the one right order.

Processes first (the binary starts them), then mesh, data, state, trainer, loop.
The only file that sees data, checkpoints and trainer together.
"""

import contextlib
import functools
from typing import Any

from absl import logging
import jax

from t5wild import run_dir as run_dir_lib
from t5wild import run_ends
from t5wild import training_checks
from t5wild import training_claim
from t5wild import training_data
from t5wild import training_description
from t5wild import training_end
from t5wild import training_evaluators
from t5wild import training_past
from t5wild import training_place
from t5wild import training_plan
from t5wild import training_rewinds
from t5wild import training_saves
from t5wild.checkpoints import initialize
from t5wild.data import device_feed
from t5wild.data import passing_over
from t5wild.trainer import action_checks
from t5wild.trainer import actions as actions_lib
from t5wild.trainer import agreement
from t5wild.trainer import cadence as cadence_lib
from t5wild.trainer import compile_ahead
from t5wild.trainer import dry_run
from t5wild.trainer import initializer
from t5wild.trainer import loop
from t5wild.trainer import metrics_manager
from t5wild.trainer import model_info
from t5wild.trainer import preemption
from t5wild.trainer import recall
from t5wild.trainer import run_actions
from t5wild.trainer import run_sinks
from t5wild.trainer import step_watch
from t5wild.vitals import time_ledgers


def run_training(plan: training_plan.TrainingPlan) -> tuple[int, Any]:
  """Trains as planned.

  Returns:
    The last step and the train state after it (its abstract shape after a dry
    run).

  Raises:
    training_plan.BadPlanError: Something in the plan cannot work; nothing was
      compiled.
    preemption.Preempted: The run was asked to stop and has saved its state.
    finite.NotFiniteError: The run has failed; its last good state is kept.
  """
  ledger = time_ledgers.open_ledger()
  with ledger.span('startup'), training_plan.as_bad_plan():
    agreement.check()
    init_rng, trainer_rng = initializer.make_rngs(
        plan.random_seed, use_hardware_rng=plan.use_hardware_rng
    )
    data = training_data.open_training_data(plan)
    states = training_data.make_states(plan, data)
    info = model_info.describe(states, plan.partitioner)
    make_trainer = functools.partial(
        _make_trainer, plan, data, states, trainer_rng
    )
    # What only a trainer can refuse is refused before states are made or read.
    abstract = make_trainer(states.global_train_state_shape)
    abstract.check_train_batch(data.abstract_batch())
    data.check_decoding(states)
    watchdog = plan.watchdog_cls(
        run_dir_lib.RunDir(plan.model_dir),
        ledger=ledger,
        process=jax.process_index(),
        num_devices=jax.device_count(),
    )
  if plan.dry_run:
    _dry_run(plan, data, info, abstract)
    return 0, states.global_train_state_shape
  claim = training_claim.held(run_dir_lib.RunDir(plan.model_dir))
  with claim as place, watchdog, run_ends.told_to(watchdog, plan.model_dir):
    with ledger.span('restore'), training_plan.as_bad_plan():
      ahead = compile_ahead.CompileAhead(
          make_trainer,
          state_shape=states.global_train_state_shape,
          batch=data.abstract_batch(),
      )
      make = initializer.booked(states.from_scratch, ledger)
      initial = _first_state(plan, states, init_rng, make=make, ahead=ahead)
      data.start_after(initial.step, position=initial.dataset_state)
      data.tell_promise()
      trainer = make_trainer(initial.train_state)
    with ledger.span('startup'), training_plan.as_bad_plan():
      opened = _Session(
          plan, data, trainer, ledger,
          states=states, initial=initial, watchdog=watchdog, place=place,
      )  # fmt: skip
    with contextlib.closing(opened) as session:
      with ledger.span('startup'):
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


def _dry_run(plan, data, info, trainer) -> None:
  """Compiles the step for shapes alone, and prints what a run would need."""
  batch = data.abstract_batch()
  data.tell_promise()
  with training_plan.as_bad_plan():
    dry_run.print_page(
        info,
        batch_bytes=data.batch_bytes() // plan.partitioner.data_mesh_size,
        compile_step=functools.partial(trainer.compile_train, batch),
    )


def _first_state(
    plan: training_plan.TrainingPlan,
    states,
    rng,
    *,
    make,
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
      init_fn=make,
      rng=rng,
      when_checked=when_checked,
  )
  logging.info('Start from %s at step %d', initial.source, initial.step)
  return initial


class _Session:
  """A run under way: writers, checkpoints, feed, loop."""

  def __init__(
      self,
      plan: training_plan.TrainingPlan,
      data: training_data.TrainingData,
      trainer,
      ledger,
      *,
      states: initializer.TrainStateInitializer,
      initial: initialize.InitialState,
      watchdog: Any,
      place: training_place.Place,
  ):
    """Opens the writers and the checkpoint manager; trains nothing."""
    self._plan = plan
    self._data = data
    self._trainer = trainer
    self._states = states
    self._ledger = ledger
    self._first_step, self._is_resumed = initial.step, initial.is_own
    self._watchdog, self._place = watchdog, place
    watchdog.begin(initial.step)
    self._run_dir = run_dir_lib.RunDir(plan.model_dir)
    self._total_steps = training_end.last_step(plan, initial)
    self._user_actions = actions_lib.parse_modes(plan.actions)
    self._check_actions()
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
        services=plan.sinks or (),
    )
    self._metrics = metrics_manager.MetricsManager(
        'train',
        sinks=self._sinks.of('train'),
        host=jax.process_index(),
        cost=model_info.step_cost(plan.model, data.input_shapes),
    )
    self._reader = passing_over.PassingReader(
        data.reader, plan.answers.passed_over_batches, step=initial.step
    )
    self._open_feed()
    self._saves = training_saves.TrainingSaves(
        plan,
        trainer=trainer,
        metrics=self._metrics,
        dataset_state=lambda: self._feed.state_at(),
        initial=initial,
        place=place,
    )
    self._rewinds = training_rewinds.Rewinds(
        plan, data, saves=self._saves, reader=self._reader
    )
    self._watch = self._rewinds.make_watch(trainer, step=initial.step)
    self._rank_times = self._rewinds.make_rank_times(self._run_dir, watchdog)
    self._checks = training_checks.open_checks(
        plan, trainer=trainer, saves=self._saves, metrics=self._metrics,
        first_step=initial.step,
    )  # fmt: skip

  def _open_feed(self) -> None:
    self._feed = device_feed.DeviceFeed(
        self._reader, to_device=self._plan.partitioner.global_batch
    )

  def _check_actions(self) -> None:
    tasks = {actions_lib.ActionMode.TRAIN: [action_checks.TRAIN_TASK]}
    tasks |= self._data.evaluated_tasks
    action_checks.check_tasks(
        self._user_actions, tasks, eval_period=self._plan.eval_period
    )

  def write_description(self, info) -> None:
    """Leaves model-info.txt and the operative config in the run directory."""
    training_description.write(
        self._plan, self._data, info,
        metrics=self._metrics, step=self._first_step,
        is_resumed=self._is_resumed,
    )  # fmt: skip

  def fit(self, ahead: compile_ahead.CompileAhead) -> int:
    """Runs the loop with the step compiled ahead; returns the last step."""
    evaluators = training_evaluators.make_evaluators(
        self._plan, self._data, trainer=self._trainer, sinks=self._sinks,
        train_state_axes=self._states.train_state_axes,
        on_late_metrics=self._saves.report_late_metrics,
    )  # fmt: skip
    profiler = self._plan.profiler_cls(self._sinks.run_dir.profile)
    actions = run_actions.RunActions(
        trainer=self._trainer,
        train_metrics=self._metrics,
        evaluators=evaluators,
        saves=self._saves,
        user_actions=self._user_actions,
        profiler=profiler,
        on_step=self._after_step,
    )
    actions.watch, actions.rank_times = self._watch, self._rank_times
    actions.on_stop = self._rewinds.tell_stop
    with (
        preemption.StopSignal() as stop_signal,
        self._place.watched(stop_signal.ask),
        contextlib.closing(profiler),
        contextlib.closing(actions),
    ):
      last = self._train(ahead, actions, profiler, stop_signal)
    with self._ledger.span('finish'):
      self._saves.make_sure(last)
      for evaluator in evaluators.values():
        evaluator.close()
      self._metrics.flush()
    return last

  def _after_step(self, step: int) -> None:
    self._watchdog.beat(step)
    self._rewinds.after_step(step, self._feed.state_at())
    self._checks.after_step(step)
    if self._saves.fast_is_due(step):
      with self._ledger.span('save'):
        self._saves.save_fast(step)

  def _train(self, ahead, actions, profiler, stop_signal) -> int:
    """Evaluates what must be, then trains; returns the last step."""
    with self._ledger.span('startup'):
      past = self._read_past()
      ended = actions.recall(past, self._first_step)
    if ended is not None:
      logging.warning(
          'Nothing to train: this run was stopped after step %d (%s). To go '
          'on, raise the patience of that action or drop it from actions.',
          self._first_step, ended.reason,
      )  # fmt: skip
      return self._first_step
    self._compile(ahead)
    with self._ledger.span('startup'):
      is_due = self._must_evaluate_first(past)
    if is_due:
      with self._ledger.span('evaluate'):
        if actions.evaluate(self._first_step):
          return self._first_step
    if self._cadence.save_period and self._first_step == 0:
      with self._ledger.span('save'):
        actions.save(0)
    profiler.at_step(self._first_step)
    try:
      last = None
      while last is None:
        last = self._train_on(actions, stop_signal)
    except preemption.Preempted as stop:
      with self._ledger.span('finish'):
        self._saves.make_sure(stop.step)
      self._checks.finish(stop.step)
      raise
    self._checks.finish(last)
    return last

  def _train_on(self, actions, stop_signal) -> int | None:
    """Trains to the end, or until the run is rewound; then None."""
    try:
      last = loop.run(
          step_fn=self._checks.seeing(self._trainer.train_step),
          feed=self._feed,
          cadence=self._cadence,
          actions=actions,
          first_step=self._first_step,
          stop_signal=stop_signal,
          ledger=self._ledger,
          gc_period=self._plan.gc_period,
      )
      actions.finish(last)
      return last
    except step_watch.RewindAsked as asked:
      with self._ledger.span('restore'):
        self._rewind(asked, actions)
      return None

  def _rewind(self, asked: step_watch.RewindAsked, actions) -> None:
    """Puts data, state and all that counts steps back to a checkpoint."""
    self._feed.close()
    self._first_step = self._rewinds.go_back(
        asked, states=self._states, trainer=self._trainer, watch=self._watch
    )
    self._is_resumed = True
    self._open_feed()
    self._metrics.flush()
    actions.go_back()
    actions.recall(self._read_past(), self._first_step)

  def _read_past(self) -> recall.Past | None:
    return training_past.read(
        self._sinks.run_dir.metrics_jsonl, actions=self._user_actions,
        step=self._first_step, is_resumed=self._is_resumed,
    )  # fmt: skip

  def _must_evaluate_first(self, past: recall.Past | None) -> bool:
    return training_past.must_evaluate_first(
        past, self._data, note=self._saves.report_metrics,
        wished=self._plan.run_eval_before_training,
        is_due=self._cadence.due(self._first_step).evaluate,
        step=self._first_step, is_resumed=self._is_resumed,
    )  # fmt: skip

  def _compile(self, ahead: compile_ahead.CompileAhead) -> None:
    if self._first_step >= self._total_steps:
      logging.warning(
          'All %d of %d steps are done: nothing to train. Raise TRAIN_STEPS '
          '(quickstart: --steps).', self._first_step, self._total_steps,
      )
      return
    with self._ledger.span('compile'):
      seconds = ahead.finish(self._trainer)
      self._checks.prepare(self._data.abstract_batch())
      self._saves.prepare(self._data.abstract_batch())
    booked = self._ledger.seconds()
    self._metrics.write_scalars(self._first_step, {
        'timing/compile_seconds': seconds,
        'timing/init_or_restore_seconds': booked['init'] + booked['restore'],
    })  # fmt: skip

  def close(self) -> None:
    """Waits for savers and writers, whatever ended the run."""
    with self._ledger.span('finish'):
      self._feed.close()
      self._rank_times.close()
      self._rewinds.close()
      self._saves.close()
      self._metrics.close()
    self._sinks.close(self._ledger, step=int(self._trainer.train_state.step))
