# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""JAX's kernels for TPUs, interpreted on a CPU, attend as the formula does."""

import functools

import jax
from jax.experimental import pallas
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.networks import dot_product
from t5wild.networks import fused_attention
from t5wild.networks import sight as sight_lib
from t5wild.networks import tpu_attention
from tests.networks import attending

pytestmark = pytest.mark.slow
HEADS, SIZE, LENGTH = 2, 8, 128  # the least that the kernels take
TOKENS = np.array([[3] * 108 + [0] * 20, [3] * 128])
SEGMENTS = np.array([
    [1] * 50 + [2] * 58 + [0] * 20, [1] * 30 + [2] * 90 + [3] * 8
])
PREFIX = np.array([
    [1] * 20 + [0] * 30 + [1] * 9 + [0] * 69,
    [1] * 9 + [0] * 21 + [1] * 60 + [0] * 38,
])
DECODER = sight_lib.of_decoder(TOKENS, segment_ids=SEGMENTS)
PREFIX_LM = sight_lib.of_decoder(
    TOKENS, causal_attention=PREFIX, segment_ids=SEGMENTS
)
ACROSS = sight_lib.across(
    TOKENS, TOKENS * 0 + 3, target_segment_ids=SEGMENTS,
    input_segment_ids=np.array([[1] * 28 + [2] * 100, [1] * 9 + [2] * 119]),
)


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
  kernel = pallas.pallas_call

  def interpreted_kernel(*args, **kwargs):
    return kernel(*args, **{**kwargs, 'interpret': True})

  monkeypatch.setattr(pallas, 'pallas_call', interpreted_kernel)
  # Traces are kept by function: these are of no use to others.
  jax.clear_caches()
  yield
  jax.clear_caches()


def make_arrays(kv_heads):
  random = np.random.RandomState(0)

  def normal(*shape):
    return jnp.asarray(random.standard_normal(shape), jnp.float32)

  return (
      normal(2, HEADS, LENGTH, SIZE),
      normal(2, kv_heads, LENGTH, SIZE),
      normal(2, kv_heads, LENGTH, SIZE),
      normal(1, HEADS, LENGTH, LENGTH),
  )


@pytest.mark.parametrize(
    ('kernel', 'sight', 'softcap'),
    [
        ('splash', PREFIX_LM, None),
        ('splash', DECODER.replace(window=9), 1.5),
        ('flash', PREFIX_LM, None),
        ('flash', ACROSS, None),
    ],
)
def test_attention_on_tpus_equals_the_formula_and_so_do_gradients(
    kernel, sight, softcap
):
  arrays = make_arrays(kv_heads=1)[: 4 if kernel == 'flash' else 3]
  options = {} if softcap is None else {'softcap': softcap}

  def fused(query, key, value, bias=None):
    return fused_attention.attend(
        query, key, value, sight=sight, bias=bias, kernel=kernel, **options
    )

  def formula(query, key, value, bias=None):
    return dot_product.dot_product_attention(
        query, key, value, sight.pairs(), bias, False, softcap
    )

  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, atol=2e-5),
      attending.value_and_gradients(fused, sight, arrays),
      attending.value_and_gradients(formula, sight, arrays),
  )


@pytest.mark.parametrize('kernel', ['splash', 'flash'])
def test_a_piece_of_the_queries_sees_what_comes_before_it(kernel):
  query, key, value, bias = make_arrays(kv_heads=HEADS)
  key, value = (jnp.tile(x, (1, 1, 2, 1)) for x in (key, value))
  attend = tpu_attention.attend_sparsely
  more = {'bias': None}
  if kernel == 'flash':
    attend, more = tpu_attention.attend_with_bias, {
        'bias': jnp.tile(bias, (1, 1, 1, 2))
    }
  numbers = jnp.ones((2, 2 * LENGTH), jnp.int32)
  sight = sight_lib.Sight(
      queries=numbers[:, :LENGTH], keys=numbers, is_causal=True
  )
  actual = jax.jit(functools.partial(attend, sight=sight))(
      query, key, value, first_query=jnp.int32(LENGTH), **more
  )
  behind = np.tri(LENGTH, 2 * LENGTH, LENGTH, dtype=bool)[None, None]
  expected = dot_product.dot_product_attention(
      query, key, value, jnp.asarray(behind), more['bias']
  )
  np.testing.assert_allclose(actual, expected, atol=2e-5)
