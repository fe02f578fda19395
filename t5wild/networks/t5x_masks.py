# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's masks and attention function, for networks of users.

T5X's masks are numbers in the type that the caller asks for, 1 where a query
may look, and its functions are called by position. Our networks have boolean
ones (`masks`), and take these as well.
"""

from collections.abc import Callable
import functools
import operator
from typing import Any

from jax import Array
import jax.numpy as jnp
from jaxtyping import Float, Num, Shaped

from t5wild.networks import dot_product
from t5wild.networks import layers
from t5wild.networks import masks

DType = Any


def make_attention_mask(  # T5X's signature
    query_input: Shaped[Array, '*batch queries'],
    key_input: Shaped[Array, '*batch keys'],
    pairwise_fn: Callable = jnp.multiply,
    extra_batch_dims: int = 0,
    dtype: DType = jnp.float32,
) -> Num[Array, '... 1 queries keys']:
  """Compares every query with every key.

  Args:
    query_input: one value per query position (a padding flag, a segment id).
    key_input: one value per key position.
    pairwise_fn: of a query's and a key's value.
    extra_batch_dims: axes of size 1 to put in front.
    dtype: type of the mask.
  """
  pairs = pairwise_fn(query_input[..., :, None], key_input[..., None, :])
  pairs = jnp.expand_dims(pairs, -3)
  pairs = jnp.expand_dims(pairs, tuple(range(extra_batch_dims)))
  return pairs.astype(dtype)


def make_causal_mask(
    x: Shaped[Array, '*batch length'],
    extra_batch_dims: int = 0,
    dtype: DType = jnp.float32,
) -> Num[Array, '... 1 length length']:
  """Lets each position look at itself and at what came before it."""
  index = jnp.broadcast_to(jnp.arange(x.shape[-1]), x.shape)
  return make_attention_mask(
      index, index, jnp.greater_equal, extra_batch_dims, dtype
  )


def combine_masks(
    *masks: Shaped[Array, '...'] | None, dtype: DType = jnp.float32
) -> Num[Array, '...'] | None:
  """Allows what every mask allows; None where there is no mask at all."""
  given = _of_one_rank('masks', masks)
  if not given:
    return None
  return functools.reduce(jnp.logical_and, given).astype(dtype)


def combine_biases(
    *masks: Num[Array, '...'] | None,
) -> Num[Array, '...'] | None:
  """Adds all biases; None where there is no bias at all."""
  given = _of_one_rank('biases', masks)
  return functools.reduce(operator.add, given) if given else None


def make_decoder_mask(  # T5X's signature
    decoder_target_tokens: Num[Array, '*batch length'],
    dtype: DType,
    decoder_causal_attention: Num[Array, '*batch length'] | None = None,
    decoder_segment_ids: Num[Array, '*batch length'] | None = None,
) -> Num[Array, '*batch 1 length length']:
  """Makes a decoder's mask; `masks.make_decoder_mask` says of what."""
  return masks.make_decoder_mask(
      decoder_target_tokens,
      decoder_causal_attention=decoder_causal_attention,
      decoder_segment_ids=decoder_segment_ids,
  ).astype(dtype)


def dot_product_attention(  # noqa: PLR0913 - T5X's signature
    query: Float[Array, 'batch queries heads kv'],
    key: Float[Array, 'batch keys heads kv'],
    value: Float[Array, 'batch keys heads kv_of_value'],
    bias: Float[Array, '...'] | None = None,
    dropout_rng: layers.DropoutKey | None = None,
    dropout_rate: float = 0.0,
    deterministic: bool = False,
    dtype: DType = jnp.float32,
    float32_logits: bool = False,
) -> Float[Array, 'batch queries heads kv_of_value']:
  """Averages the values by the softmax of the products of query and key.

  Args:
    query: what looks; heads come after positions here.
    key: what is looked at.
    value: what is averaged.
    bias: added to the logits, masks among it; broadcast to `[batch, heads,
      queries, keys]`.
    dropout_rng: key of the dropout of attention weights, shared by all queries.
    dropout_rate: probability to drop one.
    deterministic: no dropout.
    dtype: type of the weights.
    float32_logits: accumulate the logits in float32.
  """
  query, key, value = (
      jnp.swapaxes(x, 1, 2) for x in (query, key, jnp.asarray(value, dtype))
  )
  kv, kv_of_value = query.shape[-1], value.shape[-1]
  if not deterministic and dropout_rate > 0.0:
    batch, heads, keys, _ = value.shape
    scale = layers.dropout_scale(
        dropout_rng, (batch, heads, 1, keys), rate=dropout_rate, dtype=dtype
    )
    value = value * jnp.swapaxes(scale, 2, 3)
  if bias is not None:
    rank = jnp.ndim(bias)
    bias = jnp.expand_dims(bias, tuple(range(query.ndim - rank)))
  # Ours has one size for all; features that are 0 add nothing to a product.
  query, key = (_pad_last(x, kv_of_value) for x in (query, key))
  averaged = dot_product.dot_product_attention(
      query, key, _pad_last(value, kv), None, bias, float32_logits, None
  )
  return jnp.swapaxes(averaged, 1, 2)[..., :kv_of_value]


def _pad_last(x: Float[Array, '...'], size: int) -> Float[Array, '...']:
  missing = max(0, size - x.shape[-1])
  return jnp.pad(x, ((0, 0),) * (x.ndim - 1) + ((0, missing),))


def _of_one_rank(what: str, arrays: tuple) -> list[Array]:
  given = [array for array in arrays if array is not None]
  ranks = tuple(array.ndim for array in given)
  if len(set(ranks)) > 1:
    raise ValueError(
        f'{what} to combine have ranks {ranks}, expected one rank: give each '
        'the axes [batch, heads, queries, keys], of size 1 where it is the '
        'same for all'
    )
  return given
