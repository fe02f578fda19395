# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Attention by NVIDIA's fused kernels, on one device.

cuDNN adds a bias and gives its gradient, knows causality and lengths, but of
packed examples only that a bias may forbid pairs, which beside T5's bias of
`[1, heads, queries, keys]` would make one of every row. So packed examples are
told apart by features of their own: queries and keys get the number of their
example as signs, whose product is largest, and the same, where numbers agree.
What all allowed keys have in common falls out of the softmax.
"""

import jax
from jax import Array
from jax import nn
import jax.numpy as jnp
from jaxtyping import Float, Int

from t5wild.networks import sight as sight_lib

# One sign that differs makes a logit smaller by twice the square of this: so
# much that its weight is 0, and so little that the sum of 16 squares leaves
# float32 an error of 0.0003, a tenth of bfloat16's in a logit of 1.
_SIGN = 16.0
# bfloat16 has it; twice that is still finite.
_FORBIDDEN = -(2.0**40)

_IMPLEMENTATION = 'cudnn'  # tests have the formula do its work


def attend(
    query: Float[Array, 'batch heads queries kv'],
    key: Float[Array, 'batch kv_heads keys kv'],
    value: Float[Array, 'batch kv_heads keys kv'],
    *,
    sight: sight_lib.MaskOrSight | None,
    bias: Float[Array, '#batch #heads queries keys'] | None,
    first_query: Int[Array, ''] | None = None,
    features: int = 0,
) -> Float[Array, 'batch heads queries kv']:
  """Averages the values as `dot_product.dot_product_attention` does.

  Args:
    query: what looks.
    key: what is looked at.
    value: what is averaged.
    sight: which query sees which key; without a prefix.
    bias: added to the logits.
    first_query: where the queries stand among the keys; None = at the same
      positions, from the first.
    features: by how many signs packed examples are told apart; 0 = by an array
      of pairs.
  """
  limits = {}
  if sight_lib.is_array(sight):
    bias = _sum_of(bias, _forbid(sight, query.dtype))
  elif sight is not None and sight.is_packed and not features:
    pairs = sight.replace(is_causal=False, window=None).pairs()
    bias = _sum_of(bias, _forbid(pairs, query.dtype))
  elif sight is not None and sight.is_packed:
    query = _with_features(query, _signs(sight.queries, features))
    key = _with_features(key, _signs(sight.keys, features))
  elif sight is not None and not sight.is_causal:
    # A row of nothing but padding has one key, so that none is divided by 0.
    limits['key_value_seq_lengths'] = jnp.maximum(
        jnp.sum(sight.keys > 0, axis=-1, dtype=jnp.int32), 1
    )
  if isinstance(sight, sight_lib.Sight) and sight.is_causal:
    if first_query is None:
      limits['is_causal'] = True
      if sight.window is not None:
        limits['local_window_size'] = (sight.window - 1, 0)
    else:
      behind = _behind(query, key, first_query, sight.window)
      bias = _sum_of(bias, _forbid(behind, query.dtype))
  if bias is not None:  # a mask may have one row for all queries
    lengths = (query.shape[2], key.shape[2])
    bias = jnp.broadcast_to(bias, (*bias.shape[:2], *lengths))
  return _call(query, key, value, bias=bias, **limits)


def _call(query, key, value, **limits):
  """Calls the kernel, which has positions before heads."""
  size = value.shape[-1]
  value = jnp.pad(value, ((0, 0),) * 3 + ((0, query.shape[-1] - size),))
  averaged = nn.dot_product_attention(
      *(jnp.swapaxes(x, 1, 2) for x in (query, key, value)),
      scale=1.0,
      implementation=_IMPLEMENTATION,
      **limits,
  )
  return jnp.swapaxes(averaged, 1, 2)[..., :size]


def _signs(
    numbers: Int[Array, 'batch length'], features: int
) -> Float[Array, 'batch length features']:
  """The bits of each number as plus or minus `_SIGN`."""
  bits = (numbers[..., None] >> jnp.arange(features)) & 1
  return jax.lax.stop_gradient(jnp.where(bits == 1, _SIGN, -_SIGN))


def _with_features(x, signs):
  batch, heads, length, _ = x.shape
  signs = jnp.broadcast_to(
      signs[:, None].astype(x.dtype),
      (batch, heads, length, signs.shape[-1]),
  )
  return jnp.concatenate([x, signs], axis=-1)


def _behind(query, key, first_query, window):
  """Pairs that causality, and the window, allow: [1, 1, queries, keys]."""
  positions = first_query + jnp.arange(query.shape[2])
  distance = positions[:, None] - jnp.arange(key.shape[2])
  allowed = distance >= 0
  if window is not None:
    allowed &= distance < window
  return allowed[None, None]


def _forbid(pairs, dtype):
  return jnp.where(pairs, 0.0, _FORBIDDEN).astype(dtype)


def _sum_of(bias, more):
  """Their sum, in the type of the queries."""
  return more if bias is None else bias.astype(more.dtype) + more
