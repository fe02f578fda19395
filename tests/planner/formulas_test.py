# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Formulas against counts made by hand, by XLA and by T5X's shapes."""

import json
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.networks import decoder_only
from t5wild.planner import formulas

W1 = formulas.ModelShape(
    num_encoder_layers=4,
    num_decoder_layers=4,
    emb_dim=256,
    mlp_dim=1024,
    num_heads=4,
    head_dim=64,
    vocab_size=384,
)


def test_a_training_step_of_w1_is_197_7_gflop():
  flops = formulas.train_step_flops(
      W1, batch=16, input_length=256, target_length=128
  )
  assert flops == 197_702_713_344


def _count_products(jaxpr):
  """Operations of all dot_generals in a jaxpr."""
  total = 0
  for equation in jaxpr.eqns:
    for value in equation.params.values():
      if hasattr(value, 'jaxpr'):
        total += _count_products(value.jaxpr)
    if equation.primitive.name == 'dot_general':
      (contract, _), _ = equation.params['dimension_numbers']
      left = equation.invars[0].aval.shape
      out = equation.outvars[0].aval.shape
      total += 2 * np.prod(out) * np.prod([left[axis] for axis in contract])
  return total


def test_one_decoder_layer_has_the_products_that_a_traced_one_has():
  batch, length, width, heads, kv, mlp, vocab = 2, 24, 16, 2, 8, 40, 50

  def forward(x, weights):
    q, k, v = (
        (x @ weights['qkv'][i]).reshape(batch, length, heads, kv)
        for i in range(3)
    )
    scores = jnp.einsum('bqhd,bkhd->bhqk', q, k)
    mixed = jnp.einsum('bhqk,bkhd->bqhd', scores, v)
    x = x + mixed.reshape(batch, length, heads * kv) @ weights['o']
    hidden = (x @ weights['wi0']) * (x @ weights['wi1'])
    return (x + hidden @ weights['wo']) @ weights['logits']

  joined = heads * kv
  weights = {
      'qkv': jnp.zeros((3, width, joined)),
      'o': jnp.zeros((joined, width)),
      'wi0': jnp.zeros((width, mlp)),
      'wi1': jnp.zeros((width, mlp)),
      'wo': jnp.zeros((mlp, width)),
      'logits': jnp.zeros((width, vocab)),
  }
  traced = jax.make_jaxpr(forward)(jnp.zeros((batch, length, width)), weights)
  shape = formulas.ModelShape(
      num_encoder_layers=0,
      num_decoder_layers=1,
      emb_dim=width,
      mlp_dim=mlp,
      num_heads=heads,
      head_dim=kv,
      vocab_size=vocab,
  )
  assert formulas.forward_flops(
      shape, batch=batch, target_length=length
  ) == _count_products(traced.jaxpr)


@pytest.mark.parametrize('num_kv_heads', [None, 2])
def test_a_decoder_only_network_has_the_products_that_are_counted(
    num_kv_heads
):
  config = decoder_only.TransformerConfig(
      vocab_size=50, emb_dim=16, num_heads=4, num_kv_heads=num_kv_heads,
      head_dim=8, mlp_dim=40, num_layers=3, positions='rotary',
      mlp_activations=('silu', 'linear'),
  )  # fmt: skip
  network = decoder_only.DecoderWrapper(config)
  tokens = jax.ShapeDtypeStruct((2, 24), jnp.int32)

  def init(key, tokens):
    return network.init(key, tokens, tokens, enable_dropout=False)['params']

  def forward(params, tokens):
    return network.apply(
        {'params': params}, tokens, tokens, enable_dropout=False
    )

  params = jax.eval_shape(init, jax.random.key(0), tokens)
  shape = formulas.model_shape_of(config)
  assert formulas.forward_flops(
      shape, batch=2, target_length=24
  ) == _count_products(jax.make_jaxpr(forward)(params, tokens).jaxpr)
  assert formulas.count_parameters(shape) == sum(
      x.size for x in jax.tree.leaves(params)
  )


def test_flops_grow_linearly_with_the_batch():
  one, many = (
      formulas.train_step_flops(
          W1, batch=batch, input_length=64, target_length=32
      )
      for batch in (1, 5)
  )
  assert many == 5 * one


@pytest.mark.parametrize(
    ('sizes', 'millions'),
    [  # google-research/text-to-text-transfer-transformer, T5 1.1 checkpoints
        ((8, 8, 512, 1024, 6, 64), 77),
        ((12, 12, 768, 2048, 12, 64), 248),
        ((24, 24, 1024, 2816, 16, 64), 783),
        ((24, 24, 2048, 5120, 32, 64), 2850),
        ((24, 24, 4096, 10240, 64, 64), 11135),
    ],
    ids=['small', 'base', 'large', 'xl', 'xxl'],
)
def test_parameters_of_t5_1_1_are_the_published_ones(sizes, millions):
  encoder, decoder, width, mlp, heads, kv = sizes
  shape = formulas.ModelShape(
      num_encoder_layers=encoder,
      num_decoder_layers=decoder,
      emb_dim=width,
      mlp_dim=mlp,
      num_heads=heads,
      head_dim=kv,
      vocab_size=32128,
  )
  assert formulas.count_parameters(shape) / 1e6 == pytest.approx(
      millions, abs=0.6
  )


def test_parameters_of_the_fixture_model_are_as_t5x_made_them(t5x_fixtures):
  folder = t5x_fixtures / 'encoder_decoder'
  shapes = json.loads((folder / 'state_dict_shapes.json').read_text())
  params = np.load(folder / 'init_params_seed42.npz')
  total = sum(params[name].size for name in params.files)
  assert shapes
  embedding = next(n for n in params.files if n.endswith('embedding')
                   and 'rel' not in n)
  relative = next(n for n in params.files if n.endswith('rel_embedding'))
  wi = next(n for n in params.files if n.endswith('layers_0/mlp/wi_0/kernel'))
  query = next(n for n in params.files if n.endswith('query/kernel'))
  heads, buckets = params[relative].shape
  vocab, width = params[embedding].shape
  layers = {
      stack: len({n.split('/')[-3] for n in params.files
                  if f'{stack}/layers' in n and n.endswith('layer_norm/scale')})
      for stack in ('encoder', 'decoder')
  }
  shape = formulas.ModelShape(
      num_encoder_layers=layers['encoder'],
      num_decoder_layers=layers['decoder'],
      emb_dim=width,
      mlp_dim=params[wi].shape[1],
      num_heads=heads,
      head_dim=params[query].shape[1] // heads,
      vocab_size=vocab,
      num_relative_buckets=buckets,
      logits_via_embedding=not any('logits' in n for n in params.files),
  )
  assert formulas.count_parameters(shape) == total


def test_a_shape_is_read_from_a_network_configuration():
  config = types.SimpleNamespace(
      num_encoder_layers=4,
      num_decoder_layers=4,
      emb_dim=256,
      mlp_dim=1024,
      num_heads=4,
      head_dim=64,
      vocab_size=384,
      mlp_activations=('gelu', 'linear'),
      logits_via_embedding=False,
  )
  assert formulas.model_shape_of(config) == W1


def test_a_size_of_zero_is_refused():
  with pytest.raises(ValueError, match='emb_dim = 0; expected at least 1'):
    formulas.ModelShape(
        num_encoder_layers=1,
        num_decoder_layers=1,
        emb_dim=0,
        mlp_dim=1,
        num_heads=1,
        head_dim=1,
        vocab_size=1,
    )
