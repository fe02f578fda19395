# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Networks put together from T5X's layers have the numbers of ours."""

import types

from flax import linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.networks import t5x_attention
from t5wild.networks import t5x_configs
from t5wild.networks import t5x_layers
from t5wild.networks import t5x_masks
from t5wild.networks import t5x_stacks
from t5wild.networks import transformer

_SIZES = {
    'vocab_size': 32, 'emb_dim': 8, 'num_heads': 2, 'head_dim': 4,
    'mlp_dim': 16, 'mlp_activations': ('gelu', 'linear'), 'dropout_rate': 0.1,
    'num_encoder_layers': 2, 'num_decoder_layers': 2,
}  # fmt: skip
_PLAIN = transformer.T5Config(**_SIZES, logits_via_embedding=True)
_INPUTS = jnp.asarray([[5, 6, 7, 0], [8, 9, 3, 4]])
_TARGETS = jnp.asarray([[5, 2, 1], [7, 1, 0]])
_SHIFTED = jnp.asarray([[0, 5, 2], [0, 7, 1]])


class UserEncoderLayer(nn.Module):
  """An encoder layer as T5X's users write theirs."""

  config: transformer.T5Config
  relative_embedding: nn.Module

  @nn.compact
  def __call__(self, inputs, encoder_mask=None, deterministic=False):
    """Maps a layer's inputs to its outputs."""
    cfg = self.config
    bias = self.relative_embedding(inputs.shape[-2], inputs.shape[-2], True)
    x = t5x_layers.LayerNorm(
        dtype=cfg.dtype, name='pre_attention_layer_norm'
    )(inputs)
    x = t5x_attention.MultiHeadDotProductAttention(
        num_heads=cfg.num_heads,
        dtype=cfg.dtype,
        head_dim=cfg.head_dim,
        dropout_rate=cfg.dropout_rate,
        float32_logits=cfg.float32_attention_logits,
        name='attention',
    )(x, x, encoder_mask, bias, deterministic=deterministic)
    x = nn.Dropout(rate=cfg.dropout_rate, broadcast_dims=(-2,))(
        x, deterministic=deterministic
    )
    x = x + inputs
    y = t5x_layers.LayerNorm(dtype=cfg.dtype, name='pre_mlp_layer_norm')(x)
    y = t5x_layers.MlpBlock(
        intermediate_dim=cfg.mlp_dim,
        activations=cfg.mlp_activations,
        intermediate_dropout_rate=cfg.dropout_rate,
        dtype=cfg.dtype,
        name='mlp',
    )(y, deterministic=deterministic)
    y = nn.Dropout(rate=cfg.dropout_rate, broadcast_dims=(-2,))(
        y, deterministic=deterministic
    )
    return y + x


class UserEncoder(nn.Module):
  """An encoder over a class of layers that it is given."""

  config: transformer.T5Config
  shared_embedding: nn.Module
  layer_cls: type[nn.Module] = UserEncoderLayer

  @nn.compact
  def __call__(
      self, encoder_input_tokens, encoder_mask=None, deterministic=False
  ):
    """Encodes tokens."""
    cfg = self.config
    distances = t5x_layers.RelativePositionBiases(
        num_buckets=32,
        max_distance=128,
        num_heads=cfg.num_heads,
        dtype=cfg.dtype,
        embedding_init=nn.initializers.variance_scaling(
            1.0, 'fan_avg', 'uniform'
        ),
        name='relpos_bias',
    )
    x = self.shared_embedding(encoder_input_tokens.astype('int32'))
    x = nn.Dropout(rate=cfg.dropout_rate, broadcast_dims=(-2,))(
        x, deterministic=deterministic
    ).astype(cfg.dtype)
    for index in range(cfg.num_encoder_layers):
      x = self.layer_cls(
          config=cfg, relative_embedding=distances, name=f'layers_{index}'
      )(x, encoder_mask, deterministic)
    x = t5x_layers.LayerNorm(dtype=cfg.dtype, name='encoder_norm')(x)
    return nn.Dropout(rate=cfg.dropout_rate)(x, deterministic=deterministic)


class UserTransformer(transformer.Transformer):
  """Ours with other parts, in the way of T5X's users: by its `setup`."""

  layer_cls: type[nn.Module] = UserEncoderLayer

  def setup(self):
    """Makes the parts."""
    cfg = self.config
    self.shared_embedding = t5x_layers.Embed(
        num_embeddings=cfg.vocab_size,
        features=cfg.emb_dim,
        dtype=cfg.dtype,
        attend_dtype=jnp.float32,
        embedding_init=nn.initializers.normal(stddev=1.0),
        one_hot=True,
        name='token_embedder',
    )
    self.encoder = UserEncoder(
        config=cfg,
        shared_embedding=self.shared_embedding,
        layer_cls=self.layer_cls,
    )
    self.decoder = t5x_stacks.Decoder(
        config=cfg, shared_embedding=self.shared_embedding
    )


def _init(network):
  return network.init(
      jax.random.PRNGKey(0), _INPUTS, _SHIFTED, _TARGETS, enable_dropout=False
  )


def _loss(network, params):
  logits = network.apply(
      {'params': params},
      _INPUTS,
      _SHIFTED,
      _TARGETS,
      rngs={'dropout': jax.random.PRNGKey(1)},
  )
  return jnp.sum(jnp.square(logits)), logits


@pytest.mark.parametrize(
    'layer_cls', [UserEncoderLayer, t5x_stacks.EncoderLayer]
)
def test_a_network_of_t5x_layers_has_our_parameters_logits_and_gradients(
    layer_cls,
):
  ours = transformer.Transformer(_PLAIN)
  theirs = UserTransformer(_PLAIN, layer_cls=layer_cls)
  expected = _init(ours)
  jax.tree.map(np.testing.assert_array_equal, _init(theirs), expected)
  evaluate = jax.value_and_grad(_loss, argnums=1, has_aux=True)
  (_, logits), gradients = evaluate(theirs, expected['params'])
  (_, our_logits), our_gradients = evaluate(ours, expected['params'])
  # Products are summed in another order.
  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4),
      (logits, gradients),
      (our_logits, our_gradients),
  )


def test_a_network_of_t5x_layers_decodes_step_by_step_as_it_reads_at_once():
  network = UserTransformer(_PLAIN)
  params = {'params': _init(network)['params']}
  encoded = network.apply(
      params, _INPUTS, enable_dropout=False, method=network.encode
  )

  def decode(variables, tokens):
    return network.apply(
        variables, encoded, _INPUTS, tokens, tokens, enable_dropout=False,
        decode=True, max_decode_length=3, mutable=['cache'],
        method=network.decode,
    )  # fmt: skip

  expected = network.apply(
      params, encoded, _INPUTS, _SHIFTED, jnp.ones_like(_SHIFTED),
      enable_dropout=False, method=network.decode,
  )  # fmt: skip
  _, state = decode(params, _SHIFTED)
  for position in range(3):
    logits, state = decode(
        {**params, **state}, _SHIFTED[:, position : position + 1]
    )
    np.testing.assert_allclose(
        logits[:, 0], expected[:, position], rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize('is_scanned', [False, True])
def test_attention_layers_have_t5x_kernels(is_scanned):
  attention = t5x_attention.MultiHeadDotProductAttention
  shapes = {'query': (6, 8), 'out': (8, 6)}
  if is_scanned:
    attention = t5x_attention.ScannedMultiHeadDotProductAttention
    shapes = {'query': (6, 2, 4), 'out': (2, 4, 6)}
  inputs = jnp.ones((1, 3, 6))
  variables = attention(2, 4).init(jax.random.PRNGKey(0), inputs, inputs)
  for name, shape in shapes.items():
    assert variables['params'][name]['kernel'].shape == shape
  plain = t5x_attention.MultiHeadDotProductAttention(2, 4).init(
      jax.random.PRNGKey(0), inputs, inputs
  )
  jax.tree.map(
      lambda a, b: np.testing.assert_array_equal(a.ravel(), b.ravel()),
      variables['params'],
      plain['params'],
  )


def test_dense_general_contracts_any_axes():
  inputs = jax.random.normal(jax.random.PRNGKey(1), (2, 3, 4, 5))
  for dense, axis, product in (
      (t5x_layers.DenseGeneral, (1, -1), 'abcd,bdef->acef'),
      (t5x_layers.ScannedDenseGeneral, (1, -1), 'abcd,bdef->acef'),
      (t5x_layers.DenseGeneral, 0, 'abcd,aef->bcdef'),
  ):
    layer = dense(features=(6, 7), axis=axis)
    variables = layer.init(jax.random.PRNGKey(0), inputs)
    axes = t5x_layers.canonicalize_tuple(axis)
    kernel = variables['params']['kernel'].reshape(
        *(inputs.shape[a] for a in axes), 6, 7
    )
    np.testing.assert_allclose(
        layer.apply(variables, inputs),
        np.einsum(product, inputs, kernel),
        rtol=1e-4,
        atol=1e-5,
    )


def test_nd_dense_init_draws_by_the_size_of_the_input_axes():
  init = t5x_layers.nd_dense_init(1.0, 'fan_in', 'normal')
  wide = init(jax.random.PRNGKey(0), (400, 5, 6), jnp.float32, (0, 1), (2,))
  # 2,000 inputs: a deviation of 1/sqrt(2000), of 12,000 numbers within 3 %.
  assert np.std(wide) == pytest.approx(2000**-0.5, rel=0.03)


def test_kernel_init_and_scale_init_make_the_parameters():
  inputs = jnp.ones((2, 3, 4))
  ones = nn.initializers.ones
  mlp = t5x_layers.MlpBlock(5, ('relu', 'linear'), kernel_init=ones)
  params = mlp.init(jax.random.PRNGKey(0), inputs, deterministic=True)
  # Every hidden number is 4 x 4, every output five times that.
  np.testing.assert_allclose(
      mlp.apply(params, inputs, deterministic=True), 80.0
  )
  norm = t5x_layers.LayerNorm(scale_init=nn.initializers.constant(3.0))
  params = norm.init(jax.random.PRNGKey(0), inputs)
  np.testing.assert_allclose(norm.apply(params, inputs), 3.0, rtol=1e-5)


def test_embed_scores_tokens_in_the_type_asked_for():
  tokens = jnp.asarray([3, 1])  # any shape
  query = jnp.ones((2, 6), jnp.bfloat16)
  for attend_dtype, expected in (
      (None, jnp.bfloat16), (jnp.float32, jnp.float32)
  ):
    embed = t5x_layers.Embed(
        8, 6, dtype=jnp.bfloat16, attend_dtype=attend_dtype
    )
    variables = embed.init(jax.random.PRNGKey(0), tokens)
    table = variables['params']['embedding']
    np.testing.assert_array_equal(
        embed.apply(variables, tokens), table[tokens].astype(jnp.bfloat16)
    )
    scores = embed.apply(variables, query, method=embed.attend)
    assert scores.dtype == expected
    np.testing.assert_allclose(
        scores.astype(np.float32), table.sum(axis=1)[None].repeat(2, 0),
        rtol=0.05, atol=0.05,
    )  # fmt: skip


def test_embed_refuses_what_are_no_tokens():
  embed = t5x_layers.Embed(8, 6)
  with pytest.raises(ValueError, match='float32, expected an integer type'):
    embed.init(jax.random.PRNGKey(0), jnp.ones((2, 3)))
  cast = t5x_layers.Embed(8, 6, cast_input_dtype='int32')
  cast.init(jax.random.PRNGKey(0), jnp.ones((2, 3)))


def test_prefill_fills_what_a_first_call_made():
  attention = t5x_attention.MultiHeadDotProductAttention(2, 4)
  inputs = jax.random.normal(jax.random.PRNGKey(1), (2, 5, 6))
  mask = t5x_masks.make_decoder_mask(
      jnp.ones((2, 5)), jnp.float32, jnp.asarray([[1, 1, 1, 0, 0]] * 2)
  ) * jnp.asarray([1, 1, 1, 0, 0])
  variables = attention.init(
      jax.random.PRNGKey(0), inputs, inputs, decode=True
  )
  filled, state = attention.apply(
      variables, inputs, inputs, mask, prefill=True, mutable=['cache']
  )
  assert filled.shape == inputs.shape
  np.testing.assert_array_equal(state['cache']['cache_index'], [3, 3])
  both = types.SimpleNamespace(decode=True, prefill=True)
  with pytest.raises(ValueError, match='expected one of them'):
    attention.apply(variables, inputs, inputs, **vars(both))


def test_relative_positions_of_a_decoder_do_not_look_ahead():
  biases = t5x_layers.RelativePositionBiases(32, 128, 2, jnp.float32)
  variables = biases.init(jax.random.PRNGKey(0), 3, 3)
  bias = biases.apply(variables, 3, 3, False, decode=True)
  np.testing.assert_array_equal(bias[0, :, 0, 1], bias[0, :, 0, 2])
  with pytest.raises(ValueError, match='expected one of them'):
    biases.apply(variables, 3, 3, True, decode=True)


def test_the_scanned_mlp_takes_initialisers_that_are_told_the_axes():
  told = []

  def init(key, shape, dtype, in_axis, out_axis):
    del key
    told.append((shape, tuple(in_axis), tuple(out_axis)))
    return jnp.ones(shape, dtype)

  inputs = jnp.ones((1, 2, 3))
  t5x_layers.ScannedMlpBlock(4, kernel_init=init).init(
      jax.random.PRNGKey(0), inputs, deterministic=True
  )
  assert told == [((3, 4), (0,), (1,)), ((4, 3), (0,), (1,))]


def test_t5x_layers_run_in_the_gpu_network_too():
  config = t5x_configs.GpuT5Config(**_SIZES, scale_attn_logits=True)
  inputs = jax.random.normal(jax.random.PRNGKey(1), (1, 5, 8))
  layer = t5x_attention.MultiHeadDotProductAttention(
      config.num_heads, config.head_dim, scale_attn_logits=True
  )
  variables = layer.init(jax.random.PRNGKey(0), inputs, inputs)
  plain = layer.clone(scale_attn_logits=False)
  scaled = {**variables['params']}
  scaled['query'] = {
      'kernel': variables['params']['query']['kernel'] / config.head_dim**0.5
  }
  np.testing.assert_allclose(
      layer.apply(variables, inputs, inputs),
      plain.apply({'params': scaled}, inputs, inputs),
      rtol=1e-5,
  )
