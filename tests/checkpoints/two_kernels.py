# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A model of two kernels with all that the beginning of a run asks for."""

import contextlib

from flax import linen as nn
import flax.core
from flax.linen import partitioning as flax_partitioning
import jax
import jax.numpy as jnp

from t5wild import optimizers
from t5wild import train_state as train_state_lib
from t5wild.checkpoints import configs
from t5wild.checkpoints import initialize
from t5wild.checkpoints import manager as manager_lib
from t5wild.partitioning import partitioner as partitioner_lib


class Net(nn.Module):
  """Two kernels with axes, and a mutable variable."""

  names: tuple[str, ...] = ('old', 'same')
  width: int = 8

  @nn.compact
  def __call__(self, x):
    for name in self.names:
      x = x @ flax_partitioning.param_with_axes(
          name, nn.initializers.normal(1.0), (x.shape[-1], self.width),
          axes=('embed', 'mlp'),
      )  # fmt: skip
    flax_partitioning.variable_with_axes(
        'statistics', 'mean', jnp.zeros, (4,), axes=('mlp',)
    )
    return x


class Model:
  """What the initialisation of a run needs of a model and a mesh."""

  def __init__(self, *, num_partitions=1, optimizer=None, inference=False,
               **net):  # fmt: skip
    self.partitioner = partitioner_lib.PjitPartitioner(
        num_partitions=num_partitions
    )
    net = Net(**net)
    optimizer = optimizer or optimizers.Adafactor()

    def make(rng):
      variables = flax.core.freeze(net.init(rng, jnp.ones((1, 8))))
      if inference:
        return train_state_lib.InferenceState.create(variables)
      return train_state_lib.FlaxOptimTrainState.create(optimizer, variables)

    self.shape = jax.eval_shape(make, jax.random.PRNGKey(0))
    self.axes = self.partitioner.get_mesh_axes(self.shape)
    self.init = self.partitioner.partition(
        make, in_axis_resources=None, out_axis_resources=self.axes
    )

  def initialize(
      self, model_dir=None, restore=None, save=None, seed=1, **kwargs
  ):
    return initialize.initialize_train_state(
        checkpoint_cfg=configs.CheckpointConfig(save=save, restore=restore),
        model_dir=None if model_dir is None else str(model_dir),
        partitioner=self.partitioner,
        train_state_shape=self.shape,
        train_state_axes=self.axes,
        init_fn=self.init,
        rng=jax.random.PRNGKey(seed),
        **kwargs,
    )

  def save(self, directory, *, seed=5, at=(3,), dataset_state=None, **config):
    """Saves a state; its step is in the state too."""
    opened = manager_lib.CheckpointManager(
        directory, config=configs.SaveCheckpointConfig(**config)
    )
    state = self.init(jax.random.PRNGKey(seed))
    with contextlib.closing(opened):
      for step in at:
        opened.save(step, state.replace_step(jnp.int32(step)), dataset_state)
    return state
