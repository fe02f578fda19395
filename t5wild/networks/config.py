# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The sizes and switches of a T5 network, checked."""

from collections.abc import Sequence
from typing import Any

from flax import struct
import jax.numpy as jnp

from t5wild.networks import layers

REMAT_POLICIES = ('none', 'minimal', 'full')


@struct.dataclass
class T5Config:
  """The sizes and switches of a T5 network, by T5X's names.

  Attributes:
    vocab_size: number of tokens, of both sides.
    dtype: type of the activations; parameters are float32.
    emb_dim: size of an embedding.
    num_heads: number of attention heads.
    num_encoder_layers: number of encoder layers.
    num_decoder_layers: number of decoder layers.
    head_dim: size of a head's query, key and value.
    mlp_dim: size of the hidden axis of the feed-forward blocks.
    mlp_activations: names in flax.linen; ('gelu', 'linear') = gated GELU.
    dropout_rate: dropout of every site.
    logits_via_embedding: score tokens by the (scaled) embedding table instead
      of a layer of their own.
    float32_attention_logits: accumulate attention logits in float32.
    scan_layers: compile one layer and loop over stacked parameters: quicker to
      compile, slower to run on a CPU.
    remat_policy: what the backward pass computes anew: 'none' nothing,
      'minimal' all but products with parameters, 'full' whole layers.
    param_scan_axis: where stacked parameters have their layer axis.
    like_attends_to_like: begin with the same kernel for the queries of the
      decoder and the keys of the encoder, so that a sentinel looks first at the
      same sentinel. T5 draws them apart, and then a decoder needs several times
      as many steps until it makes use of its encoder.
    relative_bias_init_scale: factor on T5's initial relative position biases;
      with 10 heads look at certain distances from the start.
  """

  vocab_size: int
  dtype: Any = jnp.float32
  emb_dim: int = 512
  num_heads: int = 8
  num_encoder_layers: int = 6
  num_decoder_layers: int = 6
  head_dim: int = 64
  mlp_dim: int = 2048
  mlp_activations: Sequence[str] = ('relu',)
  dropout_rate: float = 0.1
  logits_via_embedding: bool = False
  float32_attention_logits: bool = False
  scan_layers: bool = False
  remat_policy: str = 'none'
  param_scan_axis: int = 1
  like_attends_to_like: bool = False
  relative_bias_init_scale: float = 1.0


def check_config(config: T5Config) -> None:
  """Raises ValueError where a value of the configuration can not work."""
  if config.remat_policy not in REMAT_POLICIES:
    raise ValueError(
        f'T5Config.remat_policy is {config.remat_policy!r}, expected one of '
        f"{REMAT_POLICIES}: 'none' is fastest, 'full' takes the least memory"
    )
  try:
    jnp.dtype(config.dtype)
  except TypeError:
    raise ValueError(
        f'T5Config.dtype is {config.dtype!r}, expected the type of the '
        "activations: set network.T5Config.dtype to 'float32' or 'bfloat16'"
    ) from None
  if not 0.0 <= config.dropout_rate < 1.0:
    raise ValueError(
        f'T5Config.dropout_rate is {config.dropout_rate!r}, expected a '
        'probability to drop in [0, 1): set DROPOUT_RATE, 0.0 for none'
    )
  if config.relative_bias_init_scale < 0.0:
    raise ValueError(
        'T5Config.relative_bias_init_scale is '
        f'{config.relative_bias_init_scale!r}, expected a factor of at least '
        '0: leave it at 1.0 for the biases of T5'
    )
  for name in ('vocab_size', 'emb_dim', 'num_heads', 'head_dim', 'mlp_dim'):
    size = getattr(config, name)
    if size < 1:
      raise ValueError(
          f'T5Config.{name} is {size!r}, expected at least 1: correct it in '
          'the model gin file'
      )
  for activation in config.mlp_activations:
    layers.make_activation(activation)
