# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's training run, and small runs to compare with it."""

import functools
import types

from flax import traverse_util
import jax
from jax import numpy as jnp
import numpy as np
import pytest

from t5wild import optimizers
from t5wild import train_state as train_state_lib
from t5wild.optimizers import adafactor
from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.trainer import trainer as trainer_lib
from tests import t5x_network


def make_model(*, config_changes=None, **model_arguments):
  """The model of T5X's fixtures, with Adafactor as there."""
  arguments = {
      'optimizer_def': optimizers.Adafactor(
          min_dim_size_to_factor=32,
          logical_factor_rules=adafactor.standard_logical_factor_rules(),
      ),
      'z_loss': 1e-4,
  }
  return t5x_network.make_model(
      config_changes=config_changes, **(arguments | model_arguments)
  )


# Compiles in a third of the time of the fixtures' network.
SMALL = {'num_encoder_layers': 1, 'num_decoder_layers': 1}


def make_batch(batch_size=8, inputs=16, targets=12, *, seed=0):
  """A padded batch of random tokens, each row of another length."""
  rng = np.random.default_rng(seed)

  def tokens(length):
    kept = rng.integers(1, length + 1, (batch_size, 1))
    return np.where(
        np.arange(length) < kept,
        rng.integers(2, 384, (batch_size, length)),
        0,
    ).astype(np.int32)

  target = tokens(targets)
  shifted = np.pad(target, ((0, 0), (1, 0)))[:, :-1]
  return {
      'encoder_input_tokens': jnp.asarray(tokens(inputs)),
      'decoder_input_tokens': jnp.asarray(shifted),
      'decoder_target_tokens': jnp.asarray(target),
      'decoder_loss_weights': jnp.asarray((target > 0).astype(np.int32)),
  }


def make_state(model, batch, *, params=None):
  """A state at step 0, of random parameters unless some are given."""
  shapes = {name: x.shape for name, x in batch.items()}
  make_variables = functools.partial(
      model.get_initial_variables, jax.random.PRNGKey(42), shapes
  )
  if params is None:
    variables = jax.jit(make_variables)()
  else:
    variables = dict(jax.eval_shape(make_variables)) | {'params': params}
  return train_state_lib.FlaxOptimTrainState.create(
      model.optimizer_def, variables
  )


def make_trainer(model, batch, *, params=None, partitioner=None, **arguments):
  """A trainer, on one device unless a partitioner is given."""
  if partitioner is None:
    partitioner = _OneDevicePartitioner()
  state = make_state(model, batch, params=params)
  axes = partitioner.get_mesh_axes(state)
  defaults = {
      'learning_rate_fn': optimizers.create_learning_rate_scheduler(
          warmup_steps=10
      ),
      'num_microbatches': None,
      'eval_names': (),
      'summary_dir': None,
      'rng': jax.random.split(jax.random.PRNGKey(42))[1],
  }
  return trainer_lib.Trainer(
      model=model,
      train_state=partitioner.move_params_to_devices(state, axes),
      partitioner=partitioner,
      train_state_axes=axes,
      **(defaults | arguments),
  )


class _OneDevicePartitioner(partitioner_lib.PjitPartitioner):
  """A mesh of the first device, whatever others there are."""

  @property
  def mesh(self):
    devices = np.asarray(jax.devices()[:1]).reshape((1,) * 5)
    names = ('replica', 'data', 'model', 'sequence', 'expert')
    return jax.sharding.Mesh(devices, names)


@pytest.fixture(scope='session')
def make_run():
  """The functions of this file."""
  return types.SimpleNamespace(
      model=make_model,
      small=SMALL,
      batch=make_batch,
      state=make_state,
      trainer=make_trainer,
  )


@pytest.fixture(scope='session', params=sorted(t5x_network.CHANGES))
def t5x_run(t5x_fixtures, request):
  """What T5X computed: parameters, batches, outputs, gradients."""
  folder = t5x_fixtures / request.param
  outputs = dict(np.load(folder / 'outputs.npz'))

  def batch(name):
    return {
        key.removeprefix(f'{name}/'): jnp.asarray(value)
        for key, value in outputs.items()
        if key.startswith(f'{name}/')
    }

  return types.SimpleNamespace(
      name=request.param,
      config_changes=t5x_network.CHANGES[request.param],
      outputs=outputs,
      batch=batch('batch'),
      train_batches=[batch(f'train_batch_{i}') for i in range(5)],
      checkpoint_params=_read_checkpoint(folder),
      initial_params=_read_nested(folder / 'init_params_seed42.npz'),
      state_after_step1=dict(np.load(folder / 'state_after_step1.npz')),
      gradients={
          n: dict(
              np.load(folder / f'grads_dropout_key11_microbatches_{n}.npz')
          )
          for n in (None, 2)
      },
  )


def _read_nested(path):
  return traverse_util.unflatten_dict(dict(np.load(path)), sep='/')


def _read_checkpoint(folder):
  import orbax.checkpoint as ocp

  structure = _read_nested(folder / 'state_after_apply_gradient_lr0.01.npz')
  state = ocp.PyTreeCheckpointer().restore(
      str(folder / 'ckpt_orbax' / 'checkpoint_300' / 'state'),
      item=structure,
      restore_args=jax.tree.map(
          lambda _: ocp.RestoreArgs(restore_type=np.ndarray), structure
      ),
  )
  return state['target']
