# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's masks and attention function have T5X's types, axes and meaning."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.networks import t5x_masks


def test_masks_are_numbers_of_the_type_asked_for():
  tokens = jnp.asarray([[5, 6, 7, 0]])
  mask = t5x_masks.make_decoder_mask(
      tokens,
      jnp.bfloat16,
      jnp.asarray([[1, 1, 0, 0]]),
      jnp.asarray([[1, 1, 2, 0]]),
  )
  assert mask.dtype == jnp.bfloat16
  np.testing.assert_array_equal(
      mask[0, 0].astype(int),
      [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]],
  )
  causal = t5x_masks.make_causal_mask(tokens, extra_batch_dims=2)
  assert (causal.shape, causal.dtype) == ((1, 1, 1, 1, 4, 4), jnp.float32)
  np.testing.assert_array_equal(causal[0, 0, 0, 0], np.tri(4))
  np.testing.assert_array_equal(
      t5x_masks.make_attention_mask(tokens, tokens)[0, 0],
      np.outer(tokens[0], tokens[0]),
  )


def test_biases_add_up_and_masks_meet():
  a, b = jnp.asarray([1.0, 2.0]), jnp.asarray([0.0, 3.0])
  np.testing.assert_array_equal(
      t5x_masks.combine_biases(a, None, b), [1.0, 5.0]
  )
  np.testing.assert_array_equal(t5x_masks.combine_masks(a, None, b), [0, 1])
  assert t5x_masks.combine_biases(None) is None
  assert t5x_masks.combine_masks(None, None) is None
  with pytest.raises(ValueError, match=r'ranks \(1, 2\), expected one rank'):
    t5x_masks.combine_biases(a, b[None])


@pytest.mark.parametrize('kv_of_value', [3, 5, 7])
def test_attention_of_positions_before_heads_is_the_softmax_average(
    kv_of_value,
):
  keys = jax.random.split(jax.random.PRNGKey(0), 4)
  query = jax.random.normal(keys[0], (2, 3, 4, 5))
  key = jax.random.normal(keys[1], (2, 6, 4, 5))
  value = jax.random.normal(keys[2], (2, 6, 4, kv_of_value))
  bias = jax.random.normal(keys[3], (4, 3, 6))
  logits = jnp.einsum('bqhd,bkhd->bhqk', query, key) + bias
  np.testing.assert_allclose(
      t5x_masks.dot_product_attention(query, key, value, bias),
      jnp.einsum('bhqk,bkhd->bqhd', jax.nn.softmax(logits), value),
      rtol=1e-4,
      atol=1e-5,
  )


def test_attention_drops_the_same_keys_for_all_queries():
  value = jnp.eye(6)[None, :, None]  # [1, keys, 1, keys]: tells the weights
  weights = t5x_masks.dot_product_attention(
      jnp.zeros((1, 3, 1, 2)), jnp.zeros((1, 6, 1, 2)), value, None,
      jax.random.PRNGKey(0), 0.5,
  )[0, :, 0]  # fmt: skip
  assert 0 < np.count_nonzero(weights[0]) < 6
  np.testing.assert_allclose(weights[0][weights[0] > 0], 2 / 6, rtol=1e-6)
  np.testing.assert_array_equal(weights[0], weights[2])
