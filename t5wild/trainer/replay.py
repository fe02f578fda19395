# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Sums of what every device holds, and of a gradient that each computes anew.

A device that computes wrongly says nothing. Two things tell of it: parameters
that lie on several devices must have the same bits on all of them, and a
gradient computed twice, on the same device and on another one, too.
"""

from collections.abc import Callable, Mapping
import functools
from typing import Any

from flax.linen import partitioning as flax_partitioning
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec
import numpy as np

from t5wild.vitals import corruption

PyTree = Any
Sums = dict[str, list[corruption.Sum]]
_WORDS = {1: jnp.uint8, 2: jnp.uint16, 4: jnp.uint32, 8: jnp.uint32}


def sums_of(x: jax.Array) -> tuple[jax.Array, jax.Array]:
  """Two sums of an array: of its bits (uint32), of its squares (float32).

  Any one bit that differs changes the first: each word counts an odd number of
  times, which depends on its place. It is the same in whatever order it is
  added.
  """
  number = x.astype(jnp.uint8) if x.dtype == jnp.bool_ else x
  words = jax.lax.bitcast_convert_type(number, _WORDS[number.dtype.itemsize])
  words = words.reshape(-1).astype(jnp.uint32)
  place = jax.lax.iota(jnp.uint32, words.size)
  weight = (place * jnp.uint32(2654435761)) | jnp.uint32(1)
  values = x.astype(jnp.float32)
  return (
      jnp.sum(words * weight, dtype=jnp.uint32),
      jnp.sum(values * values, dtype=jnp.float32),
  )


def _sums_of_tree(tree: PyTree) -> tuple[jax.Array, jax.Array]:
  """Both sums of each leaf: [1, leaf] each."""
  bits, squares = zip(*map(sums_of, jax.tree.leaves(tree)), strict=True)
  return jnp.stack(bits)[None], jnp.stack(squares)[None]


def names_of(params: PyTree) -> list[str]:
  """Name of each leaf, in the order of `jax.tree.leaves`."""
  paths = jax.tree_util.tree_flatten_with_path(params)[0]
  return [
      '/'.join(str(getattr(key, 'key', key)) for key in path)
      for path, _ in paths
  ]


def groups_of(params: PyTree) -> dict[str, list[list[int]]]:
  """Name of an array -> groups of devices (rows) that hold the same part.

  Args:
    params: of jax.Arrays or ShapeDtypeStructs with shardings of one mesh.
  """
  found = {}
  for name, leaf in zip(names_of(params), jax.tree.leaves(params), strict=True):
    rows = {d: r for r, d in enumerate(leaf.sharding.mesh.devices.flat)}
    by_part: dict[str, list[int]] = {}
    for device, part in leaf.sharding.devices_indices_map(leaf.shape).items():
      by_part.setdefault(str(part), []).append(rows[device])
    found[name] = [sorted(group) for group in by_part.values()]
  return found


class Summed:
  """A function of which every device computes the sums of its own part.

  Results come to all processes; reading them waits for the devices.
  """

  def __init__(
      self,
      fn: Callable[..., PyTree],
      *,
      mesh: jax.sharding.Mesh,
      in_specs: tuple[PyTree, ...],
  ):
    """Compiles nothing yet.

    Args:
      fn: Of local arrays; no device sees another one's while it runs.
      mesh: Of the run.
      in_specs: PartitionSpecs of the arguments.
    """
    local = jax.shard_map(
        lambda *args: _sums_of_tree(fn(*args)),
        mesh=mesh,
        in_specs=in_specs,
        out_specs=PartitionSpec(mesh.axis_names),
        check_vma=False,
    )
    everywhere = NamedSharding(mesh, PartitionSpec())
    self._fn = jax.jit(local, out_shardings=everywhere)

  def compile(self, *args: Any) -> None:
    """Compiles for arguments like these; runs nothing."""
    with flax_partitioning.axis_rules(()):
      self._fn = self._fn.lower(*args).compile()

  def __call__(self, *args: Any) -> tuple[jax.Array, jax.Array]:
    """Starts the computation; returns before it is done."""
    # No rules: inside, an array is the device's own and has no mesh axes.
    with flax_partitioning.axis_rules(()):
      return self._fn(*args)


def read(names: list[str], sums: tuple[jax.Array, jax.Array]) -> Sums:
  """Name of an array -> its sums by device; waits for them."""
  bits, squares = (np.asarray(x.addressable_data(0)) for x in sums)
  return {
      name: list(
          zip(bits[:, i].tolist(), squares[:, i].tolist(), strict=True)
      )
      for i, name in enumerate(names)
  }


def make_replica_sums(params: PyTree) -> Summed:
  """(params) -> sums of every device's own copy or part."""
  mesh = jax.tree.leaves(params)[0].sharding.mesh
  specs = jax.tree.map(lambda x: x.sharding.spec, params)
  return Summed(lambda own: own, mesh=mesh, in_specs=(specs,))


def make_local_replay(model: Any, params: PyTree) -> Summed:
  """(params, mutables, rows, key) -> sums of the gradient on every device.

  Each device computes the whole gradient of the same rows by itself, from its
  own copy of the parameters. Parts are gathered first.
  """
  mesh = jax.tree.leaves(params)[0].sharding.mesh
  return Summed(
      functools.partial(_gradient, model),
      mesh=mesh,
      in_specs=(PartitionSpec(),) * 4,
  )


def _gradient(model, params, mutables, rows, key) -> PyTree:
  extra = (mutables,) if mutables else ()
  return jax.grad(lambda p: model.loss_fn(p, rows, key, *extra)[0])(params)


@functools.partial(jax.jit, static_argnums=(1, 2))
def _first_rows(batch, num_rows: int, mesh: jax.sharding.Mesh):
  everywhere = NamedSharding(mesh, PartitionSpec())
  return jax.tree.map(
      lambda x: jax.lax.with_sharding_constraint(x[:num_rows], everywhere),
      batch,
  )


def first_rows(
    batch: Mapping[str, jax.Array], num_rows: int
) -> dict[str, jax.Array]:
  """The first rows of a global batch, on every device."""
  mesh = next(iter(batch.values())).sharding.mesh
  return _first_rows(dict(batch), num_rows, mesh)


def everywhere(
    tree: Mapping[str, jax.Array], *, mesh: jax.sharding.Mesh
) -> dict[str, jax.Array]:
  """The same arrays on every device; they are equal on all processes."""
  whole = NamedSharding(mesh, PartitionSpec())

  def placed(x: np.ndarray) -> jax.Array:
    return jax.make_array_from_callback(x.shape, whole, lambda part: x[part])

  return {name: placed(np.asarray(x)) for name, x in tree.items()}


class ShardedReplay:
  """(params, mutables, rows, key) -> sums of the gradient, parts apart.

  For parameters that no device can hold whole: all devices compute the gradient
  together, as in a step. It tells a device that differs from itself, not one
  that is always wrong.
  """

  def __init__(self, model: Any, params: PyTree, *, partitioner: Any):
    """Compiles nothing yet."""
    specs = jax.tree.map(lambda x: x.sharding.spec, params)
    batch = partitioner.data_partition_spec
    self._gradient = partitioner.partition(
        functools.partial(_gradient, model),
        in_axis_resources=(specs, None, batch, None),
        out_axis_resources=specs,
    )
    self._sums = make_replica_sums(params)

  def compile(self, params: PyTree, *args: Any) -> None:
    """Compiles for arguments like these; runs nothing."""
    self._gradient = self._gradient.lower(params, *args).compile()
    self._sums.compile(params)

  def __call__(self, *args: Any) -> tuple[jax.Array, jax.Array]:
    """Starts the computation; returns before it is done."""
    return self._sums(self._gradient(*args))
