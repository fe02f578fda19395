# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The PartitionSpec of every array of a train state."""

from collections.abc import Mapping
from typing import Any, Protocol

from absl import logging
from flax import traverse_util
from jax.sharding import Mesh
from jax.sharding import PartitionSpec

from t5wild.partitioning import rules as rules_lib


class TrainState(Protocol):
  """What a partitioner needs of a train state."""

  def state_dict(self) -> Mapping[str, Any]:
    """Returns the arrays as nested dicts."""

  def restore_state(self, state_dict: Mapping[str, Any]) -> 'TrainState':
    """Returns a copy that holds the leaves of `state_dict`."""

  def as_logical_axes(self) -> 'TrainState':
    """Returns a copy with logical axis names as leaves."""


def mesh_axes_of_state(
    train_state: TrainState,
    *,
    axes_state: TrainState,
    rules: rules_lib.LogicalAxisRules,
    mesh: Mesh,
) -> TrainState:
  """Returns a copy of the state with a PartitionSpec for every array.

  Scalars and arrays without logical axes are replicated. A dimension that its
  mesh axis does not divide stays whole; parameters this happens to are
  logged.

  Args:
    train_state: of arrays or ShapeDtypeStructs.
    axes_state: the same state with logical axes (or None) as leaves; a None
      in place of a subtree stands for all of it.
    rules: checked rules, as they apply on the mesh.
    mesh: the mesh.

  Raises:
    ValueError: a logical axis has no rule.
  """
  axes_by_path = _flat(axes_state.state_dict())
  specs, whole = {}, []
  for path, array in _flat(train_state.state_dict()).items():
    if array is traverse_util.empty_node:
      specs[path] = array
      continue
    axes = _axes_at(path, axes_by_path)
    shape = tuple(getattr(array, 'shape', ()))
    name = '/'.join(map(str, path))
    if axes is None:
      specs[path] = PartitionSpec()
      continue
    spec = rules_lib.spec_of_axes(axes, rules=rules, name=name, shape=shape)
    specs[path], dropped = rules_lib.fitted_spec(spec, shape=shape, mesh=mesh)
    if dropped and path[0] == 'target':
      whole.append(f'{name} {shape}: {"; ".join(dropped)}')
  if whole:
    logging.warning(
        'Not divided over the whole mesh %s, as the mesh axis does not divide '
        'the dimension (correct, but it takes more memory):\n  %s',
        dict(mesh.shape),
        '\n  '.join(whole),
    )
  # Into the state itself, not its axes: containers must be of equal types.
  return train_state.restore_state(traverse_util.unflatten_dict(specs))


def _flat(tree: Mapping[str, Any]) -> dict[tuple, Any]:
  return traverse_util.flatten_dict(tree, keep_empty_nodes=True)


def _axes_at(path: tuple, axes_by_path: Mapping[tuple, Any]) -> Any:
  """Logical axes at a path, or at the nearest path above it."""
  for end in range(len(path), 0, -1):
    if path[:end] in axes_by_path:
      axes = axes_by_path[path[:end]]
      return None if axes is traverse_util.empty_node else axes
  return None
