# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Trainers: the compiled steps and the state they replace.

The training loop uses `train_step` and `eval_batches`, which never wait for the
device. `train` and `eval` are T5X's, for code written against T5X. A subclass
overrides `_partitioned_train_step` and `_partitioned_eval_step`.
"""

import abc
from collections.abc import Callable, Iterable, Mapping, Sequence
import functools
import math
import threading
from typing import Any

import jax
import numpy as np

from t5wild import metrics as metrics_lib
from t5wild import run_dir as run_dir_lib
from t5wild import train_state as train_state_lib
from t5wild.models import base as models_base
from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.trainer import metrics_manager as metrics_manager_lib
from t5wild.trainer import microbatches
from t5wild.trainer import program_agreement
from t5wild.trainer import program_facts
from t5wild.trainer import step as step_lib
from t5wild.trainer import t5x_loops
from t5wild.trainer import update_guard as update_guard_lib
from t5wild.trainer import weight_stats

Batch = step_lib.Batch
MetricsMap = metrics_lib.MetricsMap
PyTree = Any
LearningRateCallable = Callable[[jax.Array], jax.Array]
PartitionedTrainCallable = Callable[
    [train_state_lib.TrainState, Batch],
    tuple[train_state_lib.TrainState, MetricsMap],
]
PartitionedEvalCallable = Callable[
    [train_state_lib.TrainState, Batch], MetricsMap
]


class BaseTrainer(t5x_loops.T5XLoops, abc.ABC):
  """Holds a train state and the functions that replace it.

  Attributes:
    stop_training: Set to True to ask the loop to stop.
    compare_programs: Whether processes compare the training step, once it is
      lowered, before they compile it.
    program_facts: What tells the compiled step from another; None: not known.
    update_guard: What leaves out updates; None: nothing does.
    update_limit: Largest norm of the gradient at which the guard has the next
      update made; set by whoever watches the steps.
  """

  compare_programs = True
  update_guard: update_guard_lib.UpdateGuard | None = None
  update_limit: float = math.inf

  def __init__(
      self,
      model: models_base.BaseModel,
      train_state: train_state_lib.TrainState,
      partitioner: partitioner_lib.BasePartitioner,
      eval_names: Sequence[str],
      summary_dir: str | None,
      train_state_axes: PyTree,
      rng: jax.Array,
  ):
    """Keeps the parts; compiles nothing yet.

    Args:
      model: The model.
      train_state: The first state, laid out on the devices.
      partitioner: Partitions the step functions.
      eval_names: Names of the evaluation data sets.
      summary_dir: Where `train` and `eval` write TensorBoard events; None:
        nowhere. The training loop writes by itself.
      train_state_axes: PartitionSpecs of the state.
      rng: Key of the run; step n uses `fold_in(rng, n)`.
    """
    self._model = model
    self._train_state_axes = train_state_axes
    self._base_rng = rng
    self._partitioner = partitioner
    self._eval_names = tuple(eval_names)
    self._summary_dir = summary_dir
    self._compiled_train_step: PartitionedTrainCallable | None = None
    self._compiled_eval_steps: dict[str, PartitionedEvalCallable] = {}
    self._train_state_mutex = threading.RLock()
    self._train_state = train_state
    self._managers: dict[str, metrics_manager_lib.MetricsManager] = {}
    self.stop_training = False
    self.program_facts: dict[str, Any] | None = None

  def __enter__(self):
    """Returns the trainer, to be closed on leaving."""
    return self

  def __exit__(self, *exc):
    """Closes the trainer."""
    self.close()

  def close(self) -> None:
    """Ends the threads that write metrics."""
    for manager in self._managers.values():
      manager.close()
    self._managers.clear()

  @property
  def train_state(self) -> train_state_lib.TrainState:
    """The newest state."""
    with self._train_state_mutex:
      return self._train_state

  @train_state.setter
  def train_state(self, train_state: train_state_lib.TrainState) -> None:
    with self._train_state_mutex:
      self._train_state = train_state

  def _get_step_rng(self, step: jax.Array | int) -> jax.Array:
    return jax.random.fold_in(self._base_rng, step)

  @property
  @abc.abstractmethod
  def _partitioned_train_step(self) -> PartitionedTrainCallable:
    """Partitioned (state, batch) -> (new state, metrics); donates the state."""

  @property
  @abc.abstractmethod
  def _partitioned_eval_step(self) -> PartitionedEvalCallable:
    """Partitioned (state, batch) -> metrics."""

  def check_train_batch(self, batch: Batch) -> None:
    """Raises ValueError where no step could take batches like `batch`."""
    del batch  # any will do here

  def compile_train(self, batch: Batch) -> PartitionedTrainCallable:
    """Compiles the training step for batches like `batch`, and returns it.

    Args:
      batch: Global batch of arrays or ShapeDtypeStructs.

    Raises:
      ValueError: As `check_train_batch`.
    """
    self.check_train_batch(batch)
    step_fn = self._partitioned_train_step
    if self.compare_programs:
      step_fn = program_agreement.Compared(step_fn, name='the training step')
    self._compiled_train_step = self._partitioner.compile(
        step_fn, self.train_state, *self._inputs(batch)
    )
    self.program_facts = getattr(step_fn, 'facts', None)
    return self._compiled_train_step

  def write_program_facts(self) -> None:
    """Leaves what is known of the compiled step in the run directory."""
    facts, folder = self.program_facts, self._summary_dir
    if facts is not None and folder is not None and jax.process_index() == 0:
      step = int(self.train_state.step)
      program_facts.write(run_dir_lib.RunDir(folder), facts, step=step)

  def use_compiled_train_step(self, compiled: PartitionedTrainCallable) -> None:
    """Takes what `compile_train` of a trainer like this one returned."""
    self._compiled_train_step = compiled

  def compile_eval(self, batches: Mapping[str, Batch]) -> None:
    """Compiles the evaluation step, once for each shape of batch.

    Args:
      batches: Name of the data set -> global batch of arrays or
        ShapeDtypeStructs.
    """
    by_shape = {}
    for name, batch in batches.items():
      shape = tuple(sorted((k, x.shape, x.dtype) for k, x in batch.items()))
      if shape not in by_shape:
        by_shape[shape] = self._partitioner.compile(
            self._partitioned_eval_step, self.train_state, batch
        )
      self._compiled_eval_steps[name] = by_shape[shape]

  def _inputs(self, batch: Batch) -> tuple[Any, ...]:
    limit = np.float32(self.update_limit)
    return update_guard_lib.inputs(self, batch, limit)

  def train_step(self, batch: Batch) -> MetricsMap:
    """Starts one update on the devices, and returns without waiting for it.

    The state before is given up: its memory is the new state's.

    Args:
      batch: Global batch on the devices.

    Returns:
      The step's metrics, on the devices.
    """
    step_fn = self._compiled_train_step or self._partitioned_train_step
    with self._train_state_mutex:
      self._train_state, metrics = step_fn(
          self._train_state, *self._inputs(batch)
      )
    return metrics

  def eval_batches(
      self, name: str, batches: Iterable[Batch]
  ) -> tuple[MetricsMap | None, int]:
    """Evaluates the state on batches, without waiting for the devices.

    Args:
      name: Name of the data set.
      batches: Global batches on the devices.

    Returns:
      (metrics merged over the batches or None, number of batches).
    """
    step_fn = self._compiled_eval_steps.get(name, self._partitioned_eval_step)
    train_state = self.train_state
    merged, num_batches = None, 0
    for batch in batches:
      metrics = step_fn(train_state, batch)
      merged = (
          metrics if merged is None else step_lib.merge_metrics(merged, metrics)
      )
      num_batches += 1
    return merged, num_batches


class Trainer(BaseTrainer):
  """Trains with a learning rate schedule and, if asked, microbatches."""

  def __init__(  # noqa: PLR0913 -- T5X's signature
      self,
      model: models_base.BaseModel,
      train_state: train_state_lib.TrainState,
      partitioner: partitioner_lib.BasePartitioner,
      eval_names: Sequence[str],
      summary_dir: str | None,
      train_state_axes: PyTree,
      rng: jax.Array,
      learning_rate_fn: LearningRateCallable,
      num_microbatches: int | None,
      weight_metrics_computer: weight_stats.WeightMetricsComputer | None = None,
      *,
      microbatch_semantics: str = 't5x',
      compare_programs: bool = True,
      update_guard: update_guard_lib.UpdateGuard | None = None,
  ):
    """Keeps the parts; compiles nothing yet.

    Args: `BaseTrainer`'s, and
      learning_rate_fn: Step -> learning rate.
      num_microbatches: Parts of a batch that are in memory one at a time; None
        or 1 takes the batch whole.
      weight_metrics_computer: Adds statistics of each parameter; None: none.
      microbatch_semantics: 'global': the update does not depend on
        `num_microbatches`; 't5x': each microbatch has its own loss normaliser
        and all draw the same dropout masks, as in T5X.
      compare_programs: See `BaseTrainer`; it costs a text of the program.
      update_guard: As `@update_guard.UpdateGuard()`; None: makes all updates.

    Raises:
      ValueError: For an argument that makes no sense.
    """
    microbatches.check_semantics(microbatch_semantics)
    microbatches.check_num_microbatches(num_microbatches)
    microbatches.tell_semantics(num_microbatches, microbatch_semantics)
    super().__init__(
        model=model,
        train_state=train_state,
        partitioner=partitioner,
        eval_names=eval_names,
        summary_dir=summary_dir,
        train_state_axes=train_state_axes,
        rng=rng,
    )
    self._learning_rate_fn = learning_rate_fn
    self._num_microbatches = microbatches.folded(
        num_microbatches, semantics=microbatch_semantics
    )
    self._weight_metrics_computer = weight_metrics_computer
    self._microbatch_semantics = microbatch_semantics
    self.compare_programs = compare_programs
    self.update_guard = update_guard

  def check_train_batch(self, batch: Batch) -> None:
    """Refuses a batch not divisible by microbatches and devices."""
    microbatches.check_divisible(
        next(iter(batch.values())).shape[0],
        num_microbatches=self._num_microbatches,
        data_shards=self._partitioner.data_mesh_size,
    )

  @functools.cached_property
  def _partitioned_train_step(self) -> PartitionedTrainCallable:
    axes, batch_spec = self._train_state_axes, self._data_partition_spec
    return self._partitioner.partition(
        self._train_step,
        in_axis_resources=(
            axes, *update_guard_lib.inputs(self, batch_spec, None)
        ),
        out_axis_resources=(axes, None),
        donate_argnums=(0,),
    )

  def _train_step(
      self,
      train_state: train_state_lib.TrainState,
      batch: Batch,
      update_limit: jax.Array | None = None,
  ) -> tuple[train_state_lib.TrainState, MetricsMap]:
    return step_lib.train_with_lr(
        train_state,
        batch,
        learning_rate=self._learning_rate_fn(train_state.step),
        dropout_rng=self._get_step_rng(train_state.step),
        model=self._model,
        num_microbatches=self._num_microbatches,
        weight_metrics_computer=self._weight_metrics_computer,
        data_partition_spec=self._data_partition_spec,
        microbatch_semantics=self._microbatch_semantics,
        update_limit=update_limit,
    )

  @functools.cached_property
  def _partitioned_eval_step(self) -> PartitionedEvalCallable:
    return self._partitioner.partition(
        self._eval_step,
        in_axis_resources=(self._train_state_axes, self._data_partition_spec),
        out_axis_resources=None,
    )

  def _eval_step(
      self, train_state: train_state_lib.TrainState, batch: Batch
  ) -> MetricsMap:
    return step_lib.eval_step(self._model, train_state, batch)

  @property
  def _data_partition_spec(self):
    return self._partitioner.data_partition_spec
