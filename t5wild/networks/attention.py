# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Multi-head attention, head-major, with a cache for decoding step by step."""

from flax import linen as nn
from flax.linen import partitioning
import jax
from jax import Array
from jax import lax
import jax.numpy as jnp
from jaxtyping import Float, Int

from t5wild.networks import attention_dispatch
from t5wild.networks import layers
from t5wild.networks import masks
from t5wild.networks import norms
from t5wild.networks import rotary as rotary_lib
from t5wild.networks import sight as sight_lib

_HEAD_MAJOR = ('batch', 'heads', 'length', 'kv')

PrefillLengths = Int[Array, ' batch'] | None


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
    num_kv_heads: heads of keys and values, each for as many neighbouring heads
      of queries; None = one for each.
    dtype: type of the computation.
    dropout_rate: dropout of attention weights, shared by all queries.
    implementation: which kernel, of `attention_choice.IMPLEMENTATIONS`.
    float32_logits: accumulate logits in float32 whatever `dtype` is.
    softcap: keeps logits in (-softcap, softcap); None = as they are.
    rotary: rotary positions; None = positions are told otherwise.
    is_local: this layer looks no farther than `local_window`, and has the
      positions of `local_rotary`; an array where layers are scanned.
    local_rotary: rotary positions of a local layer; None = the same.
    local_window: how many positions a local layer sees to one side, itself
      included; None = all.
    use_input_bias: add biases to queries, keys and values.
    use_output_bias: add a bias to the output.
    scale_queries: multiply queries by 1/sqrt(head_dim) in the forward pass
      instead of once, in their initial kernel.
    query_pre_attn_scalar: what takes the place of head_dim in that; None = it.
    scale_attn_logits: multiply them so in both places.
    normalize_heads: RMS norm of each head's query and key.
    norm_from_one: the parameter of that norm is added to 1.
    norm_epsilon: added to the mean square in that norm.
    joined_kernels: True = kernels are matrices `(embed, joined_kv)` as in
      T5X's plain network; False = `(embed, heads, kv)` as in its scanned one.
    like_to_like: draw one initial kernel for queries (scaled) and keys, so that
      attention begins where query and key are made of the same.
    quantization: see `layers.DenseGeneral`.
    keep_encoded: a call that may change the collection `encoded` puts the keys
      and values of `inputs_kv` there; later calls that are given it take them
      from there, and read nothing of `inputs_kv` but its shape.
  """

  num_heads: int
  head_dim: int
  num_kv_heads: int | None = None
  dtype: layers.DType = jnp.float32
  dropout_rate: float = 0.0
  implementation: str = 'xla'
  float32_logits: bool = False
  softcap: float | None = None
  rotary: rotary_lib.Rotary | None = None
  is_local: masks.IsLocal = False
  local_rotary: rotary_lib.Rotary | None = None
  local_window: int | None = None
  use_input_bias: bool = False
  use_output_bias: bool = False
  scale_queries: bool = False
  query_pre_attn_scalar: float | None = None
  scale_attn_logits: bool = False
  normalize_heads: bool = False
  norm_from_one: bool = False
  norm_epsilon: float = 1e-6
  joined_kernels: bool = True
  like_to_like: bool = False
  quantization: layers.Quantization = None
  keep_encoded: bool = False
  kernel_init: layers.Initializer = nn.initializers.variance_scaling(
      1.0, 'fan_in', 'normal'
  )

  @nn.compact
  def __call__(
      self,
      inputs_q: Float[Array, 'batch queries embed'],
      inputs_kv: Float[Array, 'batch keys embed'],
      mask: sight_lib.MaskOrSight | None = None,
      bias: Float[Array, '1 heads bias_queries bias_keys'] | None = None,
      *,
      decode: bool = False,
      prefill_lengths: PrefillLengths = None,
      deterministic: bool = False,
      dropout_rows: layers.DropoutRows = None,
  ) -> Float[Array, 'batch queries embed']:
    """Lets every position of `inputs_q` look at `inputs_kv`.

    Args:
      inputs_q: what looks.
      inputs_kv: what is looked at.
      mask: which pairs may look, or a sight; None = all.
      bias: added to the logits. While decoding: of all positions, of which the
        present one's row is taken.
      decode: keep keys and values in the collection `cache`. The first call,
        with inputs of the full length, makes an empty cache; each later call
        has one position, which looks at those cached before it and at itself.
      prefill_lengths: also put the keys and values of all positions into the
        cache, in which this many of each row then count: the next decoding
        step is for the position after them. Not together with `decode`.
      deterministic: no dropout.
      dropout_rows: see `layers.dropout_scale`.
    """
    if self.keep_encoded and self.has_variable('encoded', 'key'):
      query = self._queries(inputs_q, self.kernel_init)
      key = self.get_variable('encoded', 'key')
      value = self.get_variable('encoded', 'value')
    else:
      query, key, value = self._queries_keys_values(inputs_q, inputs_kv)
      if self.keep_encoded and self.is_mutable_collection('encoded'):
        self.put_variable('encoded', 'key', key)
        self.put_variable('encoded', 'value', value)
    is_step = decode and self.has_variable('cache', 'cached_key')
    cache = None
    if decode or prefill_lengths is not None:
      cache = self._cache_variables(key)
    at = cache[2].value if is_step else None
    if self.rotary is not None:
      query, key = self._rotate(query, at), self._rotate(key, at)
    mask = self._within_window(mask, cache, query, at)
    if is_step:
      mask = sight_lib.as_mask(mask)
      mask, bias = _row_of_step(cache, query, mask, bias)
      key, value = _append(cache, key, value)
    elif prefill_lengths is not None:
      _fill(cache, key, value, prefill_lengths)
    if not deterministic and self.dropout_rate > 0.0:
      value = value * self._value_scale(value, dropout_rows)
    x = attention_dispatch.attend(
        query, key, value, mask, bias,
        # What has keys kept from step to step is asked in steps.
        options=self._options(decode or self.keep_encoded),
    )
    x = jnp.swapaxes(x, 1, 2)  # [batch, queries, heads, kv]
    return layers.DenseGeneral(
        inputs_q.shape[-1],
        kernel_axes=(*self._head_axes(), 'embed'),
        num_input_axes=2,
        use_bias=self.use_output_bias,
        dtype=self.dtype,
        kernel_init=self.kernel_init,
        quantization=self.quantization,
        name='out',
    )(x)

  def _options(self, is_step: bool) -> attention_dispatch.Options:
    return attention_dispatch.Options(
        implementation=self.implementation,
        path=self.path,
        is_step=is_step,
        window_differs=self.local_window is not None
        and not isinstance(self.is_local, bool),
        float32_logits=self.float32_logits,
        softcap=self.softcap,
    )

  def _head_axes(self) -> tuple[str, ...]:
    return ('joined_kv',) if self.joined_kernels else ('heads', 'kv')

  def _queries_keys_values(self, inputs_q, inputs_kv):
    key_init = self.kernel_init
    if self.like_to_like and self.is_initializing():
      key_init = _with_key(key_init, self.make_rng('params'))
    query = self._queries(inputs_q, key_init)
    kv_heads = self.num_kv_heads or self.num_heads
    key = self._project(
        'key', inputs_kv, num_heads=kv_heads, kernel_init=key_init
    )
    value = self._project(
        'value', inputs_kv, num_heads=kv_heads, kernel_init=self.kernel_init
    )
    if self.normalize_heads:
      key = self._norm('key_norm')(key)
    return query, key, value

  def _queries(self, inputs_q, kernel_init):
    query = self._project(
        'query',
        inputs_q,
        num_heads=self.num_heads,
        kernel_init=self._query_init(kernel_init),
    )
    if self.normalize_heads:
      query = self._norm('query_norm')(query)
    if self.scale_queries or self.scale_attn_logits:
      size = self.query_pre_attn_scalar or self.head_dim
      query = query * jnp.asarray(size**-0.5, query.dtype)
    return query

  def _norm(self, name: str):
    return norms.RmsNorm(
        epsilon=self.norm_epsilon,
        dtype=self.dtype,
        scale_from_one=self.norm_from_one,
        axis_name='kv',
        name=name,
    )

  def _project(
      self,
      name: str,
      inputs: Float[Array, 'batch length embed'],
      *,
      num_heads: int,
      kernel_init: layers.Initializer,
  ) -> Float[Array, 'batch heads length kv']:
    x = layers.DenseGeneral(
        (num_heads, self.head_dim),
        kernel_axes=('embed', *self._head_axes()),
        use_bias=self.use_input_bias,
        dtype=self.dtype,
        kernel_init=kernel_init,
        quantization=self.quantization,
        name=name,
    )(inputs)
    return _pin(jnp.swapaxes(x, 1, 2))

  def _query_init(self, kernel_init: layers.Initializer) -> layers.Initializer:
    if self.scale_queries:
      return kernel_init
    # T5 has its 1/sqrt(kv) here, once, rather than in every forward pass.
    scale = jnp.sqrt(self.head_dim).astype(self.dtype)
    return lambda *args: kernel_init(*args) / scale

  def _rotate(self, x, index):
    pairs = self.head_dim // 2
    frequencies = self.rotary.frequencies(pairs)
    if self.local_rotary is not None:
      frequencies = jnp.where(
          self.is_local, self.local_rotary.frequencies(pairs), frequencies
      )
    return rotary_lib.rotate(x, _positions(x, index), frequencies)

  def _within_window(self, mask, cache, query, index):
    """The mask, of a local layer without what is too far away."""
    if self.local_window is None or self.is_local is False:
      return mask
    if isinstance(mask, sight_lib.Sight):
      if self.is_local is True:
        return mask.replace(window=self.local_window)
      mask = mask.pairs()
    length = query.shape[2] if index is None else cache[0].value.shape[3]
    near = masks.make_window_mask(
        _positions(query, index),
        jnp.arange(length),
        window=self.local_window,
        is_local=self.is_local,
    )
    return masks.combine_masks(mask, near)

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

  def _cache_variables(self, key):
    """The variables (key, value, index) of the cache, zeros where new."""
    # T5X's layout [batch, heads, kv, length]: decoders rely on batch first.
    batch, heads, length, kv = key.shape
    shape = (batch, heads, kv, length)
    return (
        self.variable('cache', 'cached_key', jnp.zeros, shape, key.dtype),
        self.variable('cache', 'cached_value', jnp.zeros, shape, key.dtype),
        self.variable(
            'cache', 'cache_index', lambda: jnp.zeros((), jnp.int32)
        ),
    )


def _positions(x, index):
  """The positions 0, 1, ..., or the one of each row that `index` gives."""
  if index is None:
    return jnp.arange(x.shape[2])[None]
  return jnp.reshape(index, (-1, 1))


def _pin(
    x: Float[Array, 'batch heads length kv'],
) -> Float[Array, 'batch heads length kv']:
  """Pins how heads lie on the mesh; few of them lie whole on every device."""
  axes = _HEAD_MAJOR
  if x.shape[1] % layers.count_shards('heads', _HEAD_MAJOR):
    axes = ('batch', None, 'length', 'kv')
  return partitioning.with_sharding_constraint(x, axes)


def _row_of_step(cache, query, mask, bias):
  """The mask and bias of the cache's next position, in each row of a batch."""
  cached_key, _, cache_index = cache
  batch, _, kv, length = cached_key.value.shape
  if query.shape != (batch, query.shape[1], 1, kv):
    raise ValueError(
        f'the query of a decoding step has shape {query.shape}, expected '
        f'{(batch, query.shape[1], 1, kv)} = [batch, heads, 1, kv] of the '
        'cache: give one position at a time, and the batch size the cache was '
        'made with'
    )
  index = jnp.reshape(cache_index.value, (-1,))  # one, or one for each row
  seen = jnp.arange(length) <= index[:, None]
  mask = masks.combine_masks(mask, seen[:, None, None])
  if bias is None:
    return mask, None
  if index.shape == (1,):
    return mask, lax.dynamic_slice_in_dim(bias, index[0], 1, axis=2)
  rows = jnp.take(bias[0], index, axis=1, mode='clip')  # [heads, batch, keys]
  return mask, jnp.swapaxes(rows, 0, 1)[:, :, None]


def _append(cache, key, value):
  """Adds one position to the cache; returns all keys and values."""
  cached_key, cached_value, cache_index = cache
  index = cache_index.value
  for cached, new in ((cached_key, key), (cached_value, value)):
    new = jnp.swapaxes(new, 2, 3)  # [batch, heads, kv, 1]
    if index.ndim == 0:
      cached.value = lax.dynamic_update_slice(
          cached.value, new, (0, 0, 0, index)
      )
    else:  # rows that are at different positions, past the end included
      cached.value = jax.vmap(_put_column)(cached.value, new[..., 0], index)
  cache_index.value = index + 1
  return (
      jnp.swapaxes(cached_key.value, 2, 3),
      jnp.swapaxes(cached_value.value, 2, 3),
  )


def _put_column(
    cached: Float[Array, 'heads kv length'],
    new: Float[Array, 'heads kv'],
    index: Int[Array, ''],
) -> Float[Array, 'heads kv length']:
  """Replaces one position; one past the end changes nothing.

  By row, this scatter writes into the cache where it lies, on the device that
  has the row; a choice between old and new would write all of the cache anew.
  """
  return cached.at[:, :, index].set(new, mode='drop')


def _fill(cache, key, value, lengths):
  """Puts all positions into the cache; those from `lengths` on don't count."""
  cached_key, cached_value, cache_index = cache
  filled = jnp.swapaxes(key, 2, 3)
  if cached_key.value.shape != filled.shape:
    raise ValueError(
        f'the prompt has keys of shape {filled.shape}, the cache of shape '
        f'{cached_key.value.shape}, [batch, heads, kv, length]; expected equal '
        'ones: pad the prompt to the length of the cache'
    )
  cached_key.value = filled
  cached_value.value = jnp.swapaxes(value, 2, 3)
  cache_index.value = lengths.astype(jnp.int32)
