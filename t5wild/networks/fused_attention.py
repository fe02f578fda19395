# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Attention by the kernel that was chosen, on every device of the mesh.

Kernels know one device. Each gets its rows and heads; where a `sequence` axis
cuts rows into pieces, its queries, and the keys and values of all pieces.
"""

from collections.abc import Callable, Mapping
import functools

from flax.core import meta
from flax.linen import partitioning
import jax
from jax import Array
import jax.numpy as jnp
from jax.sharding import PartitionSpec
from jaxtyping import Float

from t5wild.networks import cudnn_attention
from t5wild.networks import sight as sight_lib
from t5wild.networks import tpu_attention

_AXES = ('batch', 'heads', 'length', 'kv')
_KERNELS: Mapping[str, Callable[..., Array]] = {
    'cudnn': cudnn_attention.attend,
    'splash': tpu_attention.attend_sparsely,
    'flash': tpu_attention.attend_with_bias,
}


def attend(
    query: Float[Array, 'batch heads queries kv'],
    key: Float[Array, 'batch kv_heads keys kv'],
    value: Float[Array, 'batch kv_heads keys kv'],
    *,
    sight: sight_lib.MaskOrSight | None,
    bias: Float[Array, '1 heads queries keys'] | None,
    kernel: str,
    **options,
) -> Float[Array, 'batch heads queries kv']:
  """Averages the values by a fused kernel.

  A prefix, which no kernel knows, is seen in a pass of its own; each query
  takes the result of the pass that is for it.

  Args:
    query: what looks.
    key: what is looked at.
    value: what is averaged.
    sight: which query sees which key.
    bias: added to the logits.
    kernel: 'cudnn', 'splash' or 'flash'.
    **options: of the kernel.
  """
  attend_once = functools.partial(
      _on_mesh, query, key, value, bias=bias,
      attend_locally=functools.partial(_KERNELS[kernel], **options),
  )
  if not isinstance(sight, sight_lib.Sight) or sight.prefix is None:
    return attend_once(sight=sight)
  return jnp.where(
      sight.prefix[:, None, :, None],
      attend_once(sight=sight.within_prefix()),
      attend_once(sight=sight.after_prefix()),
  )


def sequence_axis() -> str | None:
  """The mesh axis that cuts rows into pieces; None = they are whole."""
  mesh = meta.get_global_mesh()
  if mesh is None or not partitioning.get_axis_rules():
    return None
  axes = _as_axes(partitioning.logical_to_mesh_axes(_AXES)[2])
  axes = tuple(axis for axis in axes if mesh.shape[axis] > 1)
  return axes[0] if axes else None


def _as_axes(entry) -> tuple[str, ...]:
  return (entry,) if isinstance(entry, str) else tuple(entry or ())


def _on_mesh(query, key, value, *, sight, bias, attend_locally):
  """Has every device do its part."""
  mesh = meta.get_global_mesh()
  if mesh is None or mesh.size == 1 or not partitioning.get_axis_rules():
    return attend_locally(query, key, value, sight=sight, bias=bias)
  batch, heads, length = (
      _fitting(mesh, entry, size)
      for entry, size in zip(
          partitioning.logical_to_mesh_axes(_AXES), query.shape[:3],
          strict=False,
      )
  )
  own_heads = _fitting(mesh, heads, key.shape[1])
  of_query = PartitionSpec(batch, heads, length, None)
  of_key = PartitionSpec(batch, own_heads, None, None)
  local = functools.partial(
      _local, attend_locally=attend_locally, length=length,
      heads=None if own_heads == heads else heads,
  )
  return jax.shard_map(
      local,
      in_specs=(
          of_query, of_key, of_key,
          _specs_of_sight(sight, batch, length),
          None if bias is None else PartitionSpec(None, heads, length, None),
      ),
      out_specs=of_query,
      check_vma=False,
  )(query, key, value, sight, bias)


def _fitting(mesh, entry, size):
  """The mesh axes of a dimension, None where they do not divide it."""
  shards = 1
  for axis in _as_axes(entry):
    shards *= mesh.shape[axis]
  return None if shards == 1 or size % shards else entry


def _specs_of_sight(sight, batch, length):
  if sight_lib.is_array(sight):
    rows = batch if sight.shape[0] > 1 else None
    return PartitionSpec(rows, None, length, None)
  if sight is None:
    return None
  return sight.replace(
      queries=PartitionSpec(batch, length), keys=PartitionSpec(batch, None)
  )


def _local(query, key, value, sight, bias, *, attend_locally, length, heads):
  """One device's part.

  Args:
    query: its queries.
    key: all keys of its rows, of its heads.
    value: the same of the values.
    sight: its part.
    bias: its part.
    attend_locally: the kernel.
    length: mesh axes that cut rows into pieces; None = they are whole.
    heads: mesh axes that split the heads of queries, but not those of keys;
      None = the latter as well.
  """
  if heads is not None and key.shape[1] > 1:
    key, value = (_of_own_heads(x, query, heads) for x in (key, value))
  more = {}
  if length is not None:
    more['first_query'] = jax.lax.axis_index(length) * query.shape[2]
  return attend_locally(query, key, value, sight=sight, bias=bias, **more)


def _of_own_heads(x, query, heads):
  """The keys, or values, that belong to each head of this device's queries."""
  shards = jax.lax.axis_size(heads)
  group = query.shape[1] * shards // x.shape[1]
  first = jax.lax.axis_index(heads) * query.shape[1]
  return jnp.take(x, (first + jnp.arange(query.shape[1])) // group, axis=1)
