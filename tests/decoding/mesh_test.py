# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Decoding gives equal tokens however batch and model lie on devices."""

import functools

import jax
from jax import numpy as jnp
import numpy as np
import pytest

from t5wild.decoding import beam
from t5wild.decoding import greedy
from t5wild.decoding import sampling
from tests.decoding import toy_models

_VOCAB = 16
_DECODINGS = {
    'greedy': greedy.greedy_decode,
    'topk': functools.partial(
        sampling.temperature_sample, topk=5, num_decodes=2
    ),
    'topp': functools.partial(
        sampling.temperature_sample, topk=0, topp=0.9, num_decodes=2
    ),
    'penalty': functools.partial(
        sampling.temperature_sample, topk=0, repetition_penalty=1.5
    ),
    'beam': functools.partial(beam.beam_search, num_decodes=4),
}


def _decode(decode_fn, weights, inputs, *, data, model):
  """Decodes on a mesh: rows over `data`, weights and cache over `model`."""
  devices = np.array(jax.devices()[: data * model]).reshape(data, model)
  mesh = jax.sharding.Mesh(devices, ('data', 'model'))

  def put(x, *axes):
    spec = jax.sharding.PartitionSpec(*axes)
    return jax.device_put(x, jax.sharding.NamedSharding(mesh, spec))

  (current, past), bias = weights

  @jax.jit
  def run(current, past, bias, inputs, cached_sum):
    step = toy_models.HistoryModel(((current, past), bias))
    return decode_fn(
        inputs=inputs,
        cache={'cached_sum': cached_sum, 'cache_index': jnp.zeros(())},
        tokens_to_logits=step,
        eos_id=toy_models.EOS,
        cache_offset=0,
    )

  return jax.tree.map(
      np.asarray,
      run(
          put(current, None, 'model'),
          put(past, None, 'model'),
          put(bias, 'model'),
          put(jnp.asarray(inputs, jnp.int32), 'data'),
          put(jnp.zeros((len(inputs), _VOCAB)), 'data', 'model'),
      ),
  )


@pytest.mark.parametrize('name', sorted(_DECODINGS))
def test_tokens_are_equal_on_every_mesh(name):
  weights = toy_models.make_weights(6, vocab=_VOCAB)
  inputs = np.zeros((8, 9), int)
  inputs[:, 1] = np.arange(2, 10)
  decode = functools.partial(_decode, _DECODINGS[name], weights, inputs)
  tokens, scores = decode(data=1, model=1)
  for data, model in ((8, 1), (2, 4), (1, 8)):
    on_mesh = decode(data=data, model=model)
    np.testing.assert_array_equal(on_mesh[0], tokens)
    # Logits are summed over the vocabulary in another order.
    np.testing.assert_allclose(on_mesh[1], scores, rtol=1e-5, atol=1e-6)
