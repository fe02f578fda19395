# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Token embeddings are looked up, distances sorted as the T5 paper says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.networks import embeddings


def test_embedding_and_gradient_equal_those_of_indexing():
  table = jnp.asarray(np.random.RandomState(0).standard_normal((9, 4)))
  tokens = jnp.array([[1, 8, 1], [0, 3, 1]])

  def total(fn):
    return jax.value_and_grad(lambda table: jnp.sum(jnp.sin(fn(table))))(table)

  actual = total(lambda table: embeddings.take_rows(table, tokens, jnp.float32))
  expected = total(lambda table: table[tokens])
  np.testing.assert_allclose(actual[0], expected[0], rtol=1e-6)
  np.testing.assert_allclose(actual[1], expected[1], rtol=1e-5, atol=1e-6)


def test_gradient_of_bfloat16_embeddings_is_summed_in_the_tables_float32():
  table = jnp.zeros((4, 3), jnp.float32)
  # In bfloat16 the sum of 256 and 257 times 1/4 would stay at 256.
  values = jnp.array([256.0] + 257 * [0.25])[None, :, None]
  tokens = jnp.full((1, 258), 2)
  gradient = jax.grad(
      lambda table: jnp.vdot(
          embeddings.take_rows(table, tokens, jnp.bfloat16),
          jnp.broadcast_to(values, (1, 258, 3)).astype(jnp.bfloat16),
          preferred_element_type=jnp.float32,
      )
  )(table)
  assert gradient.dtype == jnp.float32
  expected = np.zeros((4, 3))
  expected[2] = 256 + 257 * 0.25
  np.testing.assert_array_equal(gradient, expected)


@pytest.mark.parametrize(
    ('bidirectional', 'distances'),
    [
        # Worked out by hand: 32 buckets, 128 the farthest. Both directions
        # have 16 each: 0..7 exactly, then 8 for the octaves from 8 to 128.
        (True, {0: 0, -1: 1, -7: 7, -8: 8, -128: 15, -999: 15, 1: 17, 7: 23,
                8: 24, 128: 31, -12: 9, -16: 10, -32: 12, -64: 14}),
        # One direction: 0..15 exactly, 16 for the three octaves to 128.
        (False, {0: 0, -1: 1, -15: 15, -16: 16, -128: 31, -999: 31, 5: 0,
                 -32: 21, -64: 26}),
    ],
)
def test_buckets_are_exact_when_near_and_logarithmic_when_far(
    bidirectional, distances
):
  buckets = embeddings.relative_position_bucket(
      np.array(list(distances)),
      bidirectional=bidirectional,
      num_buckets=32,
      max_distance=128,
  )
  assert dict(zip(distances, buckets.tolist(), strict=True)) == distances


@pytest.mark.parametrize('bidirectional', [False, True])
def test_bias_is_the_table_entry_of_the_bucket(bidirectional):
  module = embeddings.RelativePositionBiases(num_heads=3)
  bias, variables = module.init_with_output(
      jax.random.PRNGKey(0), 5, 40, bidirectional=bidirectional
  )
  table = variables['params']['rel_embedding']
  bucket = embeddings.relative_position_bucket(
      np.arange(40)[None] - np.arange(5)[:, None],
      bidirectional=bidirectional,
      num_buckets=32,
      max_distance=128,
  )
  np.testing.assert_allclose(bias[0], table[:, bucket], rtol=1e-6)


def test_gradient_of_the_bias_sums_over_the_pairs_of_a_bucket():
  module = embeddings.RelativePositionBiases(num_heads=3)
  target = np.random.RandomState(0).standard_normal((1, 3, 6, 9))

  def total(variables):
    bias = module.apply(variables, 6, 9, bidirectional=True)
    return jnp.sum(bias * target)

  variables = {'params': {'rel_embedding': jnp.ones((3, 32))}}
  gradient = jax.grad(total)(variables)['params']['rel_embedding']
  bucket = embeddings.relative_position_bucket(
      np.arange(9)[None] - np.arange(6)[:, None],
      bidirectional=True,
      num_buckets=32,
      max_distance=128,
  )
  expected = [
      [np.sum(head[bucket == number]) for number in range(32)]
      for head in target[0]
  ]
  np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(('queries', 'keys'), [(1, 1), (1, 4), (5, 1), (4, 7)])
def test_each_query_and_key_gets_the_value_of_its_distance(queries, keys):
  values = jnp.arange(2.0 * (queries + keys - 1)).reshape(2, -1)
  spread = embeddings.spread_over_diagonals(values, num_queries=queries)
  distance = np.arange(keys)[None] - np.arange(queries)[:, None]
  np.testing.assert_array_equal(spread, values[:, distance + queries - 1])


@pytest.mark.parametrize(
    ('queries', 'keys', 'dtype', 'bidirectional'),
    [
        (1, 1, 'float32', True),
        (5, 400, 'float32', False),
        (300, 7, 'bfloat16', True),
    ],
)
def test_tpus_program_of_the_bias_gives_the_same_bits(
    queries, keys, dtype, bidirectional, monkeypatch
):
  """Gradients of whole numbers, whose sums are exact in any order."""
  bucket = embeddings.relative_position_bucket(
      np.arange(1 - queries, keys),
      bidirectional=bidirectional,
      num_buckets=32,
      max_distance=128,
  )
  random = np.random.RandomState(0)
  table = jnp.asarray(random.standard_normal((3, 32)), dtype)
  gradient = random.randint(-1, 2, (1, 3, queries, keys))

  def both(platform):
    monkeypatch.setattr(
        embeddings.attention_choice, 'platform', lambda: platform
    )
    bias, transpose = jax.vjp(
        lambda table: embeddings.bias_of_buckets(
            table, bucket, num_queries=queries
        ),
        table,
    )
    return bias, *transpose(jnp.asarray(gradient, dtype))

  jax.tree.map(np.testing.assert_array_equal, both('tpu'), both('gpu'))


def test_tpus_program_of_the_bias_holds_no_array_of_pairs():
  """It would stand in the program's text, and be read in every step."""
  one_hot = np.arange(32)[:, None] == np.arange(400) // 13
  lowered = jax.jit(
      lambda table: embeddings.multiply_one_hot_pairs(
          table, one_hot, num_queries=200
      )
  ).lower(jnp.ones((2, 32)))
  assert len(lowered.as_text()) < 5000
