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

from t5wild.models import encoder_decoder
from t5wild.networks import transformer


class Vocabulary:
  """The least a vocabulary can be."""

  eos_id = 1
  pad_id = 0
  vocab_size = 384


def make_model(*, config_changes=None, **kwargs):
  """A model over the network of T5X's fixtures."""
  config = transformer.T5Config(
      vocab_size=Vocabulary.vocab_size,
      emb_dim=32,
      num_heads=4,
      head_dim=16,
      mlp_dim=64,
      mlp_activations=('gelu', 'linear'),
      num_encoder_layers=2,
      num_decoder_layers=2,
      dropout_rate=0.1,
  ).replace(**(config_changes or {}))
  return encoder_decoder.EncoderDecoderModel(
      transformer.Transformer(config),
      Vocabulary(),
      Vocabulary(),
      optimizer_def=None,
      **kwargs,
  )


@pytest.fixture(name='make_model', scope='session')
def make_model_fixture():
  """`make_model(config_changes=None, **model arguments)`."""
  return make_model


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


_SCANNED = {
    'scan_layers': True,
    'remat_policy': 'minimal',
    'num_encoder_layers': 3,
    'num_decoder_layers': 3,
}


@pytest.fixture(
    scope='session', params=['encoder_decoder', 'encoder_decoder_scanned']
)
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

  is_scanned = request.param == 'encoder_decoder_scanned'
  return types.SimpleNamespace(
      folder=folder,
      outputs=outputs,
      params=traverse_util.unflatten_dict(flat, sep='/'),
      noisy_params=traverse_util.unflatten_dict(_add_noise(flat), sep='/'),
      batch=batch('batch'),
      decode_batch=batch('decode_batch'),
      make_model=functools.partial(
          make_model, config_changes=_SCANNED if is_scanned else None
      ),
  )
