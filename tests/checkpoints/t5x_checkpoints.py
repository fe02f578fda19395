# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in T5X's native format, written here; models to restore them."""

import os

from flax import serialization
from flax import traverse_util
import jax
import jax.numpy as jnp
import numpy as np
import tensorstore

from t5wild import optimizers
from t5wild.checkpoints import configs
from t5wild.checkpoints import initialize
from t5wild.checkpoints import transforms
from t5wild.optimizers import adafactor
from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.trainer import initializer
from tests import t5x_network

BATCH = {
    'encoder_input_tokens': (4, 64),
    'decoder_input_tokens': (4, 32),
    'decoder_target_tokens': (4, 32),
}


def write_native(
    folder, state, *, chunks=(), compressor='gzip', version=3, inline=(),
    driver='file', change_spec=lambda key, spec: spec,
):  # fmt: skip
  """Writes nested numpy arrays as T5X does: an index, a zarr folder for each.

  Args:
    folder: The checkpoint.
    state: Nested dicts.
    chunks: Pieces of arrays by key; others are one piece.
    compressor: 'gzip', or None for pieces as they are.
    version: T5X's number of the format.
    inline: Keys that stay in the index; scalars and unused slots always do.
    driver: How specs name the store: 'file', 'gfile', 'gcs', or 'old' for gcs
      with the path beside the store.
    change_spec: Given key and spec, returns what the index has instead.
  """
  os.makedirs(folder)
  leaves = {}
  for key, value in transforms.flatten(state).items():
    value = np.asarray(value)
    if key in inline or value.shape in ((), (1,)):
      leaves[key] = value
      continue
    name = key.replace('/', '.')
    metadata = {
        'shape': list(value.shape),
        'chunks': list(dict(chunks).get(key, value.shape)),
        'compressor': compressor and {'id': compressor},
    }
    spec = {'driver': 'zarr', 'dtype': value.dtype.name, 'metadata': metadata}
    array = tensorstore.open(
        spec | {'kvstore': {'driver': 'file', 'path': f'{folder}/{name}'}},
        create=True,
        open=True,
    ).result()
    array.write(value).result()
    leaves[key] = change_spec(key, spec | _store(driver, name))
  content = {
      'version': version,
      'optimizer': traverse_util.unflatten_dict(leaves, sep='/'),
  }
  with open(os.path.join(folder, 'checkpoint'), 'wb') as file:
    file.write(serialization.msgpack_serialize(content))


def _store(driver, name):
  if driver == 'old':
    return {
        'kvstore': {'driver': 'gcs', 'bucket': 't5x-dummy-bucket'}, 'path': name
    }
  store = {'driver': driver, 'path': f'{name}/'}
  if driver == 'gcs':
    store['bucket'] = 't5x-dummy-bucket'
  return {'kvstore': store}


class Restorer:
  """A model on a mesh, with its optimizer or to infer."""

  def __init__(self, model, input_shapes, *, mesh=None, trains=True):
    self.model = model
    self.partitioner = partitioner_lib.PjitPartitioner(
        mesh_shape=mesh or {'data': 8}
    )
    self.states = initializer.TrainStateInitializer(
        optimizer_def=model.optimizer_def if trains else None,
        init_fn=model.get_initial_variables,
        input_shapes=input_shapes,
        input_types=dict.fromkeys(input_shapes, jnp.int32),
        partitioner=self.partitioner,
    )

  def restore(self, path, *, mode='specific', **kwargs):
    return self.begin(
        None, configs.RestoreCheckpointConfig(str(path), mode, **kwargs)
    ).train_state

  def begin(self, model_dir, restore=None):
    return initialize.initialize_train_state(
        checkpoint_cfg=configs.CheckpointConfig(restore=restore),
        model_dir=None if model_dir is None else str(model_dir),
        partitioner=self.partitioner,
        train_state_shape=self.states.global_train_state_shape,
        train_state_axes=self.states.train_state_axes,
        init_fn=self.states.from_scratch,
        rng=jax.random.PRNGKey(0),
    )


class Model(Restorer):
  """T5X's fixture model, with Adafactor as there."""

  def __init__(self, name='encoder_decoder', *, mesh=None, trains=True,
               decode_fn=None, **changes):  # fmt: skip
    model = t5x_network.make_model(
        config_changes=t5x_network.CHANGES[name] | changes,
        optimizer_def=make_adafactor(),
        z_loss=1e-4,
        **({'decode_fn': decode_fn} if decode_fn else {}),
    )
    super().__init__(model, BATCH, mesh=mesh, trains=trains)


def make_adafactor():
  return optimizers.Adafactor(
      decay_rate=0.8,
      min_dim_size_to_factor=32,
      logical_factor_rules=adafactor.standard_logical_factor_rules(),
  )
