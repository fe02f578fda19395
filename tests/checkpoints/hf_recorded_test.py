# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Models of `transformers` give its recorded logits here, without torch."""

import json

from flax import traverse_util
import jax
import numpy as np
import pytest

from t5wild.checkpoints import formats
from t5wild.checkpoints import hf
from t5wild.checkpoints import hf_writing
from t5wild.checkpoints import safetensors_files
from t5wild.networks import decoder_only
from t5wild.networks import transformer
from tests.checkpoints import hf_recorded

MODELS = hf_recorded.read()
QUICK = {'xla_backend_optimization_level': 0}  # to compile
# One of each kind of network; the others when all are tested.
FEW = ('t5_1_0', 'umt5', 'llama_3_1', 'gemma_3')


def _parameters(folder):
  arrays = formats.read_structure(folder)
  named = {
      tuple(key.split('/')[1:]): np.asarray(array)
      for key, array in arrays.items()
      if key.startswith('target/')
  }
  return traverse_util.unflatten_dict(named)


def _logits(folder):
  """By a network that is made of config.json alone."""
  values = hf.read_network(str(folder)) | {'dropout_rate': 0.0}
  encoder_tokens, tokens = hf_recorded.make_batch()
  if 'num_layers' in values:
    config = decoder_only.TransformerConfig(**values)
    network, inputs = decoder_only.DecoderWrapper(config), (tokens,)
  else:
    network = transformer.Transformer(transformer.T5Config(**values))
    inputs = (encoder_tokens, tokens)
  return jax.jit(
      lambda params: network.apply(
          {'params': params}, *inputs, np.ones_like(tokens),
          enable_dropout=False,
      ),
      compiler_options=QUICK,
  )(_parameters(folder))  # fmt: skip


@pytest.mark.parametrize(
    'name',
    [
        pytest.param(n, marks=() if n in FEW else pytest.mark.slow)
        for n in MODELS
    ],
)
def test_logits_are_those_that_transformers_gave(tmp_path, name):
  folder = tmp_path / 'theirs'
  hf_recorded.write_folder(folder, MODELS[name])
  actual = hf_recorded.kept(np.asarray(_logits(folder)))
  expected = np.array(MODELS[name]['logits'], np.float64)
  # Products of float32 matrices, summed in another order.
  error = np.abs(actual.ravel() - expected).max()
  assert error <= 2e-5 * np.abs(expected).max()


@pytest.mark.parametrize('name', MODELS)
@pytest.mark.parametrize('knows', ['network', 'template'])
def test_what_is_written_has_the_names_the_numbers_and_the_network(
    tmp_path, name, knows
):
  theirs, ours = tmp_path / 'theirs', tmp_path / 'ours'
  hf_recorded.write_folder(theirs, MODELS[name])
  network = hf.read_network(str(theirs))
  known = {'network': network, 'family': MODELS[name]['config']['model_type']}
  if knows == 'template':
    known = {'template': MODELS[name]['config']}
  hf_writing.write(str(ours), formats.read_structure(theirs), **known)
  assert hf.read_network(str(ours)) == network
  config = json.loads((ours / 'config.json').read_text())
  for key in ('model_type', 'architectures'):
    assert config[key] == MODELS[name]['config'][key]
  weights = safetensors_files.read_file(str(ours / 'model.safetensors'))
  expected = hf_recorded.make_weights(MODELS[name]['shapes'])
  assert weights.keys() == expected.keys()
  for key, numbers in expected.items():
    np.testing.assert_array_equal(np.asarray(weights[key]), numbers, key)
