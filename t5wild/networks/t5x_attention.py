# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's attention layer, for networks of users; see `t5x_layers`."""

from collections.abc import Callable
from typing import Any

from flax import linen as nn
from jax import Array
import jax.numpy as jnp
from jaxtyping import Float, Num, Shaped

from t5wild.networks import attention
from t5wild.networks import t5x_layers

DType = Any
Initializer = Callable[..., Array]


class MultiHeadDotProductAttention(nn.Module):
  """Multi-head attention; see `attention.MultiHeadDotProductAttention`.

  Attributes:
    num_heads: number of heads.
    head_dim: size of a head.
    dtype: type of the computation.
    dropout_rate: dropout of attention weights, shared by all queries.
    kernel_init: initialiser of all kernels, which are matrices.
    float32_logits: accumulate logits in float32.
    scale_attn_logits: multiply queries by 1/sqrt(head_dim) in the forward pass
      as well as in their initial kernel.
  """

  num_heads: int
  head_dim: int
  dtype: DType = jnp.float32
  dropout_rate: float = 0.0
  kernel_init: Initializer = nn.initializers.variance_scaling(
      1.0, 'fan_in', 'normal'
  )
  float32_logits: bool = False
  scale_attn_logits: bool = False

  @nn.compact
  def __call__(
      self,
      inputs_q: Num[Array, 'batch queries embed'],
      inputs_kv: Num[Array, 'batch keys encoded_embed'],
      mask: Shaped[Array, '...'] | None = None,
      bias: Float[Array, '...'] | None = None,
      *,
      decode: bool = False,
      deterministic: bool = False,
      prefill: bool = False,
      prefill_lengths: Array | None = None,
  ) -> Float[Array, 'batch queries embed']:
    """Lets every position of `inputs_q` look at `inputs_kv`.

    Args:
      inputs_q: what looks.
      inputs_kv: what is looked at.
      mask: above 0 where a query may look; None = everywhere.
      bias: added to the logits. While decoding: of all positions.
      decode: the first call, which makes parameters or is given no cache, makes
        an empty one; each later call has one position.
      deterministic: no dropout.
      prefill: put all positions into a cache that there is already.
      prefill_lengths: how many of each row then count; None = as many as the
        mask lets the first query see.
    """
    if decode and prefill:
      raise ValueError(
          'attention was called with decode=True and prefill=True, expected '
          'one of them: first prefill with the whole prompt, then decode '
          'position by position'
      )
    if prefill and not self.has_variable('cache', 'cached_key'):
      decode, prefill = True, False  # There is nothing to fill yet.
    if prefill and prefill_lengths is None:
      prefill_lengths = jnp.sum(mask[:, 0, 0] > 0, axis=-1)
    ours = attention.MultiHeadDotProductAttention(
        num_heads=self.num_heads,
        head_dim=self.head_dim,
        dtype=self.dtype,
        dropout_rate=self.dropout_rate,
        kernel_init=self._matrix_init(),
        float32_logits=self.float32_logits,
        scale_attn_logits=self.scale_attn_logits,
        joined_kernels=self._has_matrices,
    )
    nn.share_scope(self, ours)
    return ours(
        jnp.asarray(inputs_q, self.dtype),
        jnp.asarray(inputs_kv, self.dtype),
        None if mask is None else mask > 0,
        bias,
        decode=decode,
        prefill_lengths=prefill_lengths if prefill else None,
        deterministic=deterministic,
    )

  @property
  def _has_matrices(self) -> bool:
    return True

  def _matrix_init(self) -> Initializer:
    return self.kernel_init


class ScannedMultiHeadDotProductAttention(MultiHeadDotProductAttention):
  """The same with kernels `(embed, heads, kv)`, as T5X's scanned network has.

  Attributes:
    kernel_init: as of `t5x_layers.nd_dense_init`, called with input axis 0 and
      output axis 1.
  """

  kernel_init: Initializer = t5x_layers.nd_dense_init(1.0, 'fan_in', 'normal')

  @property
  def _has_matrices(self) -> bool:
    return False

  def _matrix_init(self) -> Initializer:
    return lambda key, shape, dtype: self.kernel_init(key, shape, dtype, 0, 1)
