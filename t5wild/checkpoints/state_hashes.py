# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Hashes of the arrays of a state, wherever its parts lie.

On CPU devices each process hashes its own parts on the host, which takes no
part in a collective and may go on beside the loop. On accelerators the devices
do it, at the speed of their memory, and what each process gets is the whole.
"""

from collections.abc import Callable, Iterator, Mapping
import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec
import numpy as np

from t5wild.checkpoint_files import array_hashes
from t5wild.checkpoints import staging

_WORDS = {1: jnp.uint8, 2: jnp.uint16, 4: jnp.uint32, 8: jnp.uint32}


def start_hashing(
    state: Mapping[str, Any], *, dtypes: Mapping[str, Any]
) -> Callable[[], dict[str, int]]:
  """Begins to hash; returns what gives this process's share of each hash.

  The shares of all processes add up to the hash. Arrays on accelerators may be
  donated once this has returned; numpy's, and those on CPU devices, must stay
  until the shares are there. Every process calls it alike.

  Args:
    state: Arrays by key.
    dtypes: dtype in which each array is to be hashed.
  """
  on_devices = {
      key: _hash_on_devices(leaf, dtypes[key])
      for key, leaf in state.items()
      if _is_on_accelerator(leaf)
  }
  # Views, made before any other thread reads these arrays: JAX takes an array
  # apart without a lock, and of two threads that do so at once one may find
  # some of its parts twice, or not yet. And else the array would keep a
  # reference, and no step could reuse its memory.
  on_host = {
      key: staging.view(leaf) if isinstance(leaf, jax.Array) else leaf
      for key, leaf in state.items()
      if key not in on_devices
  }

  def shares() -> dict[str, int]:
    result = {
        key: _hash_on_host(leaf, np.dtype(dtypes[key]))
        for key, leaf in on_host.items()
    }
    for key, value in on_devices.items():
      whole = int(np.asarray(value.addressable_data(0)))
      result[key] = whole if jax.process_index() == 0 else 0
    return {key: result[key] for key in state}

  return shares


def _is_on_accelerator(leaf: Any) -> bool:
  return isinstance(leaf, jax.Array) and any(
      device.platform != 'cpu' for device in leaf.sharding.device_set
  )


def _hash_on_host(leaf: Any, dtype: np.dtype) -> int:
  shape = np.shape(leaf)
  return sum(
      array_hashes.hash_part(
          part.astype(dtype, copy=False), start=start, shape=shape
      )
      for start, part in _own_parts(leaf)
  )


def _own_parts(leaf: Any) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
  """Start and numbers of the parts that this process answers for."""
  if not isinstance(leaf, jax.Array):
    if jax.process_index() == 0:
      yield (0,) * np.ndim(leaf), np.asarray(leaf)
    return
  for shard in leaf.addressable_shards:
    if shard.replica_id == 0:
      start = tuple(part.start or 0 for part in shard.index)
      yield start, np.asarray(shard.data)


def _hash_on_devices(leaf: jax.Array, dtype: Any) -> jax.Array:
  sharding = leaf.sharding
  everywhere = None
  if isinstance(sharding, NamedSharding):
    everywhere = NamedSharding(sharding.mesh, PartitionSpec())
  return _hasher(jnp.dtype(dtype), everywhere)(leaf)


@functools.cache
def _hasher(dtype: Any, out_sharding: Any) -> Callable[[Any], jax.Array]:
  return jax.jit(
      functools.partial(hash_of, dtype=dtype), out_shardings=out_sharding
  )


def hash_of(array: jax.Array, *, dtype: Any) -> jax.Array:
  """Returns the hash of an array in a dtype; to be traced."""
  array = array.astype(dtype)
  if array.dtype == jnp.bool_:
    array = array.astype(jnp.uint8)
  words = jax.lax.bitcast_convert_type(array, _WORDS[array.dtype.itemsize])
  place = jnp.zeros((), jnp.uint32)
  stride = array_hashes.PLACE
  for axis in reversed(range(words.ndim)):
    along = jax.lax.broadcasted_iota(jnp.uint32, words.shape, axis)
    place = place + along * np.uint32(stride % array_hashes.MODULUS)
    stride *= words.shape[axis]
  mixed = words.astype(jnp.uint32) ^ place
  for factor, shift in (
      (array_hashes.FIRST, array_hashes.FIRST_SHIFT),
      (array_hashes.SECOND, array_hashes.SECOND_SHIFT),
  ):
    mixed = mixed * np.uint32(factor)
    mixed = mixed ^ (mixed >> shift)
  return jnp.sum(mixed, dtype=jnp.uint32)
