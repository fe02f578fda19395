# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A decoder alone: language models, causal or with a prefix seen both ways.

With the defaults of its configuration it is T5X's decoder-only network, with
its parameters, dropout keys and call signature; the configuration's switches
make PaLM's, Llama's or Gemma's of it.
"""

import itertools

from flax import linen as nn
from jax import Array
import jax.numpy as jnp
from jaxtyping import Float, Int

from t5wild.networks import attention
from t5wild.networks import attention_choice
from t5wild.networks import blocks
from t5wild.networks import config as config_lib
from t5wild.networks import layers
from t5wild.networks import masks
from t5wild.networks import sight

TransformerConfig = config_lib.TransformerConfig  # gin: the name in T5X

Tokens = blocks.Tokens
Embedded = blocks.Embedded


class DecoderLayer(nn.Module):
  """Self-attention and feed-forward block, one after the other or at once.

  Attributes:
    config: sizes and switches.
    deterministic: no dropout.
    decode: one position at a time, with a cache.
    max_decode_length: length of that cache.
  """

  config: TransformerConfig
  deterministic: bool
  decode: bool = False
  max_decode_length: int | None = None

  @nn.compact
  def __call__(
      self,
      inputs: Embedded,
      mask: sight.MaskOrSight | None,
      bias: blocks.Bias | None,
      prefill_lengths: attention.PrefillLengths,
      dropout_rows: layers.DropoutRows,
      is_local: masks.IsLocal | None = None,
  ) -> tuple[Embedded, None]:
    """Maps a layer's inputs to its outputs (with what `nn.scan` expects)."""
    cfg = self.config
    if is_local is None:  # All layers are alike.
      is_local = cfg.layer_pattern[0] == 'local'
    length = self.max_decode_length or inputs.shape[1]
    bias = blocks.make_layer_bias(cfg, bias, length, bidirectional=False)
    inputs = blocks.pin(inputs)
    first_norm = (
        'layer_norm' if cfg.parallel_blocks else 'pre_self_attention_layer_norm'
    )
    normed = blocks.make_norm(cfg, first_norm)(inputs)
    x = blocks.make_attention(cfg, 'self_attention', is_local=is_local)(
        normed,
        normed,
        mask,
        bias,
        decode=self.decode,
        prefill_lengths=prefill_lengths,
        deterministic=self.deterministic,
        dropout_rows=dropout_rows,
    )
    x = self._finish('self_attention', x, dropout_rows) + inputs
    if not cfg.parallel_blocks:
      x = blocks.pin(x)
      normed = blocks.make_norm(cfg, 'pre_mlp_layer_norm')(x)
    y = blocks.make_mlp(cfg)(
        normed, deterministic=self.deterministic, dropout_rows=dropout_rows
    )
    return blocks.pin(self._finish('mlp', y, dropout_rows) + x), None

  def _finish(
      self, block: str, x: Embedded, dropout_rows: layers.DropoutRows
  ) -> Embedded:
    """What is done to a block's outputs before they are added."""
    cfg = self.config
    if cfg.post_norms:
      x = blocks.make_norm(cfg, f'post_{block}_layer_norm')(x)
    return layers.Dropout(cfg.dropout_rate, name=f'post_{block}_dropout')(
        x, deterministic=self.deterministic, dropout_rows=dropout_rows
    )


class Decoder(nn.Module):
  """Embedding, layers, a last norm and the scores of all tokens.

  Attributes:
    config: sizes and switches.
  """

  config: TransformerConfig

  @nn.compact
  def __call__(  # noqa: PLR0913 - T5X's signature
      self,
      decoder_input_tokens: Tokens,
      decoder_target_tokens: Tokens,
      decoder_segment_ids: Tokens | None = None,
      decoder_positions: Tokens | None = None,
      decoder_causal_attention: Int[Array, 'batch length'] | None = None,
      *,
      enable_dropout: bool = True,
      decode: bool = False,
      max_decode_length: int | None = None,
      prefill: bool = False,
      prefill_lengths: attention.PrefillLengths = None,
      dropout_rows: layers.DropoutRows = None,
  ) -> Float[Array, 'batch length vocab']:
    """Scores the next token at each position, in float32.

    Args:
      decoder_input_tokens: the targets shifted right by one position.
      decoder_target_tokens: the targets, to mask the padding.
      decoder_segment_ids: number of the packed example of each position, which
        see nothing of each other; None = not packed.
      decoder_positions: unused: positions only count by their distance, and
        that is the same in the array.
      decoder_causal_attention: 1 on the prefix; None = causal; see
        `masks.make_decoder_mask`.
      enable_dropout: drop out, with the `dropout` keys of this call.
      decode: keep keys and values in the collection `cache`; see
        `attention.MultiHeadDotProductAttention`. Not with packed batches.
      max_decode_length: length of the cache, in every call but the first.
      prefill: fill the cache with all positions at once. Targets here only say
        which positions are real: 1 on the whole prompt.
      prefill_lengths: how many positions of the cache then count; None = all
        real ones.
      dropout_rows: see `layers.dropout_scale`.
    """
    del decoder_positions
    cfg = self.config
    _check_modes(decode, prefill, decoder_segment_ids)
    switches = {
        'deterministic': not enable_dropout, 'dropout_rows': dropout_rows,
    }
    if not decode:
      max_decode_length = None
    if prefill and prefill_lengths is None:
      prefill_lengths = jnp.sum(decoder_target_tokens > 0, axis=-1)
    mask = None
    if not decode:
      mask = _make_mask(
          cfg, decoder_target_tokens, decoder_causal_attention,
          decoder_segment_ids,
      )
    length = max_decode_length or decoder_input_tokens.shape[1]
    bias = blocks.make_shared_bias(cfg, length, bidirectional=False)
    embedder = blocks.make_embedder(cfg)
    y = blocks.embed(cfg, embedder, decoder_input_tokens.astype(jnp.int32))
    y = layers.Dropout(cfg.dropout_rate, name='input_dropout')(y, **switches)
    y = blocks.apply_layers(
        DecoderLayer,
        y,
        (mask, bias, prefill_lengths if prefill else None, dropout_rows),
        layer_fields={
            'config': cfg,
            'deterministic': not enable_dropout,
            'decode': decode,
            'max_decode_length': max_decode_length,
        },
        num_layers=cfg.num_layers,
        scanned_name='decoder',
        initializing=self.is_mutable_collection('params'),
        is_local=_local_layers(cfg),
    )
    y = blocks.make_norm(cfg, 'decoder_norm')(y)
    y = layers.Dropout(cfg.dropout_rate, name='output_dropout')(y, **switches)
    return blocks.score_tokens(cfg, embedder, y)


class DecoderWrapper(nn.Module):
  """The decoder under the name `decoder`, where T5X has its parameters.

  Attributes:
    config: sizes and switches.
  """

  config: TransformerConfig

  def __post_init__(self):
    """Refuses a configuration that can not work, before anything is traced."""
    config_lib.check_config(self.config)
    super().__post_init__()

  @property
  def scan_layers(self) -> bool:
    """Tells decoders that caches have a layer axis before the batch axis."""
    return self.config.scan_layers

  def setup(self):
    """Makes the decoder."""
    self.decoder = Decoder(self.config)

  def __call__(  # noqa: PLR0913 - T5X's signature
      self,
      decoder_input_tokens: Tokens,
      decoder_target_tokens: Tokens,
      decoder_segment_ids: Tokens | None = None,
      decoder_positions: Tokens | None = None,
      decoder_causal_attention: Int[Array, 'batch length'] | None = None,
      *,
      enable_dropout: bool = True,
      decode: bool = False,
      max_decode_length: int | None = None,
      prefill: bool = False,
      prefill_lengths: attention.PrefillLengths = None,
      dropout_rows: layers.DropoutRows = None,
  ) -> Float[Array, 'batch length vocab']:
    """Scores the next token at each position; see `Decoder`."""
    return self.decoder(
        decoder_input_tokens,
        decoder_target_tokens,
        decoder_segment_ids,
        decoder_positions,
        decoder_causal_attention,
        enable_dropout=enable_dropout,
        decode=decode,
        max_decode_length=max_decode_length,
        prefill=prefill,
        prefill_lengths=prefill_lengths,
        dropout_rows=dropout_rows,
    )


def _make_mask(
    config: TransformerConfig,
    targets: Tokens,
    causal_attention: Int[Array, 'batch length'] | None,
    segment_ids: Tokens | None,
) -> sight.MaskOrSight:
  """Lets targets see what came before them, or their prefix; see `masks`."""
  if attention_choice.may_fuse(config.attention_implementation):
    return sight.of_decoder(
        targets, causal_attention=causal_attention, segment_ids=segment_ids
    )
  return masks.make_decoder_mask(
      targets,
      decoder_causal_attention=causal_attention,
      decoder_segment_ids=segment_ids,
  )


def _local_layers(config: TransformerConfig) -> list[bool] | None:
  """Which layers are local; None = all or none of them."""
  kinds = itertools.islice(
      itertools.cycle(config.layer_pattern), config.num_layers
  )
  is_local = [kind == 'local' for kind in kinds]
  return is_local if len(set(config.layer_pattern)) > 1 else None


def _check_modes(decode, prefill, decoder_segment_ids) -> None:
  """Refuses calls that would fill a cache with something else."""
  if decode and prefill:
    raise ValueError(
        'Decoder was called with decode=True and prefill=True; expected one of '
        'them: first prefill with the whole prompt, then decode position by '
        'position'
    )
  if (decode or prefill) and decoder_segment_ids is not None:
    raise ValueError(
        'Decoder was given decoder_segment_ids of shape '
        f'{decoder_segment_ids.shape} to decode with; expected unpacked '
        'examples: decode with pack=False in the data set'
    )
