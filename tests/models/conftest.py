# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's parameters and results, and small models to run them with."""

import functools
import types

from flax import traverse_util
from jax import numpy as jnp
import numpy as np
import pytest
import tensorstore

from tests import t5x_network


@pytest.fixture(scope='session')
def make_model():
  """`make_model(config_changes=None, **model arguments)`."""
  return t5x_network.make_model


def _read_parameters(checkpoint):
  """Parameters of a native T5X checkpoint, by path."""
  folders = sorted(checkpoint.glob('target.*'))
  return {
      folder.name.removeprefix('target.').replace('.', '/'): np.asarray(
          tensorstore.open({
              'driver': 'zarr',
              'kvstore': {'driver': 'file', 'path': str(folder)},
          })
          .result()
          .read()
          .result()
      )
      for folder in folders
  }


def _add_noise(parameters):
  """The noisy parameters of the fixtures' README."""
  rng = np.random.RandomState(0)
  return {
      path: parameters[path]
      + rng.standard_normal(parameters[path].shape).astype(np.float32)
      * np.float32(0.15)
      for path in sorted(parameters)
  }


@pytest.fixture(scope='session', params=sorted(t5x_network.CHANGES))
def t5x_run(t5x_fixtures, request):
  """What T5X computed: parameters, batches, outputs, and a model maker."""
  folder = t5x_fixtures / request.param
  outputs = dict(np.load(folder / 'outputs.npz'))
  flat = _read_parameters(folder / 'ckpt_legacy' / 'checkpoint_300')

  def batch(name):
    prefix = f'{name}/'
    return {
        key.removeprefix(prefix): jnp.asarray(value)
        for key, value in outputs.items()
        if key.startswith(prefix)
    }

  return types.SimpleNamespace(
      folder=folder,
      outputs=outputs,
      params=traverse_util.unflatten_dict(flat, sep='/'),
      noisy_params=traverse_util.unflatten_dict(_add_noise(flat), sep='/'),
      batch=batch('batch'),
      decode_batch=batch('decode_batch'),
      make_model=functools.partial(
          t5x_network.make_model,
          config_changes=t5x_network.CHANGES[request.param],
      ),
  )
