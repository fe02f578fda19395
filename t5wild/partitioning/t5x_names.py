# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's functions on meshes and hosts that code outside calls by name."""

from collections.abc import Sequence
from typing import Any

import jax
from jax.experimental import multihost_utils
from jax.interpreters import pxla
from jax.sharding import Mesh
from jax.sharding import PartitionSpec

from t5wild.partitioning import layout
from t5wild.partitioning import partitioner as partitioner_lib


def default_mesh(
    num_partitions: int,
    model_parallel_submesh: Sequence[int] | None = None,
    backend: str | None = None,
    ici_mesh_shape: Sequence[int] | None = None,
    dcn_mesh_shape: Sequence[int] | None = None,
) -> Mesh:
  """Returns T5X's mesh of two axes, 'data' and 'model'.

  It has the devices of a `PjitPartitioner` of these arguments, in its order.
  """
  mesh = partitioner_lib.PjitPartitioner(
      num_partitions=num_partitions if model_parallel_submesh is None else None,
      model_parallel_submesh=model_parallel_submesh,
      backend=backend,
      ici_mesh_shape=ici_mesh_shape,
      dcn_mesh_shape=dcn_mesh_shape,
  ).mesh
  devices = mesh.devices.reshape(-1, mesh.shape['model'])
  return Mesh(devices, ('data', 'model'))


def get_coords(device: Any) -> tuple[int, ...]:
  """Returns a TPU's coordinates and core; of others host and place on it."""
  if hasattr(device, 'coords'):
    return (*device.coords, device.core_on_chip)
  return (device.process_index, device.id % jax.local_device_count())


def bounds_from_last_device(last_device: Any) -> tuple[int, ...]:
  """Returns the sizes of the hardware mesh whose last device this is."""
  if hasattr(last_device, 'coords'):
    return tuple(i + 1 for i in (*last_device.coords, last_device.core_on_chip))
  return (jax.process_count(), jax.local_device_count())


def global_mesh_defined() -> bool:
  """Whether the caller is within `with mesh:`."""
  return not pxla.thread_resources.env.physical_mesh.empty


class LocalChunker:
  """Says which part of an array this host holds.

  Attributes:
    global_mesh: the mesh of all hosts.
    num_chunks: by mesh axis, in how many parts the hosts split it.
    chunk_ids: by mesh axis, the number of this host's part.
  """

  def __init__(self, global_mesh: Mesh):
    """Looks up this host's place in the mesh."""
    self.global_mesh = global_mesh
    local = global_mesh.local_mesh
    first = local.devices.flat[0]
    place = next(
        index
        for index, device in _enumerated(global_mesh.devices)
        if device is first or device == first
    )
    self.num_chunks, self.chunk_ids = {}, {}
    for axis, position in zip(global_mesh.axis_names, place, strict=True):
      self.num_chunks[axis] = global_mesh.shape[axis] // local.shape[axis]
      self.chunk_ids[axis] = position // local.shape[axis]

  def get_local_chunk_info(
      self,
      global_shape: tuple[int, ...],
      mesh_axes: Sequence[str | None],
  ) -> layout.LocalChunkInfo:
    """Returns this host's slice of an array, split over these mesh axes."""
    slices = []
    for size, axis in zip(global_shape, mesh_axes, strict=True):
      if axis is None:
        slices.append(slice(None))
        continue
      step = size // self.num_chunks[axis]
      start = self.chunk_ids[axis] * step
      slices.append(slice(start, start + step))
    replica = 0
    for axis in self.global_mesh.axis_names:
      if axis not in mesh_axes:
        replica = replica * self.num_chunks[axis] + self.chunk_ids[axis]
    return layout.LocalChunkInfo(slice=tuple(slices), replica_id=replica)


def host_local_array_to_global_array(
    arr: Any, mesh: Mesh, spec: PartitionSpec
) -> jax.Array:
  """Returns the global array of what every host holds its part of."""
  return multihost_utils.host_local_array_to_global_array(arr, mesh, spec)


def multihost_assert_equal(input_tree: Any, fail_message: str = '') -> None:
  """Raises AssertionError unless all hosts have the same numbers."""
  multihost_utils.assert_equal(input_tree, fail_message)


def _enumerated(devices: Any) -> Any:
  """(index, device) of each device of a mesh."""
  flat = devices.flat
  for _ in range(devices.size):
    index = flat.coords
    yield index, next(flat)


