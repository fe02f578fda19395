# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Attention by JAX's Pallas kernels for TPUs, on one device.

Both know causality and the numbers of packed examples. `splash` skips blocks
that nothing is seen of, and also knows windows and capped logits; `flash` adds
a bias and gives its gradient.
"""

import functools

import jax
from jax import Array
from jax.experimental.pallas.ops.tpu import flash_attention
from jax.experimental.pallas.ops.tpu import splash_attention
import jax.numpy as jnp
from jaxtyping import Float, Int

from t5wild.networks import sight as sight_lib

_BLOCKS = (512, 256, 128)  # larger ones are faster, and must divide lengths
_FORBIDDEN = -1e10


def attend_sparsely(
    query: Float[Array, 'batch heads queries kv'],
    key: Float[Array, 'batch kv_heads keys kv'],
    value: Float[Array, 'batch kv_heads keys kv'],
    *,
    sight: sight_lib.Sight | None,
    bias: None = None,
    first_query: Int[Array, ''] | None = None,
    softcap: float | None = None,
) -> Float[Array, 'batch heads queries kv']:
  """Averages the values as `dot_product.dot_product_attention` does.

  Args:
    query: what looks.
    key: what is looked at.
    value: what is averaged.
    sight: which query sees which key; without a prefix.
    bias: None.
    first_query: where the queries stand among the keys; None = at the same
      positions, from the first.
    softcap: see `dot_product.dot_product_attention`.
  """
  del bias
  attend_at = functools.partial(
      _splash_at, query, key, value, sight, softcap=softcap
  )
  if first_query is None or sight is None or not sight.is_causal:
    return attend_at(0)
  # A kernel's mask is part of its program: one for each piece of the rows.
  length = query.shape[2]
  pieces = [
      functools.partial(attend_at, start)
      for start in range(0, key.shape[2], length)
  ]
  return jax.lax.switch(first_query // length, pieces)


def attend_with_bias(
    query: Float[Array, 'batch heads queries kv'],
    key: Float[Array, 'batch kv_heads keys kv'],
    value: Float[Array, 'batch kv_heads keys kv'],
    *,
    sight: sight_lib.Sight | None,
    bias: Float[Array, '1 heads queries keys'] | None,
    first_query: Int[Array, ''] | None = None,
) -> Float[Array, 'batch heads queries kv']:
  """The same, with a bias; see `attend_sparsely`.

  The kernel wants a bias for each row, and gives a gradient of each: rows go
  through it one after the other, so that there is one of each at a time.
  """
  heads, kv_heads = query.shape[1], key.shape[1]
  if kv_heads < heads:
    key, value = (jnp.repeat(x, heads // kv_heads, 1) for x in (key, value))
  is_causal = sight is not None and sight.is_causal
  if is_causal and first_query is not None:
    positions = first_query + jnp.arange(query.shape[2])
    behind = positions[:, None] >= jnp.arange(key.shape[2])
    ahead = jnp.where(behind, 0.0, _FORBIDDEN)[None, None]
    bias = ahead if bias is None else bias.astype(jnp.float32) + ahead
    bias = jnp.broadcast_to(bias, (1, heads, *bias.shape[2:]))
    is_causal = False
  attend = functools.partial(
      flash_attention.flash_attention, causal=is_causal, sm_scale=1.0,
      block_sizes=_flash_blocks(query, key),
  )
  ids = None
  if sight is not None:
    ids = flash_attention.SegmentIds(q=sight.queries, kv=sight.keys)
  if bias is None:
    return attend(query, key, value, segment_ids=ids)
  bias = bias.astype(jnp.float32)  # in which its gradient is added up
  rows = jax.tree.map(lambda x: x[:, None], (query, key, value, ids))
  return jax.lax.map(
      lambda row: attend(*row[:3], bias, segment_ids=row[3]), rows
  )[:, 0]


def _splash_at(query, key, value, sight, start, *, softcap):
  """Attends where the first query stands at the position `start`."""
  heads, queries, keys = query.shape[1], query.shape[2], key.shape[2]
  mask = splash_attention.FullMask((queries, keys))
  if sight is not None and sight.window is not None:
    mask = splash_attention.LocalMask(
        (queries, keys), (sight.window - 1, 0), offset=start
    )
  elif sight is not None and sight.is_causal:
    mask = splash_attention.CausalMask((queries, keys), offset=start)
  kernel = splash_attention.make_splash_mha(
      splash_attention.MultiHeadMask([mask] * heads),
      head_shards=1,
      q_seq_shards=1,
      attn_logits_soft_cap=softcap,
      block_sizes=_splash_blocks(query, key),
  )
  if sight is None:
    return jax.vmap(kernel)(query, key, value)
  ids = splash_attention.SegmentIds(q=sight.queries, kv=sight.keys)
  return jax.vmap(kernel)(query, key, value, ids)


def _block(length: int) -> int:
  return next(block for block in _BLOCKS if length % block == 0)


def _splash_blocks(query, key):
  of_query, of_key = _block(query.shape[2]), _block(key.shape[2])
  return splash_attention.BlockSizes(
      block_q=of_query, block_kv=of_key, block_q_dkv=of_query,
      block_kv_dkv=of_key, block_q_dq=of_query, block_kv_dq=of_key,
  )


def _flash_blocks(query, key):
  of_query, of_key = _block(query.shape[2]), _block(key.shape[2])
  return flash_attention.BlockSizes(
      block_q=of_query, block_k_major=of_key, block_k=of_key, block_b=1,
      block_q_major_dkv=of_query, block_k_major_dkv=of_key,
      block_k_dkv=of_key, block_q_dkv=of_query,
      block_k_major_dq=of_key, block_k_dq=of_key, block_q_dq=of_query,
  )
