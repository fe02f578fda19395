# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A second copy of a state on CPU devices, for a save to read from.

On an accelerator a save copies off the device. On a CPU the "copy" is the
state's own memory, and the next step, which is to reuse that memory, is made
to allocate all of it anew by the runtime: correct, but on fresh pages (seconds
a gigabyte). Memory kept from save to save makes it one plain copy.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp


def _copy(source):
  return jax.tree.map(jnp.copy, source)


def _copy_onto(old, source):
  del old  # Donated: the copies are written into its memory.
  return _copy(source)


@dataclasses.dataclass
class _Copies:
  """The copies on one set of devices, and the program that renews them."""

  shapes: dict[str, Any]
  arrays: dict[str, jax.Array]
  renew: Any

  @classmethod
  def of(cls, source: dict[str, jax.Array]) -> '_Copies':
    shardings = {key: array.sharding for key, array in source.items()}
    return cls(
        shapes=_shapes(source),
        arrays=jax.jit(_copy, out_shardings=shardings)(source),
        renew=jax.jit(
            _copy_onto,
            donate_argnums=0,
            keep_unused=True,
            out_shardings=shardings,
        ),
    )

  def refresh(self, source: dict[str, jax.Array]) -> None:
    self.arrays = self.renew(self.arrays, source)


class HostStaging:
  """Copies of the CPU arrays of a state, in memory kept between saves."""

  def __init__(self):
    """Holds nothing until the first copy."""
    self._copies = {}

  def copy(self, state: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the state with its CPU arrays replaced by copies.

    The copies before these are overwritten: nobody may be reading them.

    Args:
      state: Leaves by key; others than arrays on CPU devices are passed on.
    """
    by_devices = {}
    for key, leaf in state.items():
      if isinstance(leaf, jax.Array) and _is_on_cpu(leaf):
        devices = tuple(sorted(d.id for d in leaf.sharding.device_set))
        by_devices.setdefault(devices, {})[key] = leaf
    result = dict(state)
    for devices, source in by_devices.items():
      copies = self._copies.get(devices)
      if copies is None or copies.shapes != _shapes(source):
        copies = self._copies[devices] = _Copies.of(source)
      else:
        copies.refresh(source)
      result.update(
          {key: view(array) for key, array in copies.arrays.items()}
      )
    return result

  def clear(self) -> None:
    """Gives the memory back."""
    self._copies = {}


def is_all_on_cpu(state: Mapping[str, Any]) -> bool:
  """Whether `HostStaging` copies every leaf of a flat state."""
  return all(
      isinstance(leaf, jax.Array) and _is_on_cpu(leaf)
      for leaf in state.values()
  )


def _is_on_cpu(array: jax.Array) -> bool:
  return all(d.platform == 'cpu' for d in array.sharding.device_set)


def _shapes(source: Mapping[str, jax.Array]) -> dict[str, Any]:
  return {
      key: (array.shape, array.dtype, array.sharding)
      for key, array in source.items()
  }


def view(array: jax.Array) -> jax.Array:
  """Returns another array object over the same memory.

  What is read from an array keeps a reference to its memory in the array
  object; in one that dies after the save, it does not outlive the save.
  """
  return jax.make_array_from_single_device_arrays(
      array.shape,
      array.sharding,
      [shard.data for shard in array.addressable_shards],
  )
