# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which rows of the global batch, and which part of an array, a host holds."""

from collections.abc import Mapping
import dataclasses
import functools
import math

import jax
from jax.sharding import Mesh
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec
import numpy as np

from t5wild.partitioning import rules as rules_lib

Blocks = tuple[tuple[int, int], ...]


@dataclasses.dataclass
class DataLayout:
  """This host's part in reading the global batch.

  Attributes:
    batch_size: rows of the global batch.
    shard_id: which part of the rows this host reads, in [0, num_shards).
    num_shards: parts the batch is read in; hosts that hold the same rows read
      the same part.
    is_first_host_in_replica_set: False on all but one of the hosts that read
      the same part.
  """

  batch_size: int
  shard_id: int
  num_shards: int
  is_first_host_in_replica_set: bool


@dataclasses.dataclass
class LocalChunkInfo:
  """The part of one array that lies on this host.

  Attributes:
    slice: one slice per dimension.
    replica_id: index of this host among those with the same slice.
  """

  slice: tuple[slice, ...]
  replica_id: int


def _bounds(index: tuple[slice, ...], shape: tuple[int, ...]) -> Blocks:
  return tuple(
      part.indices(size)[:2] for part, size in zip(index, shape, strict=True)
  )


def ways_split(mesh: Mesh, spec: PartitionSpec) -> int:
  """Returns in how many parts the first dimension of `spec` is split."""
  axes = rules_lib.mesh_axes_of(spec[0]) if len(spec) else ()
  return math.prod(mesh.shape[axis] for axis in axes)


@functools.lru_cache(maxsize=64)
def blocks_by_process(
    mesh: Mesh, spec: PartitionSpec
) -> dict[int, tuple[int, ...]]:
  """Returns, for each process, the blocks of rows its devices hold.

  A batch over `ways_split` blocks; block i is the i-th equal run of rows.
  """
  ways = ways_split(mesh, spec)
  where = NamedSharding(mesh, PartitionSpec(*spec[:1])).devices_indices_map(
      (ways,)
  )
  blocks = {}
  for device, index in where.items():
    held = blocks.setdefault(device.process_index, set())
    held.update(range(*index[0].indices(ways)))
  return {process: tuple(sorted(held)) for process, held in blocks.items()}


def shards(mesh: Mesh, spec: PartitionSpec) -> list[tuple[int, ...]]:
  """Returns the distinct sets of blocks that hosts read, in row order.

  Raises:
    ValueError: two hosts share some of their rows but not all: then no equal
      reading is possible.
  """
  by_process = blocks_by_process(mesh, spec)
  distinct = sorted(set(by_process.values()))
  overlap = sum(map(len, distinct)) != ways_split(mesh, spec)
  if overlap or len(set(map(len, distinct))) > 1:
    raise ValueError(
        f'The mesh {dict(mesh.shape)} splits the rows of the batch unevenly '
        f'over processes (process -> blocks of rows): {by_process}.\n'
        'Expected processes to hold either the same rows or different ones.\n'
        'Make the product of the model, sequence and expert axes a divisor or '
        'a multiple of the number of devices of a process.'
    )
  return distinct


def data_layout(
    mesh: Mesh,
    spec: PartitionSpec,
    *,
    batch_size: int | None = None,
    process_index: int | None = None,
) -> DataLayout:
  """Returns how this host (or the given one) reads a batch.

  Args:
    mesh: the mesh.
    spec: of the batch; its first entry names the axes that split rows.
    batch_size: rows of the global batch; None takes one row per split.
    process_index: None takes this process.

  Raises:
    ValueError: the batch cannot be split evenly.
  """
  ways = ways_split(mesh, spec)
  batch_size = ways if batch_size is None else int(batch_size)
  if batch_size < 1 or batch_size % ways:
    below = batch_size // ways * ways
    near = [n for n in (below, below + ways) if n > 0]
    raise ValueError(
        f'A batch of {batch_size} rows cannot be split over the {ways} '
        f'data-parallel parts of the mesh {dict(mesh.shape)} (axes {spec[0]}).'
        f'\nExpected a multiple of {ways}.\n'
        f'Set BATCH_SIZE to {" or ".join(map(str, near))}, or use a mesh with '
        'fewer data-parallel parts (raise num_partitions).'
    )
  process = jax.process_index() if process_index is None else process_index
  by_process = blocks_by_process(mesh, spec)
  if process not in by_process:
    raise ValueError(
        f'Process {process} has no device in the mesh.\n'
        f'Expected one of {sorted(by_process)}.\n'
        'Leave out host_index to take this process.'
    )
  distinct = shards(mesh, spec)
  mine = by_process[process]
  return DataLayout(
      batch_size=batch_size,
      shard_id=distinct.index(mine),
      num_shards=len(distinct),
      is_first_host_in_replica_set=process
      == min(p for p, held in by_process.items() if held == mine),
  )


def host_rows(
    mesh: Mesh,
    spec: PartitionSpec,
    *,
    batch_size: int,
    process_index: int | None = None,
) -> np.ndarray:
  """Returns the indices of the rows of a global batch that a host holds.

  A run of neighbours wherever hosts are neighbours along the data axis;
  a torus order can interleave them.
  """
  data_layout(
      mesh, spec, batch_size=batch_size, process_index=process_index
  )
  process = jax.process_index() if process_index is None else process_index
  size = batch_size // ways_split(mesh, spec)
  held = blocks_by_process(mesh, spec)[process]
  return np.concatenate([np.arange(b * size, (b + 1) * size) for b in held])


def global_batch(
    host_batch: Mapping[str, np.ndarray], *, mesh: Mesh, spec: PartitionSpec
) -> dict[str, jax.Array]:
  """Returns the global batch whose rows on this host are `host_batch`.

  Args:
    host_batch: feature -> [host rows, ...]; the rows are those of
      `host_rows`, in that order.
    mesh: the mesh.
    spec: of the batch.

  Raises:
    ValueError: features of unequal rows, or rows that cannot be split over
      this host's devices.
  """
  held = blocks_by_process(mesh, spec)[jax.process_index()]
  num_rows = _checked_num_rows(host_batch, len(held))
  sharding = NamedSharding(mesh, spec)
  if len(set(d.process_index for d in mesh.devices.flat)) == 1:
    return jax.device_put(
        {name: np.asarray(array) for name, array in host_batch.items()},
        sharding,
    )
  global_rows = num_rows // len(held) * ways_split(mesh, spec)
  return {
      name: _global_array(np.asarray(array), global_rows, held, sharding)
      for name, array in host_batch.items()
  }


def _checked_num_rows(host_batch, num_blocks: int) -> int:
  rows = {
      name: np.shape(array)[0] if np.ndim(array) else None
      for name, array in host_batch.items()
  }
  counts = set(rows.values())
  if len(counts) == 1 and None not in counts:
    (num_rows,) = counts
    if num_rows > 0 and num_rows % num_blocks == 0:
      return num_rows
  raise ValueError(
      f'This host got a batch of rows {rows} (feature -> rows, None = no rows '
      'at all).\n'
      f'Expected equal rows in all features, a multiple of {num_blocks}: the '
      'data-parallel parts on this host.\n'
      'Read batch_size / num_shards rows of get_data_layout(batch_size) and '
      'pad the last batch of an epoch.'
  )


def _global_array(array, global_rows: int, held, sharding) -> jax.Array:
  """One feature: each local device gets its own rows."""
  size = array.shape[0] // len(held)
  global_shape = (global_rows, *array.shape[1:])
  where = sharding.addressable_devices_indices_map(global_shape)
  pieces, devices = [], []
  for device, index in where.items():
    start, stop = index[0].indices(global_rows)[:2]
    first = held.index(start // size) * size
    rest = index[1:]
    pieces.append(array[(slice(first, first + stop - start), *rest)])
    devices.append(device)
  return jax.make_array_from_single_device_arrays(
      global_shape, sharding, jax.device_put(pieces, devices)
  )


def local_chunk(
    mesh: Mesh, spec: PartitionSpec, global_shape: tuple[int, ...]
) -> LocalChunkInfo:
  """Returns the bounding slice of an array on this host (T5X's meaning)."""
  where = NamedSharding(mesh, spec).devices_indices_map(global_shape)
  by_process = {}
  for device, index in where.items():
    by_process.setdefault(device.process_index, []).append(
        _bounds(index, global_shape)
    )
  boxes = {
      process: tuple(
          (min(b[0] for b in dim), max(b[1] for b in dim))
          for dim in zip(*held, strict=True)
      )
      for process, held in sorted(by_process.items())
  }
  mine = boxes[jax.process_index()]
  same = [process for process, box in boxes.items() if box == mine]
  return LocalChunkInfo(
      slice=tuple(slice(*bounds) for bounds in mine),
      replica_id=same.index(jax.process_index()),
  )
