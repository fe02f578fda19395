# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The mesh: how many devices lie along each axis, and which device where.

Every mesh has the five axes of `MESH_AXES`, those that are not used with
size 1, so a spec written for one mesh is valid on all. Neighbours along the
last axes lie on one host or one slice, where the links are fast; the replica
and data axes are the ones that cross hosts.
"""

from collections.abc import Mapping, Sequence
import math
from typing import Any

from absl import logging
from jax.experimental import mesh_utils
from jax.sharding import AxisType
from jax.sharding import Mesh
import numpy as np

from t5wild.partitioning import fast_domains

MESH_AXES = ('replica', 'data', 'model', 'sequence', 'expert')

# Axes a T5X mesh shape of that many numbers stands for.
_SHAPE_AXES = {
    2: ('data', 'model'),
    3: ('replica', 'data', 'model'),
    len(MESH_AXES): MESH_AXES,
}


class MisfitError(ValueError):
  """The mesh asked for cannot be laid over the devices there are."""


def mesh_sizes(
    num_devices: int,
    *,
    num_partitions: int | None = None,
    model_parallel_submesh: Sequence[int] | None = None,
    mesh_shape: Mapping[str, int] | None = None,
    ici_mesh_shape: Sequence[int] | None = None,
    dcn_mesh_shape: Sequence[int] | None = None,
) -> dict[str, int]:
  """Returns the size of every mesh axis; what is not named is data parallel.

  The most explicit description wins: `mesh_shape`, then the ICI and DCN
  shapes, then `model_parallel_submesh`, then `num_partitions`. With none of
  them all devices are data parallel.

  Args:
    num_devices: devices of all processes together.
    num_partitions: size of the model axis.
    model_parallel_submesh: a tile of devices; its product is the size of the
      model axis.
    mesh_shape: axis name -> size; a missing axis has size 1, a missing `data`
      or one size of -1 takes the devices that are left.
    ici_mesh_shape: sizes within a slice or host, of (data, model), (replica,
      data, model) or all of `MESH_AXES`.
    dcn_mesh_shape: the same across slices or hosts; axis sizes are the
      products of both.

  Raises:
    MisfitError: the sizes do not fit the devices.
    ValueError: the sizes are none.
  """
  is_counted = False
  if mesh_shape is not None:
    sizes = _sizes_of_mapping(mesh_shape, num_devices)
  elif ici_mesh_shape is not None or dcn_mesh_shape is not None:
    ici = sizes_of_shape(ici_mesh_shape, name='ici_mesh_shape')
    dcn = sizes_of_shape(dcn_mesh_shape, name='dcn_mesh_shape')
    sizes = {axis: ici[axis] * dcn[axis] for axis in MESH_AXES}
  else:
    is_counted = model_parallel_submesh is None
    model = _model_size(num_partitions, model_parallel_submesh)
    sizes = dict.fromkeys(MESH_AXES, 1)
    sizes['model'] = model
    sizes['data'] = num_devices // model if num_devices % model == 0 else -1
  _check_fit(sizes, num_devices, is_counted=is_counted)
  return sizes


def sizes_of_shape(
    shape: Sequence[int] | None, *, name: str
) -> dict[str, int]:
  """Returns axis -> size of a T5X mesh shape; None stands for all ones."""
  if shape is None:
    return dict.fromkeys(MESH_AXES, 1)
  if len(shape) not in _SHAPE_AXES:
    raise ValueError(
        f'{name} = {tuple(shape)!r} has {len(shape)} sizes.\n'
        f'Expected 2 (data, model), 3 (replica, data, model) or '
        f'{len(MESH_AXES)} {MESH_AXES}.\n'
        f'Write {name} with one size for each of these axes, or use '
        "mesh_shape = {'data': ..., 'model': ...}."
    )
  given = dict(zip(_SHAPE_AXES[len(shape)], map(int, shape), strict=True))
  return {axis: given.get(axis, 1) for axis in MESH_AXES}


def _model_size(num_partitions, submesh) -> int:
  """Size of the model axis; a submesh wins over num_partitions, as in T5X."""
  if submesh is None:
    return 1 if num_partitions is None else int(num_partitions)
  size = math.prod(int(n) for n in submesh)
  if num_partitions and num_partitions != size:
    logging.warning(
        'Both num_partitions = %d and model_parallel_submesh = %r (%d devices) '
        'are set: the submesh is used. Set num_partitions = None to say so.',
        num_partitions, tuple(submesh), size,
    )
  return size


def _sizes_of_mapping(mesh_shape, num_devices: int) -> dict[str, int]:
  unknown = sorted(set(mesh_shape) - set(MESH_AXES))
  if unknown:
    raise ValueError(
        f'mesh_shape names unknown axes {unknown}.\n'
        f'Expected axes out of {MESH_AXES}.\n'
        "Rename them, for example mesh_shape = {'data': -1, 'model': 2}."
    )
  sizes = {axis: int(mesh_shape.get(axis, 1)) for axis in MESH_AXES}
  if 'data' not in mesh_shape and -1 not in sizes.values():
    sizes['data'] = -1
  free = [axis for axis, size in sizes.items() if size == -1]
  if len(free) > 1:
    raise ValueError(
        f'mesh_shape leaves {len(free)} sizes open (-1): {free}.\n'
        'Expected at most one open size.\n'
        'Give a number for all but one of them.'
    )
  taken = math.prod(size for size in sizes.values() if size != -1)
  if free and taken > 0 and num_devices % taken == 0:
    sizes[free[0]] = num_devices // taken
  return sizes


def _check_fit(
    sizes: Mapping[str, int], num_devices: int, *, is_counted: bool
) -> None:
  """Refuses sizes that do not fit; `is_counted`: num_partitions gave them."""
  open_axes = [axis for axis, size in sizes.items() if size < 1]
  fixed = math.prod(size for size in sizes.values() if size >= 1)
  if not open_axes and fixed == num_devices:
    return
  divisors = [n for n in range(1, num_devices + 1) if num_devices % n == 0]
  shown = {axis: n for axis, n in sizes.items() if n not in (1, -1)}
  flag = (
      f'num_partitions={math.gcd(max(sizes["model"], 1), num_devices)}'
      if is_counted
      else "mesh_shape={'data': -1}"
  )
  raise MisfitError(
      f'The mesh {shown} does not fit the {num_devices} device(s) of this run: '
      f'the given sizes take {fixed}.\n'
      f'Expected sizes of at least 1 whose product is {num_devices}; a model '
      f'axis (num_partitions) can be one of {divisors}.\n'
      "Change num_partitions or mesh_shape (leave out 'data' to let it take "
      'the rest), or start the run on another number of devices: here '
      f'"--gin.partitioning.PjitPartitioner.{flag}" would do.'
  )


def make_mesh(
    devices: Sequence[Any],
    *,
    sizes: Mapping[str, int],
    dcn_sizes: Mapping[str, int] | None = None,
    model_parallel_submesh: Sequence[int] | None = None,
) -> Mesh:
  """Returns the mesh of `devices`, ordered as `arrange_devices` does."""
  array = arrange_devices(
      devices,
      sizes=sizes,
      dcn_sizes=dcn_sizes,
      model_parallel_submesh=model_parallel_submesh,
  )
  mesh = Mesh(
      array, MESH_AXES, axis_types=(AxisType.Auto,) * len(MESH_AXES)
  )
  logging.info('mesh %s over %d devices', dict(mesh.shape), mesh.size)
  fast_domains.warn_of_crossings(array, axes=MESH_AXES)
  return mesh


def arrange_devices(
    devices: Sequence[Any],
    *,
    sizes: Mapping[str, int],
    dcn_sizes: Mapping[str, int] | None = None,
    model_parallel_submesh: Sequence[int] | None = None,
) -> np.ndarray:
  """Returns an array of devices with one dimension per mesh axis.

  Args:
    devices: devices of one platform; only their attributes are read.
    sizes: size of every axis.
    dcn_sizes: which part of each axis crosses the slow network. None: what
      crosses slices is taken from the outermost axes that divide.
    model_parallel_submesh: on a TPU torus, the (x, y, z, core) tile that the
      model axis covers.
  """
  granules = _granules(devices, dcn_sizes)
  if dcn_sizes is None:
    dcn_sizes = _spread(sizes, len(granules))
  outer = [dcn_sizes[axis] for axis in MESH_AXES]
  inner = [sizes[axis] // dcn_sizes[axis] for axis in MESH_AXES]
  blocks = np.empty((len(granules), math.prod(inner)), dtype=object)
  for i, granule in enumerate(granules):
    tile = _arrange_granule(granule, inner, model_parallel_submesh)
    blocks[i] = tile.reshape(-1)
  # [outer0, ..., inner0, ...] -> [outer0, inner0, outer1, inner1, ...]
  blocks = blocks.reshape(*outer, *inner)
  count = len(MESH_AXES)
  order = [i for axis in range(count) for i in (axis, axis + count)]
  return blocks.transpose(order).reshape([sizes[axis] for axis in MESH_AXES])


def _slice_of(device) -> int:
  return getattr(device, 'slice_index', None) or 0


def _granules(devices, dcn_sizes) -> list[list[Any]]:
  """Groups of devices with fast links inside and slow ones between.

  Slices where the devices know them; else, when a DCN shape is asked for,
  processes, and at last equal runs of the ordered devices, so that a DCN
  shape also works on hosts without slices and in one process.
  """
  ordered = sorted(
      devices, key=lambda d: (_slice_of(d), d.process_index, d.id)
  )
  by_slice = _grouped(ordered, _slice_of)
  if dcn_sizes is None:
    return by_slice
  wanted = math.prod(dcn_sizes.values())
  for groups in (by_slice, _grouped(ordered, lambda d: d.process_index)):
    if len(groups) == wanted:
      return groups
  size = len(ordered) // wanted
  return [ordered[i * size : (i + 1) * size] for i in range(wanted)]


def _grouped(devices, key) -> list[list[Any]]:
  groups = {}
  for device in devices:
    groups.setdefault(key(device), []).append(device)
  return list(groups.values())


def _spread(sizes: Mapping[str, int], num_slices: int) -> dict[str, int]:
  """Splits `num_slices` over the axes, the outermost first."""
  spread, left = {}, num_slices
  for axis in MESH_AXES:
    spread[axis] = math.gcd(sizes[axis], left)
    left //= spread[axis]
  if left != 1:
    raise MisfitError(
        f'The mesh {dict(sizes)} cannot be laid over {num_slices} slices.\n'
        'Expected axis sizes that the number of slices can be split over.\n'
        f'Make replica or data a multiple of {num_slices}.'
    )
  return spread


def _arrange_granule(devices, inner, submesh) -> np.ndarray:
  """Orders the devices of one slice or host group into shape `inner`."""
  if len(devices) != math.prod(inner):
    raise MisfitError(
        f'A slice has {len(devices)} devices, its part of the mesh takes '
        f'{math.prod(inner)} {tuple(inner)}.\n'
        'Expected slices of equal size.\n'
        'Leave out the incomplete slice, or set ici_mesh_shape and '
        'dcn_mesh_shape.'
    )
  if devices[0].platform != 'tpu':
    if devices[0].platform == 'gpu':
      devices = fast_domains.in_order(devices)
    return _object_array(devices).reshape(inner)
  if submesh is not None and len(submesh) == 4:
    tiled = _tile_torus(devices, tuple(map(int, submesh)))
    if tiled is not None and tiled.size == math.prod(inner):
      return tiled.reshape(inner)
  return mesh_utils.create_device_mesh(
      inner, devices, allow_split_physical_axes=True
  )


def _object_array(devices) -> np.ndarray:
  array = np.empty(len(devices), dtype=object)
  array[:] = devices
  return array


def _tile_torus(devices, submesh) -> np.ndarray | None:
  """[data, model] array whose rows are `submesh` tiles of the torus.

  None when the devices do not fill a box (then no tiling by coordinates is
  possible). Raises MisfitError when the tile does not divide the box.
  """
  if not all(hasattr(device, 'coords') for device in devices):
    return None
  places = np.array([(*d.coords, d.core_on_chip) for d in devices])
  places -= places.min(axis=0)
  bounds = places.max(axis=0) + 1
  if math.prod(bounds) != len(devices):
    return None
  if any(b % m for b, m in zip(bounds, submesh, strict=True)):
    raise MisfitError(
        f'model_parallel_submesh = {submesh} does not tile the torus of '
        f'(x, y, z, core) = {tuple(int(b) for b in bounds)}.\n'
        'Expected each size to divide the one of the torus.\n'
        f'Use num_partitions = {math.prod(submesh)} to have the tile chosen, '
        'or change the submesh.'
    )
  grid = np.empty(bounds, dtype=object)
  for device, place in zip(devices, places, strict=True):
    grid[tuple(place)] = device
  split = [
      n for b, m in zip(bounds, submesh, strict=True) for n in (b // m, m)
  ]
  grid = grid.reshape(split).transpose(0, 2, 4, 6, 1, 3, 5, 7)
  return grid.reshape(-1, math.prod(submesh))
