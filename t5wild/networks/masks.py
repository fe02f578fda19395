# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Attention masks: which query may look at which key.

A mask is boolean, `[batch, 1, queries, keys]`, True where the query may look;
the axis of size 1 stands for all heads alike.
"""

from collections.abc import Callable

from jax import Array
import jax.numpy as jnp
from jaxtyping import Bool, Int, Num, Shaped

Mask = Bool[Array, '#batch #heads #queries #keys']
IsLocal = Bool[Array, ''] | bool  # An array where layers are scanned.
CrossMask = Bool[Array, '#batch #heads #length #encoded_length']


def make_attention_mask(
    query_input: Shaped[Array, 'batch queries'],
    key_input: Shaped[Array, 'batch keys'],
    pairwise_fn: Callable = jnp.logical_and,
) -> Bool[Array, 'batch 1 queries keys']:
  """Compares every query with every key.

  Args:
    query_input: one value per query position (a padding flag, a segment id).
    key_input: one value per key position.
    pairwise_fn: tells from a query's and a key's value whether to look.
  """
  pairs = pairwise_fn(query_input[:, None, :, None], key_input[:, None, None])
  return pairs.astype(jnp.bool_)


def make_causal_mask(
    x: Shaped[Array, 'batch length'],
) -> Bool[Array, 'batch 1 length length']:
  """Lets each position look at itself and at what came before it."""
  index = jnp.arange(x.shape[-1], dtype=jnp.int32)
  causal = index[:, None] >= index[None, :]
  return jnp.broadcast_to(causal, (x.shape[0], 1, *causal.shape))


def make_window_mask(
    query_positions: Int[Array, '#batch queries'],
    key_positions: Int[Array, ' keys'],
    *,
    window: int,
    is_local: IsLocal,
) -> Bool[Array, '#batch 1 queries keys']:
  """Lets a local layer look at most `window - 1` positions away.

  Args:
    query_positions: positions of the queries.
    key_positions: positions of the keys.
    window: how many positions a query sees to one side, itself included.
    is_local: False = the layer looks as far as it likes.
  """
  distance = query_positions[:, None, :, None] - key_positions
  return jnp.logical_or(jnp.abs(distance) < window, jnp.logical_not(is_local))


def combine_masks(*masks: Mask | None) -> Mask | None:
  """Allows what every mask allows; None where there is no mask at all."""
  combined = None
  for mask in masks:
    if mask is None:
      continue
    combined = mask if combined is None else jnp.logical_and(combined, mask)
  return combined


def make_decoder_mask(
    decoder_target_tokens: Num[Array, 'batch length'],
    *,
    decoder_causal_attention: Num[Array, 'batch length'] | None = None,
    decoder_segment_ids: Num[Array, 'batch length'] | None = None,
) -> Bool[Array, 'batch 1 length length']:
  """Makes the mask of a decoder's self-attention.

  Which position (a row) looks at which (a column), for the prefix a b and the
  targets c d, read as 0 a b c to predict a b c d. With decoder_causal_attention
  = 1 1 1 0 the prefix, and the start before it, sees itself both ways:

        causal       prefix
        0 a b c      0 a b c
    0   x . . .      x x x .
    a   x x . .      x x x .
    b   x x x .      x x x .
    c   x x x x      x x x x

  Args:
    decoder_target_tokens: the targets; 0 is padding, which sees and is seen by
      nobody.
    decoder_causal_attention: 1 on the prefix of a prefix language model, whose
      positions see each other in both directions; None = causal everywhere.
    decoder_segment_ids: number of the packed example each position belongs
      to, which see nothing of each other; None = not packed.
  """
  sight = make_causal_mask(decoder_target_tokens)
  if decoder_causal_attention is not None:
    prefix = decoder_causal_attention > 0
    sight = jnp.logical_or(sight, make_attention_mask(prefix, prefix))
  real = decoder_target_tokens > 0
  same_example = None
  if decoder_segment_ids is not None:
    same_example = make_attention_mask(
        decoder_segment_ids, decoder_segment_ids, jnp.equal
    )
  return combine_masks(sight, make_attention_mask(real, real), same_example)
