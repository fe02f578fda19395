# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Multi-head attention, head-major, with a cache for decoding step by step."""

import functools

from flax import linen as nn
from flax.linen import partitioning
import jax
from jax import Array
from jax import lax
import jax.numpy as jnp
from jaxtyping import Float

from t5wild.networks import layers
from t5wild.networks import masks

_FORBIDDEN = -1e10  # added to the logit of a pair that the mask forbids
_HEAD_MAJOR = ('batch', 'heads', 'length', 'kv')


@functools.partial(jax.custom_vjp, nondiff_argnames=('float32_logits',))
def dot_product_attention(
    query: Float[Array, 'batch heads queries kv'],
    key: Float[Array, 'batch heads keys kv'],
    value: Float[Array, 'batch heads keys kv'],
    mask: masks.Mask | None = None,
    bias: Float[Array, '#batch heads queries keys'] | None = None,
    float32_logits: bool = False,
) -> Float[Array, 'batch heads queries kv']:
  """Averages the values by the softmax of the products of query and key.

  Vaswani et al. 2017 (arXiv:1706.03762) without the 1/sqrt(kv), which T5 puts
  into the query's initial kernel. The softmax's denominator is divided out
  after the value product, where there are `kv` numbers per query instead of
  `keys`.

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
  """
  return _attend(query, key, value, mask, bias, float32_logits)[0]


def _batched_dot(x, y, x_axis, y_axis, dtype=None):
  dimensions = (((x_axis,), (y_axis,)), ((0, 1), (0, 1)))
  return lax.dot_general(x, y, dimensions, preferred_element_type=dtype)


def _attend(query, key, value, mask, bias, float32_logits):
  """Returns the average and what the gradient needs."""
  logits_dtype = jnp.float32 if float32_logits else query.dtype
  logits = _batched_dot(query, key, 3, 3, logits_dtype).astype(jnp.float32)
  if bias is not None:
    logits = logits + bias.astype(jnp.float32)
  if mask is not None:
    logits = logits + jnp.where(mask, 0.0, _FORBIDDEN)
  weights = jnp.exp(logits - jnp.max(logits, axis=-1, keepdims=True))
  total = jnp.sum(weights, axis=-1, keepdims=True)
  weights = weights.astype(value.dtype)
  averaged = _batched_dot(weights, value, 3, 2)
  averaged = (averaged / total).astype(value.dtype)
  like_bias = None if bias is None else jnp.zeros((0, *bias.shape), bias.dtype)
  return averaged, (query, key, value, weights, total, averaged, like_bias)


def _attend_backward(float32_logits, residuals, gradient):
  """Gradient of `dot_product_attention`.

  With weights w, total t = sum(w) and average o = w v / t, the gradient of a
  logit is w (g v - g o) / t for the average's gradient g.
  """
  del float32_logits
  query, key, value, weights, total, averaged, like_bias = residuals
  scaled = gradient.astype(jnp.float32) / total
  shift = jnp.sum(scaled * averaged, axis=-1, keepdims=True)
  scaled = scaled.astype(value.dtype)
  # These two come out as [batch, heads, kv, keys]: on a CPU a product over
  # the queries is nearly twice as fast that way round.
  value_gradient = _batched_dot(scaled, weights, 2, 2)
  weights_gradient = _batched_dot(scaled, value, 3, 3).astype(jnp.float32)
  logits_gradient = weights * (weights_gradient - shift)
  bias_gradient = None
  if like_bias is not None:
    bias_gradient = _sum_to(logits_gradient, like_bias)
  logits_gradient = logits_gradient.astype(query.dtype)
  query_gradient = _batched_dot(logits_gradient, key, 3, 2)
  key_gradient = _batched_dot(query, logits_gradient, 2, 2)
  return (
      query_gradient,
      jnp.swapaxes(key_gradient, 2, 3),
      jnp.swapaxes(value_gradient, 2, 3),
      None,
      bias_gradient,
  )


def _sum_to(x, like):
  """Sums the axes that broadcasting stretched; `like` is [0, *shape]."""
  shape = like.shape[1:]
  axes = tuple(i for i, n in enumerate(shape) if n == 1 and x.shape[i] > 1)
  return jnp.sum(x, axis=axes, keepdims=True).astype(like.dtype)


dot_product_attention.defvjp(_attend, _attend_backward)


def _with_key(
    initializer: layers.Initializer, key: jax.Array
) -> layers.Initializer:
  """An initialiser that draws by this key whatever key it is called with."""
  return lambda _, *args: initializer(key, *args)


class MultiHeadDotProductAttention(nn.Module):
  """Multi-head attention with T5X's parameters, keys and cache.

  Attributes:
    num_heads: number of heads.
    head_dim: size of a head.
    dtype: type of the computation.
    dropout_rate: dropout of attention weights, shared by all queries.
    float32_logits: accumulate logits in float32 whatever `dtype` is.
    joined_kernels: True = kernels are matrices `(embed, joined_kv)` as in
      T5X's plain network; False = `(embed, heads, kv)` as in its scanned one.
    like_to_like: draw one initial kernel for queries (scaled) and keys, so that
      attention begins where query and key are made of the same.
  """

  num_heads: int
  head_dim: int
  dtype: layers.DType = jnp.float32
  dropout_rate: float = 0.0
  float32_logits: bool = False
  joined_kernels: bool = True
  like_to_like: bool = False
  kernel_init: layers.Initializer = nn.initializers.variance_scaling(
      1.0, 'fan_in', 'normal'
  )

  @nn.compact
  def __call__(
      self,
      inputs_q: Float[Array, 'batch queries embed'],
      inputs_kv: Float[Array, 'batch keys embed'],
      mask: masks.Mask | None = None,
      bias: Float[Array, '1 heads bias_queries bias_keys'] | None = None,
      *,
      decode: bool = False,
      deterministic: bool = False,
      dropout_rows: layers.DropoutRows = None,
  ) -> Float[Array, 'batch queries embed']:
    """Lets every position of `inputs_q` look at `inputs_kv`.

    Args:
      inputs_q: what looks.
      inputs_kv: what is looked at.
      mask: which pairs may look; None = all.
      bias: added to the logits. While decoding: of all positions, of which the
        present one's row is taken.
      decode: keep keys and values in the collection `cache`. The first call,
        with inputs of the full length, makes an empty cache; each later call
        has one position, which looks at those cached before it and at itself.
      deterministic: no dropout.
      dropout_rows: see `layers.dropout_scale`.
    """
    key_init = self.kernel_init
    if self.like_to_like and self.is_initializing():
      key_init = _with_key(key_init, self.make_rng('params'))
    query = self._project(
        'query', inputs_q, kernel_init=self._query_init(key_init)
    )
    key = self._project('key', inputs_kv, kernel_init=key_init)
    value = self._project('value', inputs_kv, kernel_init=self.kernel_init)
    if decode:
      key, value, mask, bias = self._cached(query, key, value, mask, bias)
    if not deterministic and self.dropout_rate > 0.0:
      value = value * self._value_scale(value, dropout_rows)
    x = dot_product_attention(
        query, key, value, mask, bias, self.float32_logits
    )
    x = jnp.swapaxes(x, 1, 2)  # [batch, queries, heads, kv]
    return layers.DenseGeneral(
        inputs_q.shape[-1],
        kernel_axes=(*self._head_axes(), 'embed'),
        num_input_axes=2,
        dtype=self.dtype,
        kernel_init=self.kernel_init,
        name='out',
    )(x)

  def _head_axes(self) -> tuple[str, ...]:
    return ('joined_kv',) if self.joined_kernels else ('heads', 'kv')

  def _project(
      self,
      name: str,
      inputs: Float[Array, 'batch length embed'],
      *,
      kernel_init: layers.Initializer,
  ) -> Float[Array, 'batch heads length kv']:
    x = layers.DenseGeneral(
        (self.num_heads, self.head_dim),
        kernel_axes=('embed', *self._head_axes()),
        dtype=self.dtype,
        kernel_init=kernel_init,
        name=name,
    )(inputs)
    x = jnp.swapaxes(x, 1, 2)
    return partitioning.with_sharding_constraint(x, _HEAD_MAJOR)

  def _query_init(self, kernel_init: layers.Initializer) -> layers.Initializer:
    # T5 has its 1/sqrt(kv) here, once, rather than in every forward pass.
    scale = jnp.sqrt(self.head_dim).astype(self.dtype)
    return lambda *args: kernel_init(*args) / scale

  def _value_scale(
      self,
      value: Float[Array, 'batch heads keys kv'],
      dropout_rows: layers.DropoutRows,
  ) -> Float[Array, 'batch heads keys 1']:
    batch, heads, keys, _ = value.shape
    # Drawn as T5X draws it for its weights, [batch, heads, queries=1, keys].
    scale = layers.dropout_scale(
        self.make_rng('dropout'),
        (batch, heads, 1, keys),
        rate=self.dropout_rate,
        rows=dropout_rows,
        dtype=value.dtype,
    )
    return scale.reshape(batch, heads, keys, 1)

  def _cached(self, query, key, value, mask, bias):
    """Adds one position to the cache; returns what that position looks at."""
    is_initialized = self.has_variable('cache', 'cached_key')
    cached_key = self._cache_variable('cached_key', key)
    cached_value = self._cache_variable('cached_value', value)
    cache_index = self.variable(
        'cache', 'cache_index', lambda: jnp.zeros((), jnp.int32)
    )
    if not is_initialized:
      return key, value, mask, bias
    batch, heads, kv, length = cached_key.value.shape
    if query.shape != (batch, heads, 1, kv):
      raise ValueError(
          f'the query of a decoding step has shape {query.shape}, expected '
          f'{(batch, heads, 1, kv)} = [batch, heads, 1, kv] of the cache: give '
          'one position at a time, and the batch size the cache was made with'
      )
    index = cache_index.value
    start = (0, 0, 0, index)
    cached_key.value = lax.dynamic_update_slice(
        cached_key.value, jnp.swapaxes(key, 2, 3), start
    )
    cached_value.value = lax.dynamic_update_slice(
        cached_value.value, jnp.swapaxes(value, 2, 3), start
    )
    cache_index.value = index + 1
    seen = (jnp.arange(length) <= index)[None, None, None]  # [1, 1, 1, keys]
    if bias is not None:
      bias = lax.dynamic_slice_in_dim(bias, index, 1, axis=2)
    return (
        jnp.swapaxes(cached_key.value, 2, 3),
        jnp.swapaxes(cached_value.value, 2, 3),
        masks.combine_masks(mask, seen),
        bias,
    )

  def _cache_variable(self, name, x):
    # T5X's layout [batch, heads, kv, length]: decoders rely on batch first.
    batch, heads, length, kv = x.shape
    shape = (batch, heads, kv, length)
    return self.variable('cache', name, jnp.zeros, shape, x.dtype)
