# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Dot-product attention and its gradient, heads before positions."""

import functools

import jax
from jax import Array
from jax import lax
import jax.numpy as jnp
from jaxtyping import Float

from t5wild.networks import masks

_FORBIDDEN = -1e10  # added to the logit of a pair that the mask forbids


@functools.partial(
    jax.custom_vjp, nondiff_argnames=('float32_logits', 'softcap')
)
def dot_product_attention(
    query: Float[Array, 'batch heads queries kv'],
    key: Float[Array, 'batch kv_heads keys kv'],
    value: Float[Array, 'batch kv_heads keys kv'],
    mask: masks.Mask | None = None,
    bias: Float[Array, '#batch heads queries keys'] | None = None,
    float32_logits: bool = False,
    softcap: float | None = None,
) -> Float[Array, 'batch heads queries kv']:
  """Averages the values by the softmax of the products of query and key.

  Vaswani et al. 2017 (arXiv:1706.03762) without the 1/sqrt(kv), which T5 puts
  into the query's initial kernel. The softmax's denominator is divided out
  after the value product, where there are `kv` numbers per query instead of
  `keys`.

  With fewer heads of keys and values than of queries, `heads / kv_heads`
  neighbouring heads of queries share one (Ainslie et al. 2023,
  arXiv:2305.13245); nothing is repeated in memory.

  Args:
    query: what looks.
    key: what is looked at.
    value: what is averaged; dropout of attention weights, shared by all
      queries, is dropout of whole values and is done by the caller.
    mask: which pairs may look; None = all. Where a query may look at nothing
      the average is over all keys alike.
    bias: added to the logits before the softmax.
    float32_logits: accumulate the logits in float32 whatever the type of the
      query; the softmax is in float32 in any case.
    softcap: keeps each product in (-softcap, softcap), as softcap x
      tanh(product / softcap), before the bias; None = as it is.
  """
  return _attend(query, key, value, mask, bias, float32_logits, softcap)[0]


def _batched_dot(x, y, x_axis, y_axis, dtype=None):
  dimensions = (((x_axis,), (y_axis,)), ((0, 1), (0, 1)))
  return lax.dot_general(x, y, dimensions, preferred_element_type=dtype)


def _group(x, kv_heads):
  """Lays the heads that share keys one after the other, as more queries."""
  batch, _, _, last = x.shape
  return x.reshape(batch, kv_heads, -1, last)


def _products(query, key, float32_logits):
  """Products of each query and key, float32 [batch, heads, queries, keys]."""
  batch, heads, queries, _ = query.shape
  _, kv_heads, keys, _ = key.shape
  dtype = jnp.float32 if float32_logits else query.dtype
  products = _batched_dot(_group(query, kv_heads), key, 3, 3, dtype)
  return products.reshape(batch, heads, queries, keys).astype(jnp.float32)


def _attend(query, key, value, mask, bias, float32_logits, softcap):
  """Returns the average and what the gradient needs."""
  logits = _products(query, key, float32_logits)
  if softcap is not None:
    logits = softcap * jnp.tanh(logits / softcap)
  if bias is not None:
    logits = logits + bias.astype(jnp.float32)
  if mask is not None:
    logits = logits + jnp.where(mask, 0.0, _FORBIDDEN)
  weights = jnp.exp(logits - jnp.max(logits, axis=-1, keepdims=True))
  total = jnp.sum(weights, axis=-1, keepdims=True)
  weights = weights.astype(value.dtype)
  averaged = _batched_dot(_group(weights, value.shape[1]), value, 3, 2)
  averaged = (averaged.reshape(query.shape) / total).astype(value.dtype)
  like_bias = None if bias is None else jnp.zeros((0, *bias.shape), bias.dtype)
  return averaged, (query, key, value, weights, total, averaged, like_bias)


def _attend_backward(float32_logits, softcap, residuals, gradient):
  """Gradient of `dot_product_attention`.

  With weights w, total t = sum(w) and average o = w v / t, the gradient of a
  logit is w (g v - g o) / t for the average's gradient g.
  """
  query, key, value, weights, total, averaged, like_bias = residuals
  kv_heads = key.shape[1]
  scaled = gradient.astype(jnp.float32) / total
  shift = jnp.sum(scaled * averaged, axis=-1, keepdims=True)
  scaled = _group(scaled.astype(value.dtype), kv_heads)
  value_gradient = _sum_over_queries(_group(weights, kv_heads), scaled)
  weights_gradient = _batched_dot(scaled, value, 3, 3).astype(jnp.float32)
  logits_gradient = weights * (
      weights_gradient.reshape(weights.shape) - shift
  )
  bias_gradient = None
  if like_bias is not None:
    bias_gradient = _sum_to(logits_gradient, like_bias)
  if softcap is not None:
    # Computed anew: kept, the products would take the weights' memory again.
    capped = jnp.tanh(_products(query, key, float32_logits) / softcap)
    logits_gradient = logits_gradient * (1.0 - capped**2)
  logits_gradient = _group(logits_gradient.astype(query.dtype), kv_heads)
  query_gradient = _batched_dot(logits_gradient, key, 3, 2)
  key_gradient = _sum_over_queries(logits_gradient, _group(query, kv_heads))
  return (
      query_gradient.reshape(query.shape),
      key_gradient,
      value_gradient,
      None,
      bias_gradient,
  )


def _sum_over_queries(by_key, by_kv):
  """Multiplies [.., queries, keys] and [.., queries, kv] to [.., keys, kv]."""

  def other_way_round(by_key, by_kv):
    # The barrier keeps XLA from swapping the sides back.
    product = lax.optimization_barrier(_batched_dot(by_kv, by_key, 2, 2))
    return jnp.swapaxes(product, 2, 3)

  # A CPU is nearly twice as fast where the narrow side comes first.
  return lax.platform_dependent(
      by_key,
      by_kv,
      cpu=other_way_round,
      default=lambda x, y: _batched_dot(x, y, 2, 2),
  )


def _sum_to(x, like):
  """Sums the axes that broadcasting stretched; `like` is [0, *shape]."""
  shape = like.shape[1:]
  axes = tuple(i for i, n in enumerate(shape) if n == 1 and x.shape[i] > 1)
  return jnp.sum(x, axis=axes, keepdims=True).astype(like.dtype)


dot_product_attention.defvjp(_attend, _attend_backward)
