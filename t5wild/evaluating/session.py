# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Evaluates one checkpoint after the other, and leaves what it found.

Checkpoints whose figures the output directory has are passed over.
"""

from collections.abc import Iterator, Mapping
import contextlib
import dataclasses
import math
import os
from typing import Any

from absl import logging
import jax

from t5wild import evaluator as evaluator_lib
from t5wild import inference_state
from t5wild import run_dir as run_dir_lib
from t5wild.checkpoint_files import steps
from t5wild.data import datasets
from t5wild.data import eval_batches
from t5wild.data import whole_batches
from t5wild.evaluating import log as log_lib
from t5wild.evaluating import plan as plan_lib
from t5wild.evaluating import watch
from t5wild.models import base as models_base
from t5wild.partitioning import distributed
from t5wild.trainer import evaluation
from t5wild.trainer import inference_evaluation
from t5wild.trainer import metrics_manager
from t5wild.trainer import run_sinks
from t5wild.vitals import goodput
from t5wild.vitals import records

LOSS_COLLECTION = 'training_eval'
METRICS_COLLECTION = 'inference_eval'

# Task name -> metric -> value.
Metrics = dict[str, dict[str, float | str]]


class BadEvaluationError(ValueError):
  """An evaluation that cannot be done; nothing was compiled."""


def run_evaluation(plan: plan_lib.EvaluationPlan) -> dict[str, Metrics]:
  """Evaluates as planned; returns checkpoint -> task -> metric -> value.

  Checkpoints evaluated earlier are not among them.

  Raises:
    BadEvaluationError: Something in the plan cannot work; nothing was compiled.
  """
  with _as_bad_evaluation():
    session = _Session(plan)
  with contextlib.closing(session):
    return dict(session.run())


@contextlib.contextmanager
def _as_bad_evaluation():
  try:
    yield
  except (ValueError, LookupError, OSError, TypeError) as error:
    raise BadEvaluationError(str(error)) from error


class _Session:
  """Data, evaluators and writers of one evaluation."""

  def __init__(self, plan: plan_lib.EvaluationPlan):
    """Opens everything that may be refused; compiles nothing."""
    self._plan = plan
    if not plan.wait_seconds:
      inference_state.find_checkpoints(plan.restore_checkpoint_cfg)
    provider = datasets.open_provider(plan.dataset_cfg)
    self._log = log_lib.EvaluationLog(
        steps.absolute_path(plan.output_dir),
        identity=_identity(plan, provider),
    )
    _check_data(plan)
    self._decoder = _open_decoder(plan, provider)
    self._losses = _open_losses(plan)
    self._states = inference_state.InferenceStates(
        model=plan.model,
        partitioner=plan.partitioner,
        restore_checkpoint_cfg=plan.restore_checkpoint_cfg,
        train_state_initializer_cls=plan.train_state_initializer_cls,
        fallback_init_rng=plan.fallback_init_rng,
        **self._input_shapes(),
    )
    if self._decoder is not None:
      self._decoder.check_decoding(
          self._states.global_train_state_shape, self._states.train_state_axes
      )
    self._ledger = goodput.Ledger()
    self._sinks = None
    self._trainer = None
    self._state = None
    self._step = 0

  @property
  def tasks(self) -> list[str]:
    """Names of all tasks of which there will be figures."""
    decoded = [task.name for task in self._decoder.eval_tasks] if (
        self._decoder
    ) else []
    return sorted({*decoded, *self._losses})

  def run(self) -> Iterator[tuple[str, Metrics]]:
    """Yields each checkpoint that was evaluated, and its metrics."""
    evaluators: dict[str, Any] = {}
    for path in watch.watch_checkpoints(
        self._plan.restore_checkpoint_cfg,
        wait_seconds=self._plan.wait_seconds,
        poll_seconds=self._plan.poll_seconds,
        total_steps=self._plan.total_steps,
    ):
      if self._is_done(path):
        logging.info('%s has been evaluated: passed over', path)
        continue
      if not self._restore(path):
        continue
      if not evaluators:
        # Not before: what cannot be restored must not claim the directory.
        try:
          self._open_writers()
        except OSError as error:
          raise BadEvaluationError(str(self._log.unwritable(error))) from None
        evaluators = self._make_evaluators()
      metrics = self._evaluate(evaluators)
      if jax.process_index() == 0:
        self._log.add(
            step=self._step,
            checkpoint=path,
            identity=inference_state.identity_of(path),
            metrics=metrics,
        )
      yield path, metrics
    for evaluator in evaluators.values():
      evaluator.close()
    steps = self._plan.eval_steps
    logging.info(
        'Figures of each checkpoint, over %s: %s',
        'all data' if steps is None else f'{steps} batches of each task',
        self._log.path,
    )

  def close(self) -> None:
    """Waits for the writers, whatever ended the evaluation."""
    if self._sinks is not None:
      self._sinks.close(self._ledger, step=self._step)

  def _is_done(self, path: str) -> bool:
    # Process 0 wrote the log, and knows it best.
    return distributed.meet(
        'evaluated checkpoints',
        value=self._log.is_done(
            inference_state.identity_of(path), self.tasks
        ),
    )[0]

  def _restore(self, path: str) -> bool:
    """Reads a state; False if the run has removed it meanwhile."""
    # The old one's memory first: two may not fit.
    self._state = None
    if self._trainer is not None:
      self._trainer.train_state = None
    try:
      with self._ledger.span('restore'):
        self._state = self._states.restore(path)
    except steps.NotACheckpointError:
      if not self._plan.wait_seconds:
        raise
      logging.warning('%s was removed before it was evaluated', path)
      return False
    self._step = int(self._state.step)
    if self._trainer is not None:
      self._trainer.train_state = self._state
    return True

  def _evaluate(self, evaluators: Mapping[str, Any]) -> Metrics:
    by_task: Metrics = {task: {} for task in self.tasks}
    with self._ledger.span('evaluate'):
      for collection, evaluator in evaluators.items():
        for task, values in evaluator.evaluate(self._step).items():
          by_task[task].update({
              f'{collection}/{name}': value
              for name, value in values.items()
              if not name.startswith(('timing/', 'memory/'))
          })
    return by_task

  def _open_writers(self) -> None:
    plan = self._plan
    is_writer = jax.process_index() == 0
    if is_writer:
      self._log.open()
    if plan.summarize_config_fn is not None:
      plan.summarize_config_fn(plan.output_dir, None, 0)
    self._sinks = run_sinks.RunSinks(
        run_dir_lib.RunDir(plan.output_dir),
        total_steps=plan.total_steps or 0,
        is_writer=is_writer,
    )

  def _make_evaluators(self) -> dict[str, Any]:
    plan = self._plan
    evaluators = {}
    if self._losses:
      self._trainer = plan.training_evaluator_cls(
          model=plan.model,
          train_state=self._state,  # and of each checkpoint that follows
          partitioner=plan.partitioner,
          train_state_axes=self._states.train_state_axes,
          eval_names=tuple(self._losses),
          summary_dir=None,
          rng=jax.random.PRNGKey(0),
          learning_rate_fn=None,
          num_microbatches=None,
      )
      evaluators[LOSS_COLLECTION] = _LossEvaluator(
          trainer=self._trainer,
          datasets=self._losses,
          to_device=plan.partitioner.global_batch,
          managers=self._managers(LOSS_COLLECTION, self._losses),
      )
    if self._decoder is not None:
      decoder = self._decoder
      evaluators[METRICS_COLLECTION] = inference_evaluation.InferenceReports(
          start=lambda: decoder.start(
              self._state, self._states.train_state_axes
          ),
          managers=self._managers(
              METRICS_COLLECTION, [task.name for task in decoder.eval_tasks]
          ),
          close=decoder.close,
      )
    return evaluators

  def _managers(self, collection: str, tasks) -> dict[str, Any]:
    managers = {}
    for task in tasks:
      name = f'{collection}/{task}'
      managers[task] = metrics_manager.MetricsManager(
          name, sinks=self._sinks.of(name), host=jax.process_index()
      )
    return managers

  def _input_shapes(self) -> dict[str, Any]:
    """Shapes and dtypes of a global batch, for the model's first trace."""
    if self._losses:
      spec = next(iter(self._losses.values())).element_spec
      return {
          'input_shapes': {name: shape for name, (shape, _) in spec.items()},
          'input_types': {name: dtype for name, (_, dtype) in spec.items()},
      }
    size = self._plan.dataset_cfg.batch_size
    shapes = self._decoder.model_feature_shapes
    return {'input_shapes': {n: (size, *s) for n, s in shapes.items()}}


class _LossEvaluator(evaluation.TrainingEvaluator):
  """Teacher-forced evaluation that adds perplexity and bits per byte."""

  def evaluate(self, step: int) -> dict[str, dict[str, float]]:
    """Returns task -> metric -> value, after writing them."""
    by_task = super().evaluate(step)
    for task, values in by_task.items():
      batches = self._datasets[task]
      if hasattr(batches, 'target_counts'):  # else a user's own batches
        more = text_figures(values, batches.target_counts())
        self._managers[task].write_scalars(step, more)
        values.update(more)
    return by_task


def text_figures(
    values: Mapping[str, float], counts: whole_batches.TargetCounts
) -> dict[str, float]:
  """Perplexity and bits per byte of a loss.

  Args:
    values: the metrics of `model.eval_fn`.
    counts: how much text they are of.

  Returns:
    `perplexity` is exp(cross entropy per target token), in which a model's
    label smoothing counts and its z-loss does not. `bits_per_byte` is the same
    sum in bits over the bytes of the targets' text.
  """
  loss = values.get(records.LOSS)
  if loss is None or not counts.num_tokens:
    return {}
  z_loss = values.get('z_loss_per_all_target_tokens', 0.0)
  nats = loss - z_loss / values.get('non_padding_fraction/loss_weights', 1.0)
  figures = {'perplexity': math.exp(min(nats, 700.0))}
  if counts.num_bytes:
    bits = nats * counts.num_tokens / math.log(2)
    figures['bits_per_byte'] = bits / counts.num_bytes
  return figures


def _identity(plan, provider) -> dict[str, Any]:
  """What tells this evaluation from others in the same directory."""
  cfg, restore = plan.dataset_cfg, plan.restore_checkpoint_cfg
  one = isinstance(restore.path, str | os.PathLike)
  paths = [
      steps.absolute_path(path)
      for path in ([restore.path] if one else restore.path)
  ]
  if restore.mode == 'specific':
    paths = [os.path.dirname(path) for path in paths]
  return {
      'run': sorted({_seen_from(plan.output_dir, path) for path in paths}),
      'task': provider.name,
      'split': cfg.split,
      'lengths': cfg.task_feature_lengths and dict(cfg.task_feature_lengths),
      'settings': list(plan.settings),
  }


def _seen_from(output_dir: str, run: str) -> str:
  """A run as seen from a directory within it, which may be moved with it."""
  inside = steps.absolute_path(output_dir)
  if steps.is_bucket(run) or not inside.startswith(f'{run}{os.sep}'):
    return run
  return os.path.relpath(run, inside)


def _check_data(plan: plan_lib.EvaluationPlan) -> None:
  whole_batches.check_features(
      plan.dataset_cfg, feature_converter_cls=plan.model.FEATURE_CONVERTER_CLS
  )
  if plan.verify_matching_vocabs_fn is not None and isinstance(
      plan.model, models_base.BaseTransformerModel
  ):
    plan.verify_matching_vocabs_fn(plan.dataset_cfg, plan.model)
  plan.partitioner.get_data_layout(plan.dataset_cfg.batch_size)


def _open_decoder(plan, provider) -> evaluator_lib.InferenceEvaluator | None:
  if plan.inference_evaluator_cls is None:
    return None
  return evaluator_lib.InferenceEvaluator(
      dataclasses.replace(plan.dataset_cfg, mixture_or_task_name=provider),
      plan.inference_evaluator_cls,
      plan.model,
      plan.partitioner,
      log_dir=plan.output_dir,
  )


def _open_losses(plan: plan_lib.EvaluationPlan) -> Mapping[str, Any]:
  """Task name -> batches of teacher-forced evaluation."""
  if plan.training_evaluator_cls is None:
    return {}
  cfg, converter = plan.dataset_cfg, plan.model.FEATURE_CONVERTER_CLS
  if plan.train_eval_get_dataset_fn is not None:
    layout = plan.partitioner.get_data_layout(cfg.batch_size)
    given = plan.train_eval_get_dataset_fn(
        cfg, layout.shard_id, layout.num_shards, plan.eval_steps, converter
    )
    return {
        name: eval_batches.EvalBatches(dataset, use_memory_cache=True)
        for name, dataset in given.items()
    }
  return whole_batches.open_whole_batches(
      cfg,
      rows=plan.partitioner.host_rows(cfg.batch_size),
      feature_converter_cls=converter,
      num_batches=plan.eval_steps,
  )
