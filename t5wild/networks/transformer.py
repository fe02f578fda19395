# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The T5 1.1 encoder-decoder: masks from tokens, encoder, decoder.

One network for every size, plain or scanned (see `stacks`), with T5X's
parameters and call signatures.
"""

from flax import linen as nn
from jax import Array
import jax.numpy as jnp
from jaxtyping import Float, Num

from t5wild.networks import attention_choice
from t5wild.networks import blocks
from t5wild.networks import config as config_lib
from t5wild.networks import layers
from t5wild.networks import masks
from t5wild.networks import sight
from t5wild.networks import stacks

T5Config = config_lib.T5Config  # gin: network.T5Config

Tokens = blocks.Tokens
RowTokens = Num[Array, 'rows length']  # batch, or batch x decodes
EncoderTokens = Num[Array, 'batch encoded_length']
Embedded = Float[Array, 'batch length embed']


class Transformer(nn.Module):
  """A T5 encoder-decoder.

  Attributes:
    config: sizes and switches.
  """

  config: T5Config

  def __post_init__(self):
    """Refuses a configuration that can not work, before anything is traced."""
    config_lib.check_config(self.config)
    super().__post_init__()

  @property
  def scan_layers(self) -> bool:
    """Tells decoders that caches have a layer axis before the batch axis."""
    return self.config.scan_layers

  def _may_fuse(self) -> bool:
    return attention_choice.may_fuse(self.config.attention_implementation)

  def setup(self):
    """Makes the parts."""
    cfg = self.config
    self.shared_embedding = blocks.make_embedder(cfg)
    self.encoder = stacks.Encoder(cfg, self.shared_embedding)
    self.decoder = stacks.Decoder(cfg, self.shared_embedding)

  def encode(
      self,
      encoder_input_tokens: Tokens,
      encoder_segment_ids: Tokens | None = None,
      enable_dropout: bool = True,
      dropout_rows: layers.DropoutRows = None,
  ) -> Embedded:
    """Encodes tokens, 0 being padding.

    Args:
      encoder_input_tokens: the tokens.
      encoder_segment_ids: number of the packed example of each position, None
        = not packed.
      enable_dropout: drop out, with the `dropout` keys of this call.
      dropout_rows: see `layers.dropout_scale`.
    """
    return self.encoder(
        encoder_input_tokens.astype(jnp.int32),
        _make_encoder_mask(
            encoder_input_tokens, encoder_segment_ids, fused=self._may_fuse()
        ),
        deterministic=not enable_dropout,
        **_given(dropout_rows=dropout_rows),
    )

  def decode(  # noqa: PLR0913 - T5X's signature
      self,
      encoded: Float[Array, 'batch encoded_length embed'],
      encoder_input_tokens: EncoderTokens,
      decoder_input_tokens: RowTokens,
      decoder_target_tokens: RowTokens,
      encoder_segment_ids: EncoderTokens | None = None,
      decoder_segment_ids: RowTokens | None = None,
      decoder_positions: RowTokens | None = None,
      enable_dropout: bool = True,
      decode: bool = False,
      max_decode_length: int | None = None,
      dropout_rows: layers.DropoutRows = None,
      num_decodes: int | None = None,
  ) -> Float[Array, 'rows length vocab']:
    """Scores the next token at each position, in float32.

    Args:
      encoded: what `encode` returned.
      encoder_input_tokens: its tokens, to mask the padding.
      decoder_input_tokens: the targets shifted right by one position.
      decoder_target_tokens: the targets, to mask the padding.
      encoder_segment_ids: number of the packed example of each position, None
        = not packed.
      decoder_segment_ids: the same for the targets.
      decoder_positions: unused: T5's positions are distances in the array.
      enable_dropout: drop out, with the `dropout` keys of this call.
      decode: keep keys and values in the collection `cache`; see
        `attention.MultiHeadDotProductAttention`. Not with packed batches.
      max_decode_length: length of the cache, in every call but the first.
      dropout_rows: see `layers.dropout_scale`.
      num_decodes: None = a row for each row of `encoded`, as in T5X. A number,
        with `decode`: so many rows, side by side, for each. An argument of this
        name tells a model that it need not repeat `encoded`, and that a first
        call (of one decode) that may change the collection `encoded` keeps its
        keys and values there for the later ones.
    """
    del decoder_positions
    if num_decodes is not None:
      _check_decodes(num_decodes, decode, encoded, decoder_input_tokens)
    if decode and encoder_segment_ids is not None:
      raise ValueError(
          'Transformer.decode was given encoder_segment_ids of shape '
          f'{encoder_segment_ids.shape} together with decode=True; expected '
          'unpacked examples: decode with pack=False in the data set'
      )
    return self.decoder(
        encoded,
        decoder_input_tokens=decoder_input_tokens.astype(jnp.int32),
        decoder_mask=None
        if decode
        else _make_decoder_mask(
            decoder_target_tokens, decoder_segment_ids, fused=self._may_fuse()
        ),
        encoder_decoder_mask=_make_encoder_decoder_mask(
            encoder_input_tokens,
            decoder_target_tokens,
            encoder_segment_ids=encoder_segment_ids,
            decoder_segment_ids=decoder_segment_ids,
            decode=decode,
            fused=self._may_fuse(),
        )
        if num_decodes is None
        else masks.make_attention_mask(
            jnp.ones_like(encoder_input_tokens[:, :1]), encoder_input_tokens > 0
        ),
        deterministic=not enable_dropout,
        decode=decode,
        max_decode_length=max_decode_length,
        **_given(dropout_rows=dropout_rows),
    )

  def __call__(  # noqa: PLR0913 - T5X's signature
      self,
      encoder_input_tokens: EncoderTokens,
      decoder_input_tokens: Tokens,
      decoder_target_tokens: Tokens,
      encoder_segment_ids: EncoderTokens | None = None,
      decoder_segment_ids: Tokens | None = None,
      encoder_positions: EncoderTokens | None = None,
      decoder_positions: Tokens | None = None,
      *,
      enable_dropout: bool = True,
      decode: bool = False,
      dropout_rows: layers.DropoutRows = None,
  ) -> Float[Array, 'batch length vocab']:
    """Encodes, then decodes; see there for the arguments."""
    del encoder_positions
    encoded = self.encode(
        encoder_input_tokens,
        encoder_segment_ids,
        enable_dropout=enable_dropout,
        dropout_rows=dropout_rows,
    )
    return self.decode(
        encoded,
        encoder_input_tokens,
        decoder_input_tokens,
        decoder_target_tokens,
        encoder_segment_ids=encoder_segment_ids,
        decoder_segment_ids=decoder_segment_ids,
        decoder_positions=decoder_positions,
        enable_dropout=enable_dropout,
        decode=decode,
        dropout_rows=dropout_rows,
    )


def _given(**arguments):
  """Those that are not None: a user's encoder or decoder has T5X's alone."""
  return {k: v for k, v in arguments.items() if v is not None}


def _make_encoder_mask(
    tokens: EncoderTokens, segment_ids: EncoderTokens | None, *, fused: bool
) -> sight.MaskOrSight:
  """Lets real inputs see those of their packed example."""
  if fused:
    return sight.of_encoder(tokens, segment_ids=segment_ids)
  real = tokens > 0
  mask = masks.make_attention_mask(real, real)
  if segment_ids is None:
    return mask
  same_example = masks.make_attention_mask(segment_ids, segment_ids, jnp.equal)
  return masks.combine_masks(mask, same_example)


def _make_decoder_mask(
    targets: RowTokens, segment_ids: RowTokens | None, *, fused: bool
) -> sight.MaskOrSight:
  """Lets real targets see those before them, of their packed example."""
  if fused:
    return sight.of_decoder(targets, segment_ids=segment_ids)
  return masks.make_decoder_mask(targets, decoder_segment_ids=segment_ids)


def _make_encoder_decoder_mask(
    encoder_input_tokens: EncoderTokens,
    decoder_target_tokens: Tokens,
    *,
    encoder_segment_ids: EncoderTokens | None,
    decoder_segment_ids: Tokens | None,
    decode: bool,
    fused: bool,
) -> sight.MaskOrSight:
  """Lets real targets see the real inputs of their packed example."""
  if fused and not decode:
    return sight.across(
        decoder_target_tokens,
        encoder_input_tokens,
        target_segment_ids=decoder_segment_ids,
        input_segment_ids=encoder_segment_ids,
    )
  looks = jnp.ones_like(decoder_target_tokens) if decode else (
      decoder_target_tokens
  )
  mask = masks.make_attention_mask(looks > 0, encoder_input_tokens > 0)
  if encoder_segment_ids is None:
    return mask
  same_example = masks.make_attention_mask(
      decoder_segment_ids, encoder_segment_ids, jnp.equal
  )
  return masks.combine_masks(mask, same_example)


def _check_decodes(
    num_decodes: int, decode: bool, encoded: Array, decoder_input_tokens: Array
) -> None:
  """Refuses rows that are not `num_decodes` for each encoded one."""
  rows, batch = decoder_input_tokens.shape[0], encoded.shape[0]
  if decode and rows == batch * num_decodes:
    return
  raise ValueError(
      f'Transformer.decode was given num_decodes={num_decodes}, '
      f'decode={decode}, {rows} rows of decoder tokens and {batch} encoded '
      'inputs; expected decode=True and num_decodes rows for each input: leave '
      'num_decodes out to have a row for a row'
  )
