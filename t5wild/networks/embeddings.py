# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Embeddings: of tokens, and of the distance between two positions."""

import dataclasses
import functools

from flax import linen as nn
from flax.linen import partitioning
import jax
from jax import Array
from jax import lax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int
import numpy as np

from t5wild.networks import attention_choice
from t5wild.networks import layers


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def take_rows(
    table: Float[Array, 'vocab embed'],
    tokens: Int[Array, 'batch length'],
    dtype: layers.DType,
) -> Float[Array, 'batch length embed']:
  """Looks up the row of each token.

  The gradient is a product with one-hot rows rather than a scatter: the same
  bits on every run, and partitioned like any other product.

  Args:
    table: of all rows.
    tokens: whose rows.
    dtype: of the result, and of the product that is its gradient, which sums in
      the table's type.
  """
  return jnp.take(table, tokens, axis=0, mode='clip').astype(dtype)


def _take_rows_forward(table, tokens, dtype):
  like_table = jnp.zeros((0, *table.shape), table.dtype)
  return take_rows(table, tokens, dtype), (tokens, like_table)


def _take_rows_backward(dtype, residuals, gradient):
  tokens, like_table = residuals
  _, vocab, _ = like_table.shape
  # Behind a barrier, or XLA writes the numbers of all rows for each token: an
  # array of [batch, length, vocab] in int32 beside the product's kernel.
  rows = lax.optimization_barrier(jnp.arange(vocab, dtype=tokens.dtype))
  one_hot = (tokens[..., None] == rows).astype(dtype)
  axes = tuple(range(tokens.ndim))
  table_gradient = lax.dot_general(
      one_hot,
      gradient,
      ((axes, axes), ((), ())),
      preferred_element_type=like_table.dtype,
  )
  return table_gradient, None


take_rows.defvjp(_take_rows_forward, _take_rows_backward)


class Embed(nn.Module):
  """The table of token embeddings, `[vocab, embed]` in float32.

  Attributes:
    num_embeddings: number of tokens.
    features: size of an embedding.
    dtype: type of the embedded tokens.
    embedding_init: initialiser of the table.
  """

  num_embeddings: int
  features: int
  dtype: layers.DType = jnp.float32
  embedding_init: layers.Initializer = nn.initializers.normal(stddev=1.0)
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

  def __call__(
      self, tokens: Int[Array, 'batch length']
  ) -> Float[Array, 'batch length embed']:
    """Embeds tokens."""
    x = take_rows(self.embedding, tokens, self.dtype)
    return partitioning.with_sharding_constraint(
        x, ('batch', 'length', 'embed')
    )

  def attend(
      self, query: Float[Array, 'batch length embed']
  ) -> Float[Array, 'batch length vocab']:
    """Scores every token, in float32, by its product with the query."""
    return layers.contract_last_axis(
        query.astype(jnp.float32), self.embedding.T
    )


def relative_position_bucket(
    relative_position: np.ndarray,
    *,
    bidirectional: bool,
    num_buckets: int,
    max_distance: int,
) -> np.ndarray:
  """Sorts distances into T5's buckets: exact when near, logarithmic when far.

  Raffel et al. 2020 (arXiv:1910.10683), section 2.1. Half of the buckets hold
  one distance each; the other half grow logarithmically up to `max_distance`,
  and the last holds all that is farther.

  Args:
    relative_position: key position minus query position.
    bidirectional: False = keys after the query all fall into bucket 0.
    num_buckets: number of buckets, for both directions together.
    max_distance: distance at which the last bucket starts.

  Returns:
    int32 numbers in [0, num_buckets), of the shape given.
  """
  offset = np.int32(0)
  distance = np.maximum(-relative_position, 0)
  if bidirectional:
    num_buckets //= 2
    offset = np.where(relative_position > 0, num_buckets, 0)
    distance = np.abs(relative_position)
  num_exact = num_buckets // 2
  # float32 and the epsilon decide the rounding at bucket borders, as in T5X.
  ratio = distance.astype(np.float32) / num_exact + np.finfo(np.float32).eps
  scale = (num_buckets - num_exact) / np.log(max_distance / num_exact)
  far = num_exact + (np.log(ratio) * scale).astype(np.int32)
  far = np.minimum(far, num_buckets - 1)
  return (offset + np.where(distance < num_exact, distance, far)).astype(
      np.int32
  )


class RelativePositionBiases(nn.Module):
  """T5's relative position bias: one number per head and distance bucket.

  Attributes:
    num_heads: number of heads.
    num_buckets: number of buckets of distances.
    max_distance: distance from which all fall into the last bucket.
    dtype: type of the bias.
    init_scale: factor on the initial table of T5.
  """

  num_heads: int
  num_buckets: int = 32
  max_distance: int = 128
  dtype: layers.DType = jnp.float32
  init_scale: float = 1.0

  @nn.compact
  def __call__(
      self, num_queries: int, num_keys: int, *, bidirectional: bool
  ) -> Float[Array, '1 heads queries keys']:
    """Makes the bias of every query and key, by their index in the array."""
    table = partitioning.param_with_axes(
        'rel_embedding',
        nn.initializers.variance_scaling(
            self.init_scale**2, 'fan_avg', 'uniform'
        ),
        (self.num_heads, self.num_buckets),
        jnp.float32,
        axes=('heads', 'relpos_buckets'),
    )
    # The bias depends on the distance alone, from -(queries - 1) to keys - 1.
    bucket = relative_position_bucket(
        np.arange(1 - num_queries, num_keys),
        bidirectional=bidirectional,
        num_buckets=self.num_buckets,
        max_distance=self.max_distance,
    )
    return bias_of_buckets(
        table.astype(self.dtype), bucket, num_queries=num_queries
    )


def bias_of_buckets(
    table: Float[Array, 'heads buckets'],
    bucket: Int[np.ndarray, ' distances'],
    *,
    num_queries: int,
) -> Float[Array, '1 heads queries keys']:
  """Puts the number of its distance's bucket at each query and key.

  The same numbers on every platform, by the program that suits it. The TPU's
  compiler is minutes at `spread_over_diagonals`: each of its steps moves the
  whole array into other tiles. It fuses one-hot rows of pairs into the product,
  where others keep them in memory.

  Args:
    table: a number for each head and bucket.
    bucket: of each distance, from -(queries - 1) to keys - 1; those of a bucket
      follow each other.
    num_queries: number of queries.
  """
  one_hot = np.arange(table.shape[1])[:, None] == bucket
  if attention_choice.platform() == 'tpu':
    return multiply_one_hot_pairs(table, one_hot, num_queries=num_queries)[None]
  by_distance = lax.dot(table, jnp.asarray(one_hot, table.dtype))
  return spread_over_diagonals(by_distance, num_queries=num_queries)[None]


def multiply_one_hot_pairs(
    table: Float[Array, 'heads buckets'],
    one_hot: Bool[np.ndarray, 'buckets distances'],
    *,
    num_queries: int,
) -> Float[Array, 'heads queries keys']:
  """Multiplies the table with one-hot rows of every query and key.

  A bucket is where its distances begin and end, so that the rows come from two
  comparisons in the product's own loop and not from an array of all pairs.

  Args:
    table: a number for each head and bucket.
    one_hot: whether a distance is in a bucket, see `bias_of_buckets`.
    num_queries: number of queries.
  """
  num_keys = one_hot.shape[1] - num_queries + 1
  begin = np.argmax(one_hot, axis=1) - (num_queries - 1)
  end = begin + np.sum(one_hot, axis=1)  # = begin where a bucket is empty
  shape = (1, num_queries, num_keys)
  distance = lax.broadcasted_iota(jnp.int32, shape, 2)
  distance -= lax.broadcasted_iota(jnp.int32, shape, 1)
  begin, end = (jnp.asarray(x, jnp.int32)[:, None, None] for x in (begin, end))
  pairs = (begin <= distance) & (distance < end)
  # By default a TPU would round a float32 table to bfloat16.
  return lax.dot_general(
      table, pairs.astype(table.dtype), (((1,), (0,)), ((), ())),
      precision=lax.Precision.HIGHEST,
  )  # fmt: skip


def spread_over_diagonals(
    values: Float[Array, 'heads distances'], *, num_queries: int
) -> Float[Array, 'heads queries keys']:
  """Puts `values[key - query + num_queries - 1]` at each query and key.

  Written without a gather, whose gradient would be a scatter, and without
  one-hot rows, which take as much memory as 32 heads: laid one after the other,
  copies of all values and one zero, cut into rows that are one shorter, start
  one value further left in each row.

  Args:
    values: one number for each distance, from -(queries - 1) to keys - 1.
    num_queries: number of queries.
  """
  heads, num_distances = values.shape
  num_keys = num_distances - num_queries + 1
  copies = jnp.broadcast_to(
      jnp.pad(values, ((0, 0), (0, 1)))[:, None],
      (heads, num_queries, num_distances + 1),
  )
  first = num_queries - 1  # where the first query's distances start
  rows = copies.reshape(heads, -1)[
      :, first : first + num_queries * num_distances
  ]
  return rows.reshape(heads, num_queries, num_distances)[:, :, :num_keys]
