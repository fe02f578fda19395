# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Layers of a T5 encoder and decoder, and the stacks of them.

A stack is plain (one module per layer, one relative bias shared by all) or
scanned (one layer compiled, its parameters stacked), each in T5X's parameter
layout, and with or without computing activations anew in the backward pass.
"""

from flax import linen as nn
from flax.linen import partitioning
import jax
from jax import Array
import jax.numpy as jnp
from jaxtyping import Float, Int

from t5wild.networks import attention
from t5wild.networks import config as config_lib
from t5wild.networks import embeddings
from t5wild.networks import layers
from t5wild.networks import masks

Tokens = Int[Array, 'batch length']
Embedded = Float[Array, 'batch length embed']
Bias = Float[Array, '1 heads queries keys']


def _attention(
    config: config_lib.T5Config, name: str, *, like_to_like: bool = False
):
  return attention.MultiHeadDotProductAttention(
      num_heads=config.num_heads,
      head_dim=config.head_dim,
      dtype=config.dtype,
      dropout_rate=config.dropout_rate,
      float32_logits=config.float32_attention_logits,
      joined_kernels=not config.scan_layers,
      like_to_like=like_to_like,
      name=name,
  )


def _mlp(config: config_lib.T5Config):
  return layers.MlpBlock(
      config.mlp_dim,
      activations=config.mlp_activations,
      intermediate_dropout_rate=config.dropout_rate,
      dtype=config.dtype,
      name='mlp',
  )


def _relative_bias(config: config_lib.T5Config):
  return embeddings.RelativePositionBiases(
      config.num_heads,
      dtype=config.dtype,
      init_scale=config.relative_bias_init_scale,
      name='relpos_bias',
  )


def _as_activation(x: Embedded) -> Embedded:
  """Pins how a layer's activations lie on the mesh."""
  return partitioning.with_sharding_constraint(x, ('batch', 'length', 'embed'))


class EncoderLayer(nn.Module):
  """Self-attention and feed-forward block, each normalised before and added.

  Attributes:
    config: sizes and switches.
    deterministic: no dropout.
  """

  config: config_lib.T5Config
  deterministic: bool

  @nn.compact
  def __call__(
      self,
      inputs: Embedded,
      mask: masks.Mask,
      bias: Bias | None,
      dropout_rows: layers.DropoutRows,
  ) -> tuple[Embedded, None]:
    """Maps a layer's inputs to its outputs (with what `nn.scan` expects)."""
    cfg = self.config
    switches = {
        'deterministic': self.deterministic,
        'dropout_rows': dropout_rows,
    }
    if bias is None:  # scanned layers have a bias each
      length = inputs.shape[1]
      bias = _relative_bias(cfg)(length, length, bidirectional=True)

    inputs = _as_activation(inputs)
    x = layers.LayerNorm(dtype=cfg.dtype, name='pre_attention_layer_norm')(
        inputs
    )
    x = _attention(cfg, 'attention')(x, x, mask, bias, **switches)
    x = layers.Dropout(cfg.dropout_rate)(x, **switches)
    x = _as_activation(x + inputs)

    y = layers.LayerNorm(dtype=cfg.dtype, name='pre_mlp_layer_norm')(x)
    y = _mlp(cfg)(y, **switches)
    y = layers.Dropout(cfg.dropout_rate)(y, **switches)
    return _as_activation(y + x), None


class DecoderLayer(nn.Module):
  """Self-attention, attention to the encoder, feed-forward block.

  Attributes:
    config: sizes and switches.
    deterministic: no dropout.
    decode: one position at a time, with a cache.
    max_decode_length: length of that cache.
  """

  config: config_lib.T5Config
  deterministic: bool
  decode: bool = False
  max_decode_length: int | None = None

  @nn.compact
  def __call__(
      self,
      inputs: Embedded,
      encoded: Float[Array, 'batch encoded_length embed'],
      mask: masks.Mask | None,
      encoder_mask: masks.Mask,
      bias: Bias | None,
      dropout_rows: layers.DropoutRows,
  ) -> tuple[Embedded, None]:
    """Maps a layer's inputs to its outputs (with what `nn.scan` expects)."""
    cfg = self.config
    switches = {
        'deterministic': self.deterministic,
        'dropout_rows': dropout_rows,
    }
    if bias is None:  # scanned layers have a bias each
      length = self.max_decode_length or inputs.shape[1]
      bias = _relative_bias(cfg)(length, length, bidirectional=False)

    inputs = _as_activation(inputs)
    x = layers.LayerNorm(
        dtype=cfg.dtype, name='pre_self_attention_layer_norm'
    )(inputs)
    x = _attention(cfg, 'self_attention')(
        x, x, mask, bias, decode=self.decode, **switches
    )
    x = layers.Dropout(cfg.dropout_rate)(x, **switches)
    x = _as_activation(x + inputs)

    y = layers.LayerNorm(
        dtype=cfg.dtype, name='pre_cross_attention_layer_norm'
    )(x)
    cross_attention = _attention(
        cfg,
        'encoder_decoder_attention',
        like_to_like=cfg.like_attends_to_like,
    )
    y = cross_attention(y, encoded, encoder_mask, **switches)
    y = layers.Dropout(cfg.dropout_rate)(y, **switches)
    y = _as_activation(y + x)

    z = layers.LayerNorm(dtype=cfg.dtype, name='pre_mlp_layer_norm')(y)
    z = _mlp(cfg)(z, **switches)
    z = layers.Dropout(cfg.dropout_rate)(z, **switches)
    return _as_activation(z + y), None


def _rematerialized(layer_cls, config: config_lib.T5Config):
  """Makes a layer's backward pass compute anew what its policy does not save.

  Attention's products have batch axes and are cheap beside those with
  parameters, so 'minimal' computes them again.
  """
  if config.remat_policy == 'none':
    return layer_cls
  policy = None
  if config.remat_policy == 'minimal':
    policy = jax.checkpoint_policies.checkpoint_dots_with_no_batch_dims
  # A loop's body can't share work with its surroundings, so there the barrier
  # that keeps XLA from undoing the recomputation is needless.
  return partitioning.remat(
      layer_cls, policy=policy, prevent_cse=not config.scan_layers
  )


def _apply_layers(
    layer_cls, x: Embedded, layer_args: tuple, *, layer_fields: dict,
    num_layers: int, scanned_name: str, initializing: bool
) -> Embedded:
  """Sends x through all layers; call it from a compact method.

  Args:
    layer_cls: class of a layer.
    x: inputs of the first layer.
    layer_args: what every layer gets besides x.
    layer_fields: fields of the layer module, `config` among them.
    num_layers: number of layers.
    scanned_name: name of the stacked layers' module.
    initializing: parameters are being made.
  """
  config = layer_fields['config']
  layer_cls = _rematerialized(layer_cls, config)
  if not config.scan_layers:
    for index in range(num_layers):
      x, _ = layer_cls(**layer_fields, name=f'layers_{index}')(x, *layer_args)
    return x
  axis = config.param_scan_axis
  scanned_cls = partitioning.scan_with_axes(
      layer_cls,
      variable_axes={
          'params': axis if initializing else partitioning.ScanIn(axis),
          'cache': 0,
      },
      split_rngs={'params': True, 'dropout': True},
      in_axes=(nn.broadcast,) * len(layer_args),
      length=num_layers,
      axis_name='layers',
  )
  x, _ = scanned_cls(**layer_fields, name=scanned_name)(x, *layer_args)
  return x


class Encoder(nn.Module):
  """Embedding, encoder layers and a last norm.

  Attributes:
    config: sizes and switches.
    shared_embedding: the token embeddings, shared with the decoder.
  """

  config: config_lib.T5Config
  shared_embedding: nn.Module

  @nn.compact
  def __call__(
      self,
      encoder_input_tokens: Tokens,
      encoder_mask: masks.Mask,
      *,
      deterministic: bool,
      dropout_rows: layers.DropoutRows = None,
  ) -> Embedded:
    """Encodes tokens."""
    cfg = self.config
    switches = {'deterministic': deterministic, 'dropout_rows': dropout_rows}
    bias = None
    if not cfg.scan_layers:
      length = encoder_input_tokens.shape[1]
      bias = _relative_bias(cfg)(length, length, bidirectional=True)
    x = self.shared_embedding(encoder_input_tokens)
    x = layers.Dropout(cfg.dropout_rate)(x, **switches)
    x = _apply_layers(
        EncoderLayer,
        x,
        (encoder_mask, bias, dropout_rows),
        layer_fields={'config': cfg, 'deterministic': deterministic},
        num_layers=cfg.num_encoder_layers,
        scanned_name='encoder',
        initializing=self.is_mutable_collection('params'),
    )
    x = layers.LayerNorm(dtype=cfg.dtype, name='encoder_norm')(x)
    # The one site where T5X draws for every position by itself.
    return layers.Dropout(cfg.dropout_rate, broadcast_dims=())(x, **switches)


class Decoder(nn.Module):
  """Embedding, decoder layers, a last norm and the scores of all tokens.

  Attributes:
    config: sizes and switches.
    shared_embedding: the token embeddings, shared with the encoder.
  """

  config: config_lib.T5Config
  shared_embedding: nn.Module

  @nn.compact
  def __call__(
      self,
      encoded: Float[Array, 'batch encoded_length embed'],
      decoder_input_tokens: Tokens,
      decoder_mask: masks.Mask | None,
      encoder_decoder_mask: masks.Mask,
      *,
      deterministic: bool,
      decode: bool = False,
      max_decode_length: int | None = None,
      dropout_rows: layers.DropoutRows = None,
  ) -> Float[Array, 'batch length vocab']:
    """Scores the next token at each position, in float32."""
    cfg = self.config
    switches = {'deterministic': deterministic, 'dropout_rows': dropout_rows}
    if not decode:
      max_decode_length = None
    bias = None
    if not cfg.scan_layers:
      length = max_decode_length or decoder_input_tokens.shape[1]
      bias = _relative_bias(cfg)(length, length, bidirectional=False)
    y = self.shared_embedding(decoder_input_tokens)
    y = layers.Dropout(cfg.dropout_rate)(y, **switches)
    y = _apply_layers(
        DecoderLayer,
        y,
        (encoded, decoder_mask, encoder_decoder_mask, bias, dropout_rows),
        layer_fields={
            'config': cfg,
            'deterministic': deterministic,
            'decode': decode,
            'max_decode_length': max_decode_length,
        },
        num_layers=cfg.num_decoder_layers,
        scanned_name='decoder',
        initializing=self.is_mutable_collection('params'),
    )
    y = layers.LayerNorm(dtype=cfg.dtype, name='decoder_norm')(y)
    y = layers.Dropout(cfg.dropout_rate)(y, **switches)
    if cfg.logits_via_embedding:
      # A shared table has entries of size 1, a layer's kernel 1/sqrt(embed).
      return self.shared_embedding.attend(y) / jnp.sqrt(y.shape[-1])
    return layers.DenseGeneral(
        cfg.vocab_size,
        kernel_axes=('embed', 'vocab'),
        dtype=jnp.float32,
        name='logits_dense',
    )(y)
