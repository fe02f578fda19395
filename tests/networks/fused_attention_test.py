# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What is given to a fused kernel makes it attend as the formula does.

cuDNN runs on GPUs only: here `jax.nn`'s formula, called with the same
arguments, does its work.
"""

import functools

from flax.linen import partitioning
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.networks import attention_choice
from t5wild.networks import attention_dispatch
from t5wild.networks import config as config_lib
from t5wild.networks import cudnn_attention
from t5wild.networks import dot_product
from t5wild.networks import fused_attention
from t5wild.networks import masks
from t5wild.networks import sight as sight_lib
from t5wild.networks import transformer
from tests.networks import attending
from tests.networks import decoders

HEADS, SIZE, LENGTH = 4, 8, 12
TOKENS = np.array([[3] * 10 + [0] * 2, [3] * 12])
SEGMENTS = np.array([[1] * 4 + [2] * 6 + [0] * 2, [1] * 3 + [2] * 8 + [3]])
PREFIX = np.array([
    [1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0],
    [1, 1, 0, 1, 1, 1, 1, 1, 0, 0, 0, 1],
])
UNPACKED_PREFIX = np.array([[1] * 5 + [0] * 7] * 2)
SIGHTS = {
    'encoder': sight_lib.of_encoder(TOKENS, segment_ids=None),
    'packed encoder': sight_lib.of_encoder(TOKENS, segment_ids=SEGMENTS),
    'decoder': sight_lib.of_decoder(TOKENS),
    'packed decoder': sight_lib.of_decoder(TOKENS, segment_ids=SEGMENTS),
    'prefix': sight_lib.of_decoder(TOKENS, causal_attention=UNPACKED_PREFIX),
    'packed prefix': sight_lib.of_decoder(
        TOKENS, causal_attention=PREFIX, segment_ids=SEGMENTS
    ),
    'packed cross': sight_lib.across(
        TOKENS, TOKENS[:, ::-1] * 0 + 3, target_segment_ids=SEGMENTS,
        input_segment_ids=np.array([[1] * 6 + [2] * 6, [1] * 5 + [2] * 6 + [3]])
    ),
    'packed local decoder': sight_lib.of_decoder(
        TOKENS, segment_ids=SEGMENTS
    ).replace(window=3),
}


@pytest.fixture(autouse=True)
def formula_for_cudnn(monkeypatch):
  monkeypatch.setattr(cudnn_attention, '_IMPLEMENTATION', 'xla')


def make_arrays(*, kv_heads=HEADS, rows=2):
  random = np.random.RandomState(0)

  def normal(*shape):
    return jnp.asarray(random.standard_normal(shape), jnp.float32)

  return (
      normal(rows, HEADS, LENGTH, SIZE),
      normal(rows, kv_heads, LENGTH, SIZE),
      normal(rows, kv_heads, LENGTH, SIZE),
      normal(1, HEADS, LENGTH, LENGTH),
  )


def by_the_formula(query, key, value, bias=None, *, sight):
  return dot_product.dot_product_attention(
      query, key, value, sight.pairs(), bias
  )


def by_cudnn(query, key, value, bias=None, *, sight, features=8):
  return fused_attention.attend(
      query, key, value, sight=sight, bias=bias, kernel='cudnn',
      features=features,
  )


def assert_same(sight, arrays, **options):
  actual, expected = (
      attending.value_and_gradients(
          functools.partial(fn, sight=sight), sight, arrays
      )
      for fn in (functools.partial(by_cudnn, **options), by_the_formula)
  )
  jax.tree.map(
      # Signs of examples add 8 x 256 to a logit, of which float32 keeps 1e-4.
      lambda a, b: np.testing.assert_allclose(a, b, atol=2e-3),
      actual,
      expected,
  )


@pytest.mark.parametrize('name', SIGHTS)
def test_attention_by_cudnn_equals_the_formula_and_so_do_gradients(name):
  arrays = make_arrays()
  assert_same(SIGHTS[name], arrays[:3] if 'local' in name else arrays)


def test_examples_told_apart_by_pairs_are_told_apart_as_by_signs():
  arrays = make_arrays(kv_heads=2)[:3]
  assert_same(SIGHTS['packed prefix'], arrays, features=0)


def test_a_mask_of_pairs_is_a_bias_to_cudnn():
  query, key, value, bias = make_arrays(kv_heads=1)
  mask = SIGHTS['packed prefix'].pairs()[:, :, :10]
  query, bias = query[:, :, :10], bias[:, :, :10]
  seen = mask.any(axis=-1)[..., None]  # where not, it is of no account
  actual = fused_attention.attend(
      query, key, value, sight=mask, bias=bias, kernel='cudnn'
  )
  expected = dot_product.dot_product_attention(query, key, value, mask, bias)
  np.testing.assert_allclose(actual * seen, expected * seen, atol=1e-5)


def test_a_mask_of_one_row_for_all_queries_gets_a_row_for_each(monkeypatch):
  # JAX's call of cuDNN takes no other, though the formula does.
  query, key, value, _ = make_arrays()
  call, shapes = cudnn_attention._call, []

  def told(*args, bias, **more):
    shapes.append(bias.shape)
    return call(*args, bias=bias, **more)

  monkeypatch.setattr(cudnn_attention, '_call', told)
  mask = jnp.asarray(SEGMENTS > 0)[:, None, None]
  actual = fused_attention.attend(
      query, key, value, sight=mask, bias=None, kernel='cudnn'
  )
  expected = dot_product.dot_product_attention(query, key, value, mask, None)
  np.testing.assert_allclose(actual, expected, atol=1e-5)
  assert {shape[-2:] for shape in shapes} == {(query.shape[2], key.shape[2])}


def test_decoding_asks_no_fused_kernel_for_its_steps(monkeypatch):
  asked = {}
  attend = attention_dispatch.attend

  def told(*args, options):
    asked.setdefault(options.path[-1], set()).add(options.is_step)
    return attend(*args, options=options)

  monkeypatch.setattr(attention_dispatch, 'attend', told)
  network = transformer.Transformer(
      config_lib.T5Config(vocab_size=32, num_encoder_layers=1,
                         num_decoder_layers=1, emb_dim=8, num_heads=1,
                         head_dim=8, mlp_dim=8)
  )  # fmt: skip
  tokens = jnp.ones((2, 4), jnp.int32)

  def of(decode):
    asked.clear()
    jax.eval_shape(
        lambda key: network.init(
            key, tokens, tokens, tokens, decode=decode, enable_dropout=False
        ),
        jax.random.PRNGKey(0),
    )
    return asked['self_attention'], asked['encoder_decoder_attention']

  assert of(False) == ({False}, {False})
  assert of(True) == ({True}, {True})


@pytest.mark.parametrize(
    ('name', 'kv_heads', 'shape'),
    [
        ('packed prefix', 4, (2, 2, 2)),
        ('decoder', 2, (1, 4, 2)),  # fewer heads of keys than devices
        ('packed local decoder', 1, (2, 1, 4)),
    ],
)
def test_on_a_mesh_every_device_does_its_part(name, kv_heads, shape):
  arrays = make_arrays(kv_heads=kv_heads)
  if 'local' in name:
    arrays = arrays[:3]
  sight = SIGHTS[name]
  expected = attending.value_and_gradients(
      functools.partial(by_the_formula, sight=sight), sight, arrays
  )
  mesh = jax.sharding.Mesh(
      np.array(jax.devices()[:8]).reshape(shape), ('data', 'model', 'sequence')
  )
  rules = (
      ('batch', 'data'), ('heads', 'model'), ('length', 'sequence'),
      ('kv', None),
  )
  with jax.set_mesh(mesh), partitioning.axis_rules(rules):
    actual = attending.value_and_gradients(
        functools.partial(by_cudnn, sight=sight), sight, arrays
    )
  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, atol=2e-3),
      actual,
      expected,
  )


def test_a_sight_forbids_the_pairs_that_the_mask_does():
  mask = masks.make_decoder_mask(
      TOKENS, decoder_causal_attention=PREFIX, decoder_segment_ids=SEGMENTS
  )
  np.testing.assert_array_equal(SIGHTS['packed prefix'].pairs(), mask)
  np.testing.assert_array_equal(
      SIGHTS['decoder'].pairs(), masks.make_decoder_mask(TOKENS)
  )
  real = TOKENS > 0
  np.testing.assert_array_equal(
      SIGHTS['encoder'].pairs(), masks.make_attention_mask(real, real)
  )


def test_a_network_attends_by_fused_kernels_as_without_them(monkeypatch):
  network = decoders.make('t5x', dropout_rate=0.0)
  targets = decoders.make_targets(2, LENGTH, seed=0)
  targets = np.where(SEGMENTS > 0, np.maximum(targets, 1), 0)
  batch = (decoders.shift(targets), targets)
  features = {
      'decoder_segment_ids': SEGMENTS, 'decoder_causal_attention': PREFIX,
  }
  params = jax.jit(
      lambda key: network.init(key, *batch, enable_dropout=False),
      compiler_options=decoders.QUICK,
  )(jax.random.PRNGKey(0))['params']

  def losses():
    logits = jax.jit(
        lambda p: network.apply(
            {'params': p}, *batch, **features, enable_dropout=False
        ),
        compiler_options=decoders.QUICK,
    )(params)
    return np.asarray(logits) * (targets > 0)[..., None]

  expected = losses()
  monkeypatch.setattr(attention_choice, 'platform', lambda: 'gpu')
  monkeypatch.setattr(attention_choice, '_HALF', (jnp.float32,))
  calls = []
  attend = fused_attention.attend
  monkeypatch.setattr(
      fused_attention, 'attend',
      lambda *args, **kwargs: calls.append(1) or attend(*args, **kwargs),
  )
  np.testing.assert_allclose(losses(), expected, atol=5e-3)
  assert len(calls) == network.config.num_layers
