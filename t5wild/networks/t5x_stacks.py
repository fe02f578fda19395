# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's layers and stacks of the plain encoder-decoder, for users' networks.

Each is that of `stacks` under T5X's attributes and arguments: a layer is given
the relative positions it looks by, and returns its outputs alone.
"""

from typing import Any

from flax import linen as nn
from jax import Array
from jaxtyping import Float, Num, Shaped

from t5wild.networks import config as config_lib
from t5wild.networks import stacks

Embedded = Float[Array, 'rows length embed']
AnyMask = Shaped[Array, '...'] | None


class EncoderLayer(nn.Module):
  """Self-attention and feed-forward block; see `stacks.EncoderLayer`.

  Attributes:
    config: sizes and switches.
    relative_embedding: makes the bias of distances, as f(queries, keys,
      bidirectional).
  """

  config: config_lib.T5Config
  relative_embedding: nn.Module

  @nn.compact
  def __call__(
      self,
      inputs: Embedded,
      encoder_mask: AnyMask = None,
      deterministic: bool = False,
  ) -> Embedded:
    """Maps a layer's inputs to its outputs."""
    length = inputs.shape[-2]
    bias = self.relative_embedding(length, length, True)
    ours = stacks.EncoderLayer(self.config, deterministic=deterministic)
    nn.share_scope(self, ours)
    return ours(inputs, _is_seen(encoder_mask), bias, None)[0]


class DecoderLayer(nn.Module):
  """Self- and cross-attention, feed-forward block; see `stacks.DecoderLayer`.

  Attributes:
    config: sizes and switches.
    relative_embedding: as in `EncoderLayer`.
  """

  config: config_lib.T5Config
  relative_embedding: nn.Module

  @nn.compact
  def __call__(
      self,
      inputs: Embedded,
      encoded: Float[Array, 'batch encoded_length embed'],
      decoder_mask: AnyMask = None,
      encoder_decoder_mask: AnyMask = None,
      deterministic: bool = False,
      decode: bool = False,
      max_decode_length: int | None = None,
  ) -> Embedded:
    """Maps a layer's inputs to its outputs."""
    length = inputs.shape[-2]
    if decode and max_decode_length:
      length = max_decode_length
    bias = self.relative_embedding(length, length, False)
    ours = stacks.DecoderLayer(
        self.config,
        deterministic=deterministic,
        decode=decode,
        max_decode_length=max_decode_length,
    )
    nn.share_scope(self, ours)
    return ours(
        inputs,
        encoded,
        _is_seen(decoder_mask),
        _is_seen(encoder_decoder_mask),
        bias,
        None,
    )[0]


class Encoder(nn.Module):
  """Embedding, encoder layers and a last norm; see `stacks.Encoder`.

  Attributes:
    config: sizes and switches.
    shared_embedding: the token embeddings, shared with the decoder.
  """

  config: config_lib.T5Config
  shared_embedding: nn.Module

  @nn.compact
  def __call__(
      self,
      encoder_input_tokens: Num[Array, 'batch length'],
      encoder_mask: AnyMask = None,
      deterministic: bool = False,
  ) -> Embedded:
    """Encodes tokens."""
    ours = stacks.Encoder(self.config, self.shared_embedding)
    nn.share_scope(self, ours)
    return ours(
        encoder_input_tokens.astype('int32'),
        _is_seen(encoder_mask),
        deterministic=deterministic,
    )


class Decoder(nn.Module):
  """Decoder layers, a last norm, scores of tokens; see `stacks.Decoder`.

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
      decoder_positions: Num[Array, 'rows length'] | None = None,
      decoder_mask: AnyMask = None,
      encoder_decoder_mask: AnyMask = None,
      deterministic: bool = False,
      decode: bool = False,
      max_decode_length: int | None = None,
  ) -> Float[Array, 'rows length vocab']:
    """Scores the next token at each position; positions are unused."""
    del decoder_positions
    ours = stacks.Decoder(self.config, self.shared_embedding)
    nn.share_scope(self, ours)
    return ours(
        encoded,
        decoder_input_tokens.astype('int32'),
        _is_seen(decoder_mask),
        _is_seen(encoder_decoder_mask),
        deterministic=deterministic,
        decode=decode,
        max_decode_length=max_decode_length,
    )


def _is_seen(mask: AnyMask) -> Any:
  """A mask of numbers as ours are, which are boolean."""
  return None if mask is None else mask > 0
