# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Layers of an encoder and of a decoder that looks at it, and their stacks.

A stack is plain (one module per layer, one relative bias shared by all) or
scanned (one layer compiled, its parameters stacked), each in T5X's parameter
layout, and with or without computing activations anew in the backward pass.
"""

from flax import linen as nn
from jax import Array
from jaxtyping import Float, Num

from t5wild.networks import blocks
from t5wild.networks import config as config_lib
from t5wild.networks import layers
from t5wild.networks import masks
from t5wild.networks import sight

Tokens = blocks.Tokens
Embedded = blocks.Embedded
Bias = blocks.Bias


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
      mask: sight.MaskOrSight,
      bias: Bias | None,
      dropout_rows: layers.DropoutRows,
  ) -> tuple[Embedded, None]:
    """Maps a layer's inputs to its outputs (with what `nn.scan` expects)."""
    cfg = self.config
    switches = {
        'deterministic': self.deterministic,
        'dropout_rows': dropout_rows,
    }
    bias = blocks.make_layer_bias(
        cfg, bias, inputs.shape[1], bidirectional=True
    )

    inputs = blocks.pin(inputs)
    x = blocks.make_norm(cfg, 'pre_attention_layer_norm')(inputs)
    x = blocks.make_attention(cfg, 'attention')(x, x, mask, bias, **switches)
    x = layers.Dropout(cfg.dropout_rate)(x, **switches)
    x = blocks.pin(x + inputs)

    y = blocks.make_norm(cfg, 'pre_mlp_layer_norm')(x)
    y = blocks.make_mlp(cfg)(y, **switches)
    y = layers.Dropout(cfg.dropout_rate)(y, **switches)
    return blocks.pin(y + x), None


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
      inputs: Float[Array, 'rows length embed'],
      encoded: Float[Array, 'batch encoded_length embed'],
      mask: sight.MaskOrSight | None,
      encoder_mask: masks.CrossMask | sight.Sight,
      bias: Bias | None,
      dropout_rows: layers.DropoutRows,
  ) -> tuple[Float[Array, 'rows length embed'], None]:
    """Maps a layer's inputs to its outputs (with what `nn.scan` expects)."""
    cfg = self.config
    switches = {
        'deterministic': self.deterministic,
        'dropout_rows': dropout_rows,
    }
    length = self.max_decode_length or inputs.shape[1]
    bias = blocks.make_layer_bias(cfg, bias, length, bidirectional=False)

    inputs = blocks.pin(inputs)
    x = blocks.make_norm(cfg, 'pre_self_attention_layer_norm')(inputs)
    x = blocks.make_attention(cfg, 'self_attention')(
        x, x, mask, bias, decode=self.decode, **switches
    )
    x = layers.Dropout(cfg.dropout_rate)(x, **switches)
    x = blocks.pin(x + inputs)

    y = blocks.make_norm(cfg, 'pre_cross_attention_layer_norm')(x)
    cross_attention = blocks.make_attention(
        cfg,
        'encoder_decoder_attention',
        is_cross=True,
        like_to_like=cfg.like_attends_to_like,
        keep_encoded=self.decode,
    )
    # Several decodes of one input look at the same keys: as queries of one row
    # they need no copies of them. A row for a row stays as it is.
    rows = y.reshape(encoded.shape[0], -1, y.shape[-1])
    y = cross_attention(rows, encoded, encoder_mask, **switches).reshape(
        y.shape
    )
    y = layers.Dropout(cfg.dropout_rate)(y, **switches)
    y = blocks.pin(y + x)

    z = blocks.make_norm(cfg, 'pre_mlp_layer_norm')(y)
    z = blocks.make_mlp(cfg)(z, **switches)
    z = layers.Dropout(cfg.dropout_rate)(z, **switches)
    return blocks.pin(z + y), None


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
      encoder_mask: sight.MaskOrSight,
      *,
      deterministic: bool,
      dropout_rows: layers.DropoutRows = None,
  ) -> Embedded:
    """Encodes tokens."""
    cfg = self.config
    switches = {'deterministic': deterministic, 'dropout_rows': dropout_rows}
    bias = blocks.make_shared_bias(
        cfg, encoder_input_tokens.shape[1], bidirectional=True
    )
    x = blocks.embed(cfg, self.shared_embedding, encoder_input_tokens)
    x = layers.Dropout(cfg.dropout_rate)(x, **switches)
    x = blocks.apply_layers(
        EncoderLayer,
        x,
        (encoder_mask, bias, dropout_rows),
        layer_fields={'config': cfg, 'deterministic': deterministic},
        num_layers=cfg.num_encoder_layers,
        scanned_name='encoder',
        initializing=self.is_mutable_collection('params'),
    )
    x = blocks.make_norm(cfg, 'encoder_norm')(x)
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
      decoder_input_tokens: Num[Array, 'rows length'],
      decoder_mask: sight.MaskOrSight | None,
      encoder_decoder_mask: masks.CrossMask | sight.Sight,
      *,
      deterministic: bool,
      decode: bool = False,
      max_decode_length: int | None = None,
      dropout_rows: layers.DropoutRows = None,
  ) -> Float[Array, 'rows length vocab']:
    """Scores the next token at each position, in float32.

    While decoding there may be several rows of tokens, side by side, for each
    row of `encoded`, and keys and values of `encoded` may be kept in the
    collection `encoded` (see `attention.MultiHeadDotProductAttention`).
    """
    cfg = self.config
    switches = {'deterministic': deterministic, 'dropout_rows': dropout_rows}
    if not decode:
      max_decode_length = None
    length = max_decode_length or decoder_input_tokens.shape[1]
    bias = blocks.make_shared_bias(cfg, length, bidirectional=False)
    y = blocks.embed(cfg, self.shared_embedding, decoder_input_tokens)
    y = layers.Dropout(cfg.dropout_rate)(y, **switches)
    y = blocks.apply_layers(
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
    y = blocks.make_norm(cfg, 'decoder_norm')(y)
    y = layers.Dropout(cfg.dropout_rate)(y, **switches)
    return blocks.score_tokens(cfg, self.shared_embedding, y)
