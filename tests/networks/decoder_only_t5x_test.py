# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The decoder alone gives the numbers of T5X's decoder-only network."""

import jax
import numpy as np
import pytest

from t5wild.networks import decoder_only
from tests.networks import decoders

PREFIX_LENGTHS = np.array([4, 3, 7])

# What T5X's own decoder-only network gives for this configuration, key and
# batch (jax 0.10, CPU): losses, and the tokens after each prefix.
T5X_CONFIG = decoder_only.TransformerConfig(
    vocab_size=96, emb_dim=32, num_heads=4, head_dim=16, mlp_dim=64,
    num_layers=2, mlp_activations=('gelu', 'linear'), dropout_rate=0.1,
)  # fmt: skip
T5X = {
    True: {
        'causal': 164.89588928222656,
        'prefix': 164.0145263671875,
        'packed prefix': 162.8728790283203,
        'dropout': 169.26963806152344,
        'tokens': [[65] * 4, [13] * 4, [80] * 4],
    },
    False: {
        'causal': 165.45962524414062,
        'prefix': 163.169189453125,
        'packed prefix': 166.88316345214844,
        'dropout': 167.13665771484375,
        'tokens': [[24, 87, 15, 3], [72, 94, 33, 65], [82, 92, 6, 24]],
    },
}


def make_t5x_batch():
  random = np.random.RandomState(0)
  targets = random.randint(1, 96, (3, 12)).astype(np.int32)
  targets[1, -3:] = 0
  prefix = np.arange(12) < PREFIX_LENGTHS[:, None]
  return decoders.shift(targets), targets, prefix.astype(np.int32)


@pytest.mark.parametrize('tied', [True, False])
def test_losses_and_decodes_are_those_of_t5x(tied):
  network = decoder_only.DecoderWrapper(
      T5X_CONFIG.replace(logits_via_embedding=tied)
  )
  inputs, targets, prefix = make_t5x_batch()
  params = jax.jit(
      lambda key: network.init(key, inputs, targets, enable_dropout=False)
  )(jax.random.PRNGKey(3))['params']

  @jax.jit
  def loss(prefix, segments, key):
    logits = network.apply(
        {'params': params},
        inputs,
        targets,
        decoder_causal_attention=prefix,
        decoder_segment_ids=segments,
        enable_dropout=key is not None,
        rngs=None if key is None else {'dropout': key},
    )
    return (decoders.losses(logits, targets) * (targets > 0)).sum()

  expected = T5X[tied]
  segments = np.repeat([[1] * 5 + [2] * 7], 3, axis=0)
  for name, arguments in (
      ('causal', (None, None, None)),
      ('prefix', (prefix, None, None)),
      ('packed prefix', (prefix, segments, None)),
      ('dropout', (None, None, jax.random.PRNGKey(5))),
  ):
    np.testing.assert_allclose(
        loss(*arguments), expected[name], rtol=1e-6, err_msg=name
    )
  cache, lengths = decoders.prefill(
      network, params, inputs * prefix, prefix, is_prefix=True
  )
  tokens = inputs[np.arange(3), lengths]
  decoded = []
  for _ in range(4):
    logits, cache = decoders.take_step(
        network, params, cache, tokens, length=12
    )
    tokens = np.argmax(logits, axis=-1)
    decoded.append(tokens)
  np.testing.assert_array_equal(np.stack(decoded, 1), expected['tokens'])


@pytest.mark.parametrize('scan_layers', [False, True])
def test_parameters_have_the_names_and_axes_of_t5x(scan_layers):
  network = decoders.make('t5x', scan_layers=scan_layers)
  variables = decoders.make_variables(network)
  shapes = {k: x.shape for k, x in decoders.flat(variables['params']).items()}
  if not scan_layers:
    expected = {
        'token_embedder/embedding': (48, 16),
        'relpos_bias/rel_embedding': (4, 32),
        'decoder_norm/scale': (16,),
        'logits_dense/kernel': (16, 48),
    }
    for layer in range(2):
      expected |= {
          f'layers_{layer}/{name}': shape
          for name, shape in {
              'pre_self_attention_layer_norm/scale': (16,),
              'self_attention/query/kernel': (16, 32),
              'self_attention/key/kernel': (16, 32),
              'self_attention/value/kernel': (16, 32),
              'self_attention/out/kernel': (32, 16),
              'pre_mlp_layer_norm/scale': (16,),
              'mlp/wi_0/kernel': (16, 24),
              'mlp/wi_1/kernel': (16, 24),
              'mlp/wo/kernel': (24, 16),
          }.items()
      }
    assert shapes == {f'decoder/{k}': v for k, v in expected.items()}
  else:
    assert shapes['decoder/decoder/self_attention/query/kernel'] == (
        16, 2, 4, 8,
    )  # fmt: skip
    assert shapes['decoder/decoder/relpos_bias/rel_embedding'] == (4, 2, 32)
  assert {f'{k}_axes' for k in shapes} == set(
      decoders.flat(variables['params_axes'])
  )
