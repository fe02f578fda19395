# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's layers, for networks of users: its attributes, in its order.

Each is one of ours under T5X's interface, or is made of the same functions, so
that a network put together from these has T5X's parameters and numbers.
"""

from collections.abc import Callable, Iterable, Sequence
import dataclasses
import functools
import math
import operator
from typing import Any

from flax import linen as nn
from flax.linen import partitioning
import jax
from jax import Array
from jax import lax
import jax.numpy as jnp
from jaxtyping import Float, Num
import numpy as np

from t5wild.networks import embeddings
from t5wild.networks import layers

DType = Any
Initializer = Callable[..., Array]

default_embed_init = nn.initializers.variance_scaling(
    1.0, 'fan_in', 'normal', out_axis=0
)
# Rows of `x` from each of `starts` on, so many, along an axis.
dynamic_vector_slice_in_dim = jax.vmap(
    lax.dynamic_slice_in_dim, in_axes=(None, 0, None, None)
)


def nd_dense_init(scale: float, mode: str, distribution: str) -> Initializer:
  """An initialiser that is told at each call which axes are inputs."""

  def init(key, shape, dtype, in_axis, out_axis):
    draw = nn.initializers.variance_scaling(
        scale, mode, distribution, in_axis, out_axis
    )
    return draw(key, shape, dtype)

  return init


def canonicalize_tuple(x: Any) -> tuple[Any, ...]:
  """One number as a tuple of it; several as a tuple of them."""
  return tuple(x) if isinstance(x, Iterable) else (x,)


def normalize_axes(axes: Iterable[int], ndim: int) -> tuple[int, ...]:
  """Counts axes from the first one, of an array with `ndim` axes."""
  return tuple(axis if axis >= 0 else ndim + axis for axis in axes)


class DenseGeneral(nn.Module):
  """A linear map without bias from some axes to new ones, which come last.

  Attributes:
    features: sizes of the new axes.
    axis: axes of the inputs that are contracted.
    dtype: type of the computation; the kernel is float32.
    kernel_init: initialiser, called with the kernel's shape.
    kernel_axes: logical axes of the kernel, a matrix of joined inputs and
      outputs.
  """

  features: Iterable[int] | int
  axis: Iterable[int] | int = -1
  dtype: DType = jnp.float32
  kernel_init: Initializer = layers.dense_init
  kernel_axes: tuple[str, ...] = ()

  @nn.compact
  def __call__(self, inputs: Num[Array, '...']) -> Float[Array, '...']:
    """Maps `[..., *in]` to `[..., *features]`."""
    features = canonicalize_tuple(self.features)
    inputs = jnp.asarray(inputs, self.dtype)
    axes = normalize_axes(canonicalize_tuple(self.axis), inputs.ndim)
    last = tuple(range(inputs.ndim - len(axes), inputs.ndim))
    if axes != last:
      inputs = jnp.moveaxis(inputs, axes, last)
    leading, inner = inputs.shape[: -len(axes)], inputs.shape[-len(axes) :]
    joined = (math.prod(inner), math.prod(features))
    outputs = layers.contract_last_axis(
        inputs.reshape(*leading, joined[0]),
        self._kernel(inner, features).astype(self.dtype).reshape(joined),
    )
    return outputs.reshape(*leading, *features)

  def _kernel(self, inner, features):
    return partitioning.param_with_axes(
        'kernel',
        self.kernel_init,
        (math.prod(inner), math.prod(features)),
        jnp.float32,
        axes=self.kernel_axes,
    )


class ScannedDenseGeneral(DenseGeneral):
  """The same with a kernel `[*in, *features]`, as T5X's scanned network has it.

  Attributes:
    kernel_init: as of `nd_dense_init`.
  """

  kernel_init: Initializer = nd_dense_init(1.0, 'fan_in', 'truncated_normal')

  def _kernel(self, inner, features):
    num_inner, rank = len(inner), len(inner) + len(features)
    return partitioning.param_with_axes(
        'kernel',
        self.kernel_init,
        (*inner, *features),
        jnp.float32,
        np.arange(num_inner),
        np.arange(num_inner, rank),
        axes=self.kernel_axes,
    )


class MlpBlock(nn.Module):
  """The feed-forward half of a layer; see `layers.MlpBlock`.

  Attributes:
    intermediate_dim: size of the hidden axis.
    activations: one per input product, multiplied.
    kernel_init: initialiser of all kernels.
    intermediate_dropout_rate: dropout of the hidden axis.
    dtype: type of the computation.
  """

  intermediate_dim: int = 2048
  activations: Sequence[str | Callable] = ('relu',)
  kernel_init: Initializer = layers.dense_init
  intermediate_dropout_rate: float = 0.1
  dtype: DType = jnp.float32

  @nn.compact
  def __call__(
      self,
      inputs: Num[Array, '...'],
      decode: bool = False,
      deterministic: bool = False,
  ) -> Float[Array, '...']:
    """Maps each position by itself, so alike while decoding."""
    del decode
    dense = functools.partial(
        self._dense_class, dtype=self.dtype, kernel_init=self.kernel_init
    )
    hidden = []
    for index, activation in enumerate(self.activations):
      x = dense(
          self.intermediate_dim,
          kernel_axes=('embed', 'mlp'),
          name='wi' if len(self.activations) == 1 else f'wi_{index}',
      )(inputs)
      hidden.append(layers.make_activation(activation)(x))
    x = functools.reduce(operator.mul, hidden)
    x = layers.Dropout(self.intermediate_dropout_rate)(
        x, deterministic=deterministic
    )
    x = partitioning.with_sharding_constraint(x, ('batch', 'length', 'mlp'))
    return dense(inputs.shape[-1], kernel_axes=('mlp', 'embed'), name='wo')(x)

  @property
  def _dense_class(self):
    return DenseGeneral


class ScannedMlpBlock(MlpBlock):
  """The same with initialisers as of `nd_dense_init`."""

  kernel_init: Initializer = nd_dense_init(1.0, 'fan_in', 'truncated_normal')

  @property
  def _dense_class(self):
    return ScannedDenseGeneral


class Embed(nn.Module):
  """The table of token embeddings, `[vocab, embed]` in float32.

  Attributes:
    num_embeddings: number of tokens.
    features: size of an embedding.
    cast_input_dtype: type that tokens are cast to; None = theirs.
    dtype: type of the embedded tokens.
    attend_dtype: type of the table where it scores tokens; None = `dtype`.
    embedding_init: initialiser of the table.
    one_hot: T5X's switch between two ways to look up with the same rows. Here
      the gradient is always that of the one, the row that of the other.
  """

  num_embeddings: int
  features: int
  cast_input_dtype: DType | None = None
  dtype: DType = jnp.float32
  attend_dtype: DType | None = None
  embedding_init: Initializer = default_embed_init
  one_hot: bool = False
  embedding: Array = dataclasses.field(init=False)

  def setup(self):
    """Declares the table."""
    self.embedding = partitioning.param_with_axes(
        'embedding',
        self.embedding_init,
        (self.num_embeddings, self.features),
        jnp.float32,
        axes=('vocab', 'embed'),
    )

  def __call__(self, inputs: Num[Array, '...']) -> Float[Array, '... embed']:
    """Embeds tokens.

    Raises:
      ValueError: they are not whole numbers.
    """
    if self.cast_input_dtype is not None:
      inputs = inputs.astype(self.cast_input_dtype)
    if not jnp.issubdtype(inputs.dtype, jnp.integer):
      raise ValueError(
          f'tokens to embed are {inputs.dtype}, expected an integer type: cast '
          'them, or set cast_input_dtype'
      )
    tokens = inputs if inputs.ndim == 2 else inputs.reshape(1, -1)
    x = embeddings.take_rows(self.embedding, tokens, self.dtype)
    x = x.reshape(*inputs.shape, self.features)
    if x.ndim != 3:
      return x
    return partitioning.with_sharding_constraint(
        x, ('batch', 'length', 'embed')
    )

  def attend(self, query: Float[Array, '... embed']) -> Float[Array, '...']:
    """Scores every token by its product with the query."""
    table = self.embedding.astype(self.attend_dtype or self.dtype)
    dtype = jnp.promote_types(query.dtype, table.dtype)
    return layers.contract_last_axis(
        query.astype(dtype), table.T.astype(dtype)
    )


class RelativePositionBiases(nn.Module):
  """T5's relative position bias: one number per head and distance bucket.

  Attributes:
    num_buckets: number of buckets of distances.
    max_distance: distance from which all fall into the last bucket.
    num_heads: number of heads.
    dtype: type of the bias.
    embedding_init: initialiser of the table.
  """

  num_buckets: int
  max_distance: int
  num_heads: int
  dtype: DType
  embedding_init: Initializer = nn.linear.default_embed_init

  @staticmethod
  def _relative_position_bucket(
      relative_position, bidirectional=True, num_buckets=32, max_distance=128
  ):
    return embeddings.relative_position_bucket(
        np.asarray(relative_position),
        bidirectional=bidirectional,
        num_buckets=num_buckets,
        max_distance=max_distance,
    )

  @nn.compact
  def __call__(
      self,
      qlen: int,
      klen: int,
      bidirectional: bool = True,
      decode: bool = False,
  ) -> Float[Array, '1 heads queries keys']:
    """Makes the bias of every query and key, by their index in the array.

    Args:
      qlen: number of queries.
      klen: number of keys.
      bidirectional: whether keys after the query have buckets of their own.
      decode: it is for decoding step by step. T5X keeps it in the cache then;
        here it is made anew, of all positions either way.
    """
    if decode and bidirectional:
      raise ValueError(
          'RelativePositionBiases was called with decode=True and '
          'bidirectional=True, expected one of them: what decodes sees nothing '
          'after its position'
      )
    table = partitioning.param_with_axes(
        'rel_embedding',
        self.embedding_init,
        (self.num_heads, self.num_buckets),
        jnp.float32,
        axes=('heads', 'relpos_buckets'),
    )
    bucket = self._relative_position_bucket(
        np.arange(1 - qlen, klen),
        bidirectional,
        self.num_buckets,
        self.max_distance,
    )
    return embeddings.bias_of_buckets(
        table.astype(self.dtype), bucket, num_queries=qlen
    )


class LayerNorm(nn.Module):
  """T5's layer norm; see `norms.RmsNorm`.

  Attributes:
    epsilon: added to the mean square.
    dtype: type of the result.
    scale_init: initialiser of the scale.
  """

  epsilon: float = 1e-6
  dtype: DType = jnp.float32
  scale_init: Initializer = nn.initializers.ones

  @nn.compact
  def __call__(self, x: Num[Array, '...']) -> Float[Array, '...']:
    """Normalises the last axis."""
    x = jnp.asarray(x, jnp.float32)
    mean_square = jnp.mean(lax.square(x), axis=-1, keepdims=True)
    x = (x * lax.rsqrt(mean_square + self.epsilon)).astype(self.dtype)
    scale = partitioning.param_with_axes(
        'scale', self.scale_init, x.shape[-1:], jnp.float32, axes=('embed',)
    )
    return x * scale.astype(self.dtype)
