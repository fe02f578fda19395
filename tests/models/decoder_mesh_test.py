# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A decoder reads its prompts and goes on with them alike on every mesh."""

import functools
import types

from flax.linen import partitioning
import jax
import numpy as np
import pytest

from t5wild import partitioning as partitioning_lib
from t5wild.decoding import beam
from t5wild.decoding import greedy
from t5wild.decoding import sampling
from t5wild.models import prefix_lm
from tests.networks import decoders

_LENGTH = 10
_DECODINGS = {
    'greedy': (greedy.greedy_decode, 1),
    'sampling': (functools.partial(sampling.temperature_sample, topk=9), 2),
    'beam': (beam.beam_search, 3),
}


def _make_model(decode_fn, *, scan_layers):
  vocabulary = types.SimpleNamespace(
      eos_id=1, pad_id=0, vocab_size=decoders.TINY.vocab_size
  )
  network = decoders.make('t5x', scan_layers=scan_layers)
  return prefix_lm.PrefixLanguageModel(
      network, vocabulary, None, decode_fn=decode_fn
  )


def _make_batch():
  """Eight prompts of one to five tokens."""
  random = np.random.RandomState(0)
  position = np.arange(_LENGTH)
  sizes = np.array([1, 2, 3, 4, 5, 1, 3, 5])[:, None]
  targets = random.randint(2, decoders.TINY.vocab_size, (8, _LENGTH))
  return {
      'decoder_input_tokens': decoders.shift(targets).astype(np.int32),
      'decoder_target_tokens': targets.astype(np.int32),
      'decoder_causal_attention': (position <= sizes).astype(np.int32),
  }


@pytest.mark.slow
@pytest.mark.parametrize('scan_layers', [False, True])
@pytest.mark.parametrize('name', _DECODINGS)
def test_decodes_of_prompts_are_equal_on_every_mesh(name, scan_layers):
  decode_fn, num_decodes = _DECODINGS[name]
  model, batch = _make_model(decode_fn, scan_layers=scan_layers), _make_batch()
  variables = jax.jit(
      lambda key: model.get_initial_variables(
          key, {feature: x.shape for feature, x in batch.items()}
      ),
      compiler_options=decoders.QUICK,
  )(jax.random.PRNGKey(0))
  rules = partitioning_lib.standard_logical_axis_rules()
  axes = partitioning.get_axis_names(variables['params_axes'])

  def decode(*shape):
    mesh = jax.sharding.Mesh(
        np.array(jax.devices()[: np.prod(shape)]).reshape(shape),
        ('data', 'model'),
    )

    def put(x, spec):
      spec = partitioning.logical_to_mesh_axes(spec, rules)
      return jax.device_put(x, jax.sharding.NamedSharding(mesh, spec))

    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec('data'))
    with jax.set_mesh(mesh), partitioning.axis_rules(rules):
      return jax.jit(
          lambda params, batch: model.predict_batch_with_aux(
              params, batch, jax.random.PRNGKey(2),
              num_decodes=num_decodes, return_all_decodes=num_decodes > 1,
          ),
          compiler_options=decoders.QUICK,
      )(
          jax.tree.map(put, variables['params'], axes),
          jax.device_put(batch, rows),
      )

  tokens, aux = decode(1, 1)
  assert len(np.unique(tokens)) > 10
  for shape in ((8, 1), (2, 4)):
    on_mesh, on_mesh_aux = decode(*shape)
    np.testing.assert_array_equal(on_mesh, tokens)
    # Summed over devices in another order.
    np.testing.assert_allclose(
        on_mesh_aux['scores'], aux['scores'], rtol=1e-5, atol=1e-5
    )
