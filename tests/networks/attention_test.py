# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Attention equals its formula, and so does its gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.networks import attention
from t5wild.networks import dot_product


def make_arrays(queries=5, keys=7):
  random = np.random.RandomState(0)

  def normal(*shape):
    return jnp.asarray(random.standard_normal(shape), jnp.float32)

  mask = random.rand(2, 1, queries, keys) < 0.6
  mask[:, :, 0] = True
  mask[0, 0, 1] = False  # a query that may look at nothing
  return (
      normal(2, 3, queries, 4),
      normal(2, 3, keys, 4),
      normal(2, 3, keys, 4),
      jnp.asarray(mask),
      normal(1, 3, queries, keys),
  )


def by_the_formula(query, key, value, mask=None, bias=None):
  logits = jnp.einsum('bhqd,bhkd->bhqk', query, key)
  if bias is not None:
    logits = logits + bias
  if mask is not None:
    logits = jnp.where(mask, logits, -1e10)
  return jnp.einsum('bhqk,bhkd->bhqd', jax.nn.softmax(logits), value)


@pytest.mark.parametrize('masked', [False, True])
@pytest.mark.parametrize('biased', [False, True])
def test_attention_and_gradient_equal_the_formula(masked, biased):
  query, key, value, mask, bias = make_arrays()
  mask = mask if masked else None
  bias = bias if biased else None
  target = jnp.cos(jnp.arange(query.size)).reshape(query.shape)
  if masked:  # what sees nothing has no gradient by the formula with `where`
    target = target.at[0, :, 1].set(0.0)

  def total(fn):
    def weighed(query, key, value, bias):
      return jnp.sum(fn(query, key, value, mask, bias) * target)

    arguments = (0, 1, 2, 3) if biased else (0, 1, 2)
    return jax.value_and_grad(weighed, arguments)(query, key, value, bias)

  actual = total(dot_product.dot_product_attention)
  expected = total(by_the_formula)
  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5),
      actual,
      expected,
  )


@pytest.mark.parametrize(
    ('kv_heads', 'softcap'), [(1, None), (3, 0.7), (2, None), (2, 0.7)]
)
def test_grouped_and_capped_attention_equals_the_formula(kv_heads, softcap):
  random = np.random.RandomState(0)
  heads = 6

  def normal(*shape):
    return jnp.asarray(random.standard_normal(shape), jnp.float32)

  query, bias = normal(2, heads, 5, 4), normal(1, heads, 5, 7)
  key, value = normal(2, kv_heads, 7, 4), normal(2, kv_heads, 7, 4)
  mask = jnp.asarray(np.tri(5, 7, 2, dtype=bool)[None, None])
  target = jnp.cos(jnp.arange(query.size)).reshape(query.shape)

  def formula(query, key, value, bias):
    logits = jnp.einsum(
        'bhqd,bhkd->bhqk', query, jnp.repeat(key, heads // kv_heads, axis=1)
    )
    if softcap is not None:
      logits = softcap * jnp.tanh(logits / softcap)
    logits = jnp.where(mask, logits + bias, -1e10)
    value = jnp.repeat(value, heads // kv_heads, axis=1)
    return jnp.einsum('bhqk,bhkd->bhqd', jax.nn.softmax(logits), value)

  def actual(query, key, value, bias):
    return dot_product.dot_product_attention(
        query, key, value, mask, bias, False, softcap
    )

  def total(fn):
    return jax.value_and_grad(
        lambda *arrays: jnp.sum(fn(*arrays) * target), (0, 1, 2, 3)
    )(query, key, value, bias)

  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5),
      total(actual),
      total(formula),
  )


def test_query_that_may_look_at_nothing_gets_the_plain_average():
  query, key, value, mask, bias = make_arrays()
  averaged = dot_product.dot_product_attention(query, key, value, mask, bias)
  np.testing.assert_allclose(
      averaged[0, :, 1], value[0].mean(axis=1), rtol=1e-5, atol=1e-6
  )


def test_huge_logits_overflow_nothing():
  query, key, value, _, _ = make_arrays()
  averaged = dot_product.dot_product_attention(1e4 * query, key, value)
  assert np.isfinite(averaged).all()


def test_float32_logits_are_exact_for_bfloat16_inputs():
  query, key, value, _, _ = (x.astype(jnp.bfloat16) for x in make_arrays())
  query = query * 8  # logits large enough for their rounding to show
  exact = by_the_formula(*(x.astype(jnp.float32) for x in (query, key, value)))

  def error(float32_logits):
    averaged = dot_product.dot_product_attention(
        query, key, value, None, None, float32_logits
    )
    assert averaged.dtype == jnp.bfloat16
    return np.abs(averaged.astype(jnp.float32) - exact).max()

  assert error(True) < 0.02  # the rounding of weights and of the average
  assert error(True) < error(False)


def test_cache_refuses_more_than_one_position():
  module = attention.MultiHeadDotProductAttention(num_heads=2, head_dim=4)
  x = jnp.ones((2, 6, 8))
  variables = module.init(jax.random.PRNGKey(0), x, x, decode=True)
  with pytest.raises(ValueError, match=r'\(2, 2, 3, 4\).*\(2, 2, 1, 4\)'):
    module.apply(variables, x[:, :3], x[:, :3], decode=True, mutable=['cache'])


def test_cache_has_the_layout_of_t5x():
  module = attention.MultiHeadDotProductAttention(num_heads=2, head_dim=4)
  x = jnp.ones((3, 6, 8))
  cache = module.init(jax.random.PRNGKey(0), x, x, decode=True)['cache']
  shapes = {name: array.shape for name, array in cache.items()}
  assert shapes == {
      'cached_key': (3, 2, 4, 6),
      'cached_value': (3, 2, 4, 6),
      'cache_index': (),
  }


def test_rows_at_different_positions_write_where_they_lie_and_never_past_it():
  mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ('b', 'h'))
  lies = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec('b', 'h'))
  rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec('b'))
  random = np.random.RandomState(0)
  cached = random.standard_normal((8, 4, 3, 5)).astype(np.float32)
  new = random.standard_normal((8, 4, 3)).astype(np.float32)
  index = np.array([0, 4, 5, 2, 9, 1, 3, 4], np.int32)  # two are past the end
  arguments = (
      jax.device_put(cached, lies),
      jax.device_put(new, lies),
      jax.device_put(index, rows),
  )
  append = jax.jit(jax.vmap(attention._put_column), out_shardings=lies)
  expected = cached.copy()
  for row, at in enumerate(index):
    if at < 5:
      expected[row, :, :, at] = new[row]
  np.testing.assert_array_equal(append(*arguments), expected)
  program = append.lower(*arguments).compile().as_text()
  for collective in ('all-gather', 'all-reduce', 'permute', 'all-to-all'):
    assert collective not in program
