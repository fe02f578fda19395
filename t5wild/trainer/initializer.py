# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The first train state: its shapes, its shardings, and how to make it."""

from collections.abc import Callable, Mapping
import time
from typing import Any

from absl import logging
import jax
import numpy as np

from t5wild import train_state as train_state_lib
from t5wild.optimizers import base as optimizers_base
from t5wild.partitioning import distributed
from t5wild.partitioning import partitioner as partitioner_lib


class TrainStateInitializer:
  """Makes a train state, each device only its own shards.

  Nothing is allocated until `from_scratch`; shapes come from abstract
  evaluation, so an 11 B model is described on a laptop.

  Attributes:
    partitioner: As given.
    global_train_state_shape: The state with `jax.ShapeDtypeStruct` leaves.
    train_state_axes: The state with `PartitionSpec` leaves.
  """

  def __init__(
      self,
      optimizer_def: optimizers_base.OptimizerDef | None,
      init_fn: Callable[..., Any],
      input_shapes: Mapping[str, tuple[int, ...]],
      partitioner: partitioner_lib.BasePartitioner,
      input_types: Mapping[str, Any] | None = None,
  ):
    """Describes the state that `init_fn` and `optimizer_def` make.

    Args:
      optimizer_def: The optimiser, or None for an inference state.
      init_fn: `model.get_initial_variables`.
      input_shapes: Global shape of each feature of a batch.
      partitioner: Gives every leaf its PartitionSpec.
      input_types: dtype of each feature; None means int32 throughout.
    """
    self._optimizer_def = optimizer_def
    self._init_fn = init_fn
    self._input_shapes = dict(input_shapes)
    self._input_types = dict(input_types) if input_types else None
    self.partitioner = partitioner
    # One object, for jit to know again: tracing twice would take twice as long.
    self._traced_function = self._make_state
    self.global_train_state_shape = self._trace_shape()
    self.train_state_axes = partitioner.get_mesh_axes(
        self.global_train_state_shape
    )

  def _make_state(self, rng: jax.Array):
    variables = self._init_fn(
        rng=rng,
        input_shapes=self._input_shapes,
        input_types=self._input_types,
    )
    if self._optimizer_def is None:
      return train_state_lib.InferenceState.create(variables)
    return train_state_lib.FlaxOptimTrainState.create(
        self._optimizer_def, variables
    )

  def _trace_shape(self):
    key = jax.eval_shape(lambda: jax.random.PRNGKey(0))
    make = self.partitioner.partition(
        self._traced_function,
        in_axis_resources=None,
        out_axis_resources=None,
    )
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype),
        make.trace(key).out_info,
    )

  def from_scratch(self, init_rng: jax.Array):
    """Returns a new sharded state; the same bits on every mesh."""
    make = self.partitioner.partition(
        self._traced_function,
        in_axis_resources=None,
        out_axis_resources=self.train_state_axes,
    )
    return make(init_rng)


def booked(make: Callable[[jax.Array], Any], ledger: Any):
  """`make`, saying so before, with its time booked as `init`."""

  def make_first_state(rng: jax.Array):
    logging.info(
        'Compiling and making the first state; without a compilation cache '
        'this takes a while ...'
    )
    with ledger.span('init'):
      return jax.block_until_ready(make(rng))

  return make_first_state


def make_rngs(
    seed: int | None, *, use_hardware_rng: bool
) -> tuple[jax.Array, jax.Array]:
  """T5X's keys: `PRNGKey(seed)` split into initialisation and trainer."""
  if use_hardware_rng or seed is None:
    jax.config.update('jax_default_prng_impl', 'unsafe_rbg')
    causes = ['RANDOM_SEED is None: set it to a number'] * (seed is None)
    causes += ['use_hardware_rng is True: set it to False'] * bool(
        use_hardware_rng
    )
    logging.warning(
        'Hardware RNG in use: dropout and initialisation depend on the mesh '
        'and cannot be repeated on another (%s).', '; '.join(causes),
    )
  if seed is None:
    seed = int(distributed.broadcast_one_to_all(np.int32(time.time())))
    logging.info('random_seed is None: using %d', seed)
  init_rng, trainer_rng = jax.random.split(jax.random.PRNGKey(seed), 2)
  return init_rng, trainer_rng
