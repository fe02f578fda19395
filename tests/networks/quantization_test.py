# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Products of 8-bit numbers are those of their formula, and only where asked.

The reference is numpy's, in float64, with the roundings of `ml_dtypes`.
"""

import functools
import itertools
import pathlib
import re
import sys

from flax import traverse_util
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax
import pytest

from t5wild.networks import quantization
from t5wild.networks import transformer
from tests.networks import decoders
from tests.networks import sharding_test

_TOOLS = str(pathlib.Path(__file__).resolve().parents[2] / 'tools')
sys.path.insert(0, _TOOLS)
from benchmarks import run_quantization  # noqa: E402 (after the path is set)

sys.path.remove(_TOOLS)

LARGEST = {
    ml_dtypes.float8_e4m3fn: 448.0, ml_dtypes.float8_e5m2: 57344.0,
    np.int8: 127.0,
}  # fmt: skip
TYPES = {  # forward, gradient
    'fp8': (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
    'int8': (np.int8, np.int8),
}
FP8 = {'quantization': 'fp8'}


def normal(*shape, seed=0):
  random = np.random.RandomState(seed)
  # Rows of unlike sizes, as gradients have.
  sizes = np.exp(random.standard_normal((*shape[:-1], 1)))
  return (random.standard_normal(shape) * sizes).astype(np.float32)


def rounded(x, axes, kind):
  """The nearest multiples of the scale, or 8-bit floats times it."""
  scale = np.abs(x).max(axes, keepdims=True) / np.float32(LARGEST[kind])
  scaled = (x / scale).astype(np.float32)
  low = np.round(scaled) if kind is np.int8 else scaled.astype(kind)
  return low.astype(np.float64), scale.astype(np.float64)


def reference(inputs, kernel, target, number_format):
  """The product, and the gradients of its product with the target."""
  forward, backward = TYPES[number_format]
  rows, row_scale = rounded(inputs, -1, forward)
  columns, column_scale = rounded(kernel, 0, forward)
  product = (rows @ columns) * row_scale * column_scale
  low, scale = rounded(target * np.float32(column_scale), -1, backward)
  inputs_gradient = (low @ columns.T) * scale
  if number_format == 'int8':
    kernel_gradient = (rows * row_scale).T @ target
  else:
    low, scale = rounded(target * np.float32(row_scale), 0, backward)
    kernel_gradient = (rows.T @ low) * scale
  return product, inputs_gradient, kernel_gradient


@pytest.mark.parametrize(
    ('number_format', 'error'),
    # Half a step of three bits (e4m3) or two (e5m2), averaged: 3 to 6 %.
    [('fp8', 0.08), ('int8', 0.02)],
)
def test_product_and_gradients_are_those_of_the_rounded_numbers(
    number_format, error
):
  inputs, kernel = normal(6, 40), normal(40, 24, seed=1)
  target = normal(6, 24, seed=2)

  @jax.jit
  def products(inputs, kernel):
    outputs, pull = jax.vjp(
        lambda x, y: quantization.contract_last_axis(x, y, number_format),
        inputs,
        kernel,
    )
    return outputs, *pull(jnp.asarray(target))

  expected = reference(inputs, kernel, target, number_format)
  exact = inputs @ kernel, target @ kernel.T, inputs.T @ target
  for actual, wanted, unrounded in zip(
      products(inputs, kernel), expected, exact, strict=True
  ):
    # float32 sums; a number between two steps may go to either.
    np.testing.assert_allclose(
        actual, wanted, rtol=1e-5, atol=2e-3 * np.abs(wanted).max()
    )
    difference = np.linalg.norm(actual - unrounded)
    assert difference < error * np.linalg.norm(unrounded)


@pytest.mark.parametrize('number_format', quantization.FORMATS)
def test_zeros_give_zeros_and_what_is_not_finite_shows(number_format):
  inputs = normal(4, 8)
  inputs[0], inputs[1, 3], inputs[2, 3] = 0.0, np.nan, np.inf
  outputs = quantization.contract_last_axis(
      jnp.asarray(inputs), jnp.asarray(normal(8, 5, seed=1)), number_format
  )
  np.testing.assert_array_equal(outputs[0], 0.0)
  assert np.isnan(outputs[1:3]).all()
  assert np.isfinite(outputs[3]).all()


@pytest.mark.parametrize('number_format', quantization.FORMATS)
def test_a_row_is_the_same_in_every_batch(number_format):
  inputs, kernel = normal(3, 5, 16), jnp.asarray(normal(16, 8, seed=1))
  contract = functools.partial(
      quantization.contract_last_axis, number_format=number_format
  )
  whole = contract(jnp.asarray(inputs), kernel)
  alone = contract(jnp.asarray(inputs[1:2]), kernel)
  np.testing.assert_array_equal(alone, whole[1:2])


def make_network(**changes):
  config = transformer.T5Config(
      vocab_size=48, emb_dim=16, num_heads=2, head_dim=8, mlp_dim=24,
      num_encoder_layers=2, num_decoder_layers=2, dropout_rate=0.0,
      mlp_activations=('gelu', 'linear'),
  )  # fmt: skip
  return transformer.Transformer(config.replace(**changes))


def make_batch():
  tokens = np.random.RandomState(0).randint(3, 48, (8, 6)).astype(np.int32)
  return tokens, decoders.shift(tokens), tokens


@functools.cache
def init(network):
  return jax.jit(
      lambda key: network.init(key, *make_batch(), enable_dropout=False),
      compiler_options=decoders.QUICK,
  )(jax.random.PRNGKey(0))['params']


def loss_fn(params, network):
  batch = make_batch()
  logits = network.apply({'params': params}, *batch, enable_dropout=False)
  log_p = jax.nn.log_softmax(logits)
  return -jnp.mean(jnp.take_along_axis(log_p, batch[-1][..., None], -1))


def products_of(network):
  """The operand types of the products of a step's program, in its order."""
  shapes = jax.eval_shape(
      lambda key: network.init(key, *make_batch(), enable_dropout=False),
      jax.random.PRNGKey(0),
  )['params']
  step = jax.jit(jax.grad(functools.partial(loss_fn, network=network)))
  text = step.lower(shapes).as_text()
  return re.findall(
      r'stablehlo\.dot_general.*: \(tensor<\w+x(\w+)>, tensor<\w+x(\w+)>\)',
      text,
  )


@pytest.mark.parametrize(
    ('layers', 'count'),
    [
        # Encoder layer: 4 + 3 products; decoder layer: 8 + 3; two of each.
        ('attention|mlp|logits', 37), ('layers_1', 18), ('decoder/.*/wo', 2),
    ],
)  # fmt: skip
def test_only_the_chosen_layers_multiply_8_bit_numbers(layers, count):
  products = products_of(make_network(**FP8, quantized_layers=layers))
  assert products.count(('f8E4M3FN', 'f8E4M3FN')) == count  # forward
  of_gradients = [pair for pair in products if 'f8E5M2' in pair]
  assert len(of_gradients) == 2 * count


def test_without_quantization_no_product_is_of_8_bit_numbers():
  products = products_of(make_network())
  assert len(products) > 100
  assert {each for pair in products for each in pair} == {'f32'}


@pytest.mark.parametrize('scan_layers', [False, True])
@pytest.mark.parametrize('logits_via_embedding', [False, True])
@pytest.mark.parametrize('activations', [('relu',), ('gelu', 'linear')])
def test_the_paths_of_layers_are_those_of_the_kernels(
    scan_layers, logits_via_embedding, activations
):
  changes = {
      'scan_layers': scan_layers,
      'logits_via_embedding': logits_via_embedding,
      'mlp_activations': activations,
  }
  for network, inputs in (
      (make_network(**changes), make_batch()),
      (decoders.make('t5x', **changes), make_batch()[1:]),
  ):
    shapes = jax.eval_shape(
        lambda key, n=network, i=inputs: n.init(key, *i, enable_dropout=False),
        jax.random.PRNGKey(0),
    )
    paths = traverse_util.flatten_dict(shapes['params'], sep='/')
    kernels = {
        path.removesuffix('/kernel') for path in paths if 'kernel' in path
    }
    assert set(quantization.layer_paths(network.config)) == kernels


@pytest.mark.parametrize(
    ('changes', 'messages'),
    [
        (
            {'quantization': 'fp16'},
            ("quantization is 'fp16'", "one of ('fp8', 'int8')", 'for H100'),
        ),
        (
            {'quantization': 'fp8', 'quantized_layers': 'mpl'},
            ("quantized_layers is 'mpl'", 'encoder/layers_0/attention/query',
             "set it to 'attention|mlp'"),
        ),
        (
            {'quantized_layers': 'mlp('},
            ("quantized_layers is 'mlp('", 'regular expression', 'attention'),
        ),
        (
            {'quantization': 'int8', 'quantized_layers': ('mlp',)},
            ("quantized_layers is ('mlp',)", 'regular expression'),
        ),
        (
            {'quantization': 'int8', 'quantized_layers': 'logits',
             'logits_via_embedding': True},
            ("quantized_layers is 'logits'", 'none of its 36 dense layers'),
        ),
    ],
)  # fmt: skip
def test_a_quantization_that_can_not_be_is_refused_when_built(
    changes, messages
):
  with pytest.raises(ValueError, match='T5Config') as caught:
    make_network(**changes)
  for message in messages:
    assert message in str(caught.value)


def train(number_format, num_steps=60):
  """Losses of a small decoder that learns the text of the docs."""
  network = decoders.make(
      't5x', vocab_size=384, emb_dim=64, mlp_dim=128, num_layers=1,
      dropout_rate=0.0, dtype='bfloat16', quantization=number_format,
  )  # fmt: skip
  adam = optax.adam(0.01)

  def loss_fn(params, tokens):
    logits = network.apply(
        {'params': params}, jnp.pad(tokens[:, :-1], ((0, 0), (1, 0))), tokens,
        enable_dropout=False,
    )  # fmt: skip
    return optax.softmax_cross_entropy_with_integer_labels(
        logits, tokens
    ).mean()

  @functools.partial(jax.jit, compiler_options=decoders.QUICK)
  def step(params, state, tokens):
    loss, gradients = jax.value_and_grad(loss_fn)(params, tokens)
    updates, state = adam.update(gradients, state)
    return optax.apply_updates(params, updates), state, loss

  tokens = jnp.ones((1, 8), jnp.int32)
  params = jax.jit(
      lambda key: network.init(key, tokens, tokens, enable_dropout=False),
      compiler_options=decoders.QUICK,
  )(jax.random.PRNGKey(0))['params']
  state, losses = adam.init(params), []
  batches = run_quantization.make_batches(run_quantization.Workload())
  for batch in itertools.islice(batches, num_steps):
    params, state, loss = step(params, state, batch['decoder_target_tokens'])
    losses.append(float(loss))
  return losses


@pytest.mark.slow
def test_losses_with_8_bit_products_stay_by_those_of_bfloat16():
  plain = train(None)
  assert np.mean(plain[-10:]) < plain[0] - 2.0  # it has learnt
  for number_format in quantization.FORMATS:
    losses = train(number_format)
    assert losses != plain
    # 300 steps of an encoder-decoder end within 0.2 % (docs/scale.md).
    np.testing.assert_allclose(
        np.mean(losses[-10:]), np.mean(plain[-10:]), rtol=0.01
    )


@pytest.mark.slow
def test_remat_and_mesh_change_gradients_by_roundings_alone():
  plain = decoders.make('t5x', **FP8, scan_layers=True)
  network = decoders.make(
      't5x', **FP8, scan_layers=True, remat_policy='minimal'
  )
  compiled, (params, _) = sharding_test.compile_step(
      network, sharding_test.make_mesh(2, 2, 2), sharding_test.FULLY_SHARDED
  )
  batch = sharding_test.make_batch(network)
  loss, gradients = compiled(params, batch)
  expected_loss, expected = jax.jit(
      jax.value_and_grad(
          lambda p: sharding_test.loss_fn(p, batch, plain)
      ),
      compiler_options=decoders.QUICK,
  )(sharding_test.init(plain)['params'])
  # Sums in another order: of some numbers the nearest step is another.
  np.testing.assert_allclose(loss, expected_loss, rtol=2e-3)
  jax.tree.map(
      lambda a, b: np.testing.assert_array_less(
          np.linalg.norm(a - b), 0.05 * np.linalg.norm(b)
      ),
      jax.device_get(gradients),
      jax.device_get(expected),
  )
