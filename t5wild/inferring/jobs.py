# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Puts an inference together: outputs first, then state, then the function."""

from collections.abc import Callable, Sequence
import dataclasses
import functools
import os
from typing import Any

from absl import logging
import jax

from t5wild import inference
from t5wild import inference_state
from t5wild.checkpoints import configs
from t5wild.inferring import inputs
from t5wild.inferring import outputs
from t5wild.inferring import session
from t5wild.inferring import settings
from t5wild.inferring import steps
from t5wild.models import base as models_base
from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.trainer import initializer


def chunk_size(checkpoint_period: int, batch_size: int) -> int:
  """Returns the examples of a chunk.

  Raises:
    ValueError: The period is no number of batches.
  """
  if not isinstance(checkpoint_period, int) or checkpoint_period < 1:
    raise ValueError(
        f'checkpoint_period is {checkpoint_period!r}: expected at least 1 '
        'batch. Set infer.checkpoint_period = 100.'
    )
  return checkpoint_period * batch_size


class Engine:
  """A model and one checkpoint of it, described first, then started.

  Attributes:
    plan: What is done.
    checkpoint: The checkpoint's folder.
  """

  def __init__(
      self,
      plan: session.Plan,
      *,
      partitioner: partitioner_lib.BasePartitioner,
      restore_checkpoint_cfg: configs.RestoreCheckpointConfig,
      train_state_initializer_cls: Callable[
          ..., Any
      ] = initializer.TrainStateInitializer,
      fallback_init_rng: int | None = None,
  ):
    """Finds the checkpoint; nothing is read or compiled.

    Raises:
      ValueError: The batch does not divide, the mode is none, or there is not
        one checkpoint.
    """
    partitioner.get_data_layout(plan.batch_size)
    self.plan = plan
    self._partitioner = partitioner
    self._cfg = restore_checkpoint_cfg
    self._initializer_cls = train_state_initializer_cls
    self._seed = fallback_init_rng
    self._infer_step = steps.make_infer_step(
        plan.model,
        mode=plan.mode,
        lengths=plan.lengths,
        token_scores=plan.token_scores,
    )
    found = inference_state.find_checkpoints(restore_checkpoint_cfg)
    if len(found) > 1:
      raise ValueError(
          f'RestoreCheckpointConfig names {len(found)} checkpoints ({found[0]} '
          f'... {found[-1]}): expected one to infer with. Set mode to '
          "'specific' and path to one of them."
      )
    (self.checkpoint,) = found

  def start(self, source: Any) -> session.InferFn:
    """Reads the parameters; returns the function of (dataset, rng).

    Nothing is compiled yet.

    Args:
      source: Its first example says what a batch looks like.

    Raises:
      ValueError: The model cannot infer on such batches, or so.
    """
    shapes, types = self.plan.input_shapes(source)
    states = inference_state.InferenceStates(
        model=self.plan.model,
        partitioner=self._partitioner,
        restore_checkpoint_cfg=self._cfg,
        input_shapes=shapes,
        input_types=types,
        train_state_initializer_cls=self._initializer_cls,
        fallback_init_rng=self._seed,
    )
    infer_fn = inference.get_infer_fn(
        self._infer_step,
        self.plan.batch_size,
        states.train_state_axes,
        self._partitioner,
        keep_aux_as_numpy=True,
    )
    # Arguments of decoding are refused when it is traced: before the restore.
    infer_fn.trace(
        states.global_train_state_shape,
        {n: jax.ShapeDtypeStruct(shapes[n], types[n]) for n in shapes},
        jax.random.PRNGKey(0),
    )
    return functools.partial(
        infer_fn, train_state=states.restore(self.checkpoint)
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
  """The arguments of `t5wild.infer.infer`; see there for each.

  Attributes:
    bindings: Configuration that the outputs depend on.
  """

  mode: str
  model: Any
  dataset_cfg: Any
  restore_checkpoint_cfg: configs.RestoreCheckpointConfig
  partitioner: partitioner_lib.BasePartitioner
  output_dir: str
  checkpoint_period: int
  shard_id: int
  num_shards: int
  merge_chunked_results: bool
  write_fn: Callable[..., None]
  checkpoint_ds_iter: bool
  train_state_initializer_cls: Callable[..., Any]
  fallback_init_rng: int | None
  merge_fn: Callable[..., None]
  summarize_config_fn: Callable[..., None] | None
  verify_matching_vocabs_fn: Callable[..., None] | None
  output_vocab_feature_name: str
  file_extension: str
  keep_aux_as_numpy: bool
  use_orbax: bool
  num_buckets: int
  token_scores: bool
  output_name: str | None
  bindings: Sequence[str] = ()

  @property
  def part(self) -> str:
    """Which shard this job does, as it stands in names of files."""
    return f'{self.shard_id:05}-of-{self.num_shards:05}'

  def name_of(self, source: Any) -> str:
    """Name of the output of a source."""
    return self.output_name or (
        f'{source.name}-{self.mode}.{self.file_extension}-{self.part}'
    )


def run(job: Job, *, when_ready: Callable[[], None]) -> None:
  """Writes what is not written yet.

  Args:
    job: What to do.
    when_ready: Called once nothing can be refused any more.

  Raises:
    ValueError: Something cannot work; nothing was compiled.
  """
  cfg = job.dataset_cfg
  _check_shard(job)
  plan = session.Plan(
      mode=job.mode,
      model=job.model,
      lengths=cfg.task_feature_lengths,
      batch_size=cfg.batch_size,
      chunk_size=chunk_size(job.checkpoint_period, cfg.batch_size),
      num_buckets=job.num_buckets,
      write_fn=job.write_fn,
      token_scores=job.token_scores,
  )
  if job.verify_matching_vocabs_fn is not None and _has_task(job):
    job.verify_matching_vocabs_fn(cfg, job.model)
  engine = Engine(
      plan,
      partitioner=job.partitioner,
      restore_checkpoint_cfg=job.restore_checkpoint_cfg,
      train_state_initializer_cls=job.train_state_initializer_cls,
      fallback_init_rng=job.fallback_init_rng,
  )
  sources = inputs.open_sources(
      cfg,
      model=job.model,
      mode=job.mode,
      shard=(job.shard_id, job.num_shards),
      output_feature=job.output_vocab_feature_name,
  )
  todo = _find_work(job, engine, sources)
  if not todo:
    return
  infer_fn = engine.start(todo[0][0])
  when_ready()
  if job.summarize_config_fn is not None and job.shard_id == 0:
    job.summarize_config_fn(
        model_dir=job.output_dir, summary_writer=None, step=0
    )
  for source, output in todo:
    session.run(plan, source, output, infer_fn=infer_fn)
    if job.merge_chunked_results:
      logging.info('Written: %s', os.path.join(job.output_dir, output.name))


def _check_shard(job: Job) -> None:
  if job.num_shards < 1 or not 0 <= job.shard_id < job.num_shards:
    raise ValueError(
        f'shard_id is {job.shard_id} and num_shards is {job.num_shards}: '
        'expected at least one shard, and an index from 0 below their number. '
        'Correct infer.shard_id.'
    )


def _has_task(job: Job) -> bool:
  is_file = isinstance(job.dataset_cfg, inputs.FileConfig)
  return not is_file and isinstance(
      job.model, models_base.BaseTransformerModel
  )


def _find_work(
    job: Job, engine: Engine, sources: Sequence[Any]
) -> list[tuple[Any, outputs.Output]]:
  """Returns the sources whose outputs are not complete, and these.

  Raises:
    outputs.BadOutputError: One is there, of other inputs or settings.
  """
  todo = []
  for source in sources:
    output = outputs.Output(
        job.output_dir,
        job.name_of(source),
        tmp_name=f'tmp-{source.name}-{job.part}',
        settings=settings.describe(
            engine.plan,
            source,
            checkpoint=engine.checkpoint,
            bindings=job.bindings,
        ),
        merge_fn=job.merge_fn if job.merge_chunked_results else None,
    )
    if output.is_complete:
      logging.info('%s is complete already', job.name_of(source))
    else:
      todo.append((source, output))
  return todo
