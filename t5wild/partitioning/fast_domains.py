# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which devices fast links join, and which axes of a mesh leave these domains.

A domain is a TPU slice, or the GPUs of one host (or of one NVLink fabric). JAX
tells it as `slice_index`, of GPUs too: there it is the host. Described GPUs all
have slice 0, and are told apart by their process.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from absl import logging
import numpy as np

from t5wild import hardware

# Axes whose traffic waits in every layer; replica and data send once a step, or
# a layer's parameters ahead of their use.
FAST_AXES = ('model', 'sequence', 'expert')


def domains(devices: Sequence[Any]) -> list[Hashable]:
  """The domain of each device."""
  slices = [getattr(d, 'slice_index', None) or 0 for d in devices]
  if len(set(slices)) > 1 or devices[0].platform != 'gpu':
    return slices
  processes = [d.process_index for d in devices]
  if len(set(processes)) == len(processes):
    return slices  # a process for each GPU: that says nothing of hosts
  return processes


def in_order(devices: Sequence[Any]) -> list[Any]:
  """Devices by id, with those of a domain beside each other.

  In this order the last axes of a mesh stay inside a domain whenever sizes
  allow it at all: whenever their product divides the domain's. Ids follow the
  topology that XLA found, processes may not, so that domains come in the order
  of their lowest ids.
  """
  lowest: dict[Hashable, int] = {}
  of_device = dict(zip(map(id, devices), domains(devices), strict=True))
  for device in sorted(devices, key=lambda d: d.id):
    lowest.setdefault(of_device[id(device)], device.id)
  return sorted(devices, key=lambda d: (lowest[of_device[id(d)]], d.id))


def crossing_axes(array: np.ndarray, *, axes: Sequence[str]) -> dict[str, int]:
  """Axes along which domains differ -> domains that one line of it meets.

  Args:
    array: devices, a dimension for each axis.
    axes: their names.
  """
  flat = list(array.reshape(-1))
  numbers = {key: i for i, key in enumerate(dict.fromkeys(domains(flat)))}
  of_device = np.array([numbers[key] for key in domains(flat)])
  of_device = of_device.reshape(array.shape)
  found = {}
  for dimension, axis in enumerate(axes):
    lines = np.moveaxis(of_device, dimension, -1)
    lines = lines.reshape(-1, array.shape[dimension])
    most = max(len(set(line)) for line in lines.tolist())
    if most > 1:
      found[axis] = most
  return found


def warn_of_crossings(array: np.ndarray, *, axes: Sequence[str]) -> list[str]:
  """Logs a warning for each fast axis that leaves its domain; returns them."""
  crossing = crossing_axes(array, axes=axes)
  sizes = dict(zip(axes, array.shape, strict=True))
  messages = [
      _message(axis, crossing[axis], sizes, array.reshape(-1)[0])
      for axis in FAST_AXES
      if axis in crossing
  ]
  for message in messages:
    logging.warning('%s', message)
  return messages


def _message(
    axis: str, count: int, sizes: Mapping[str, int], device: Any
) -> str:
  chip = hardware.chip_of(device.device_kind)
  speeds = ''
  if chip and chip.link_bytes_per_second and chip.network_bytes_per_second:
    fast = chip.link_bytes_per_second * min(chip.num_links, 2)
    # A ring goes through the ports of all members that a domain has.
    members = max(1, sizes[axis] // count)
    slow = min(fast, members * chip.network_bytes_per_second)
    speeds = (
        f' ({slow / 1e9:g} GB/s in place of {fast / 1e9:g}: a byte takes '
        f'{fast / slow:.1f} times as long, and every sum the latency of the '
        'network)'
    )
  kind = 'hosts' if device.platform == 'gpu' else 'slices'
  return (
      f'The {axis} axis of size {sizes[axis]} spans {count} {kind}: what is '
      f'sent over it in every layer crosses the slow network{speeds}.\n'
      f'Expected an axis within one of the {kind}.\n'
      f'Make {axis} smaller and data or replica larger; `t5wild precompile '
      '--topology=...` says how many bytes a step sends over it.'
  )
