# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's several networks are ours with other values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.networks import attention
from t5wild.networks import t5x_configs
from t5wild.networks import transformer

_SIZES = {
    'vocab_size': 8, 'emb_dim': 4, 'num_heads': 2, 'head_dim': 4, 'mlp_dim': 4,
    'num_encoder_layers': 2, 'num_decoder_layers': 2,
}  # fmt: skip


def _shapes(config):
  network = transformer.Transformer(config)
  tokens = jax.ShapeDtypeStruct((1, 3), jnp.int32)
  variables = jax.eval_shape(
      lambda key, x: network.init(key, x, x, x, enable_dropout=False),
      jax.random.key(0),
      tokens,
  )
  return jax.tree.map(lambda x: x.shape, variables['params'])


def test_the_scanned_config_is_the_plain_one_with_scanned_layers():
  assert _shapes(t5x_configs.ScannedT5Config(**_SIZES)) == _shapes(
      transformer.T5Config(**_SIZES, scan_layers=True)
  )


def test_the_gpu_config_has_the_parameters_of_the_plain_one():
  assert _shapes(
      t5x_configs.GpuT5Config(**_SIZES, scale_attn_logits=True)
  ) == _shapes(transformer.T5Config(**_SIZES))


@pytest.mark.parametrize('head_dim', [4, 16])
def test_scale_attn_logits_divides_logits_by_the_root_of_the_head_size(
    head_dim,
):
  inputs = jax.random.normal(jax.random.key(1), (1, 5, 6))
  plain = attention.MultiHeadDotProductAttention(2, head_dim)
  scaled = attention.MultiHeadDotProductAttention(
      2, head_dim, scale_attn_logits=True
  )
  params = scaled.init(
      jax.random.key(0), inputs, inputs, deterministic=True
  )['params']
  # Drawn alike: T5's smaller initial queries stay.
  jax.tree.map(
      np.testing.assert_array_equal,
      params,
      plain.init(jax.random.key(0), inputs, inputs, deterministic=True)[
          'params'
      ],
  )
  actual = scaled.apply({'params': params}, inputs, inputs, deterministic=True)
  smaller = dict(
      params,
      query={'kernel': params['query']['kernel'] / np.sqrt(head_dim)},
  )
  expected = plain.apply(
      {'params': smaller}, inputs, inputs, deterministic=True
  )
  np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
