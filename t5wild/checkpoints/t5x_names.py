# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's functions on the state dicts of checkpoints, for code outside."""

from collections.abc import Mapping
from typing import Any

from absl import logging
from flax import traverse_util
import flax.core

from t5wild.checkpoints import transforms


def flatten_state_dict(
    state_dict: Mapping[str, Any], keep_empty_nodes: bool = False
) -> dict[str, Any]:
  """Returns the leaves by key, such as 'target/decoder/norm/scale'.

  Args:
    state_dict: nested; where T5X has written an array apart, the specification
      of its file is a leaf.
    keep_empty_nodes: whether an empty dict is a leaf too.
  """
  return traverse_util.flatten_dict(
      flax.core.unfreeze(state_dict),
      keep_empty_nodes=keep_empty_nodes,
      is_leaf=lambda _, node: {'driver', 'kvstore'} <= set(node),
      sep='/',
  )


def get_name_tree(
    state_dict: Mapping[str, Any], keep_empty_nodes: bool = False
) -> dict[str, Any]:
  """Returns the tree with each leaf's own name in its place: 'a/b/c'."""
  flat = traverse_util.flatten_dict(
      state_dict, keep_empty_nodes=keep_empty_nodes
  )
  return traverse_util.unflatten_dict({path: '/'.join(path) for path in flat})


def intersect_state(
    state_dict: Mapping[str, Any], intersect_state_dict: Mapping[str, Any]
) -> dict[str, Any]:
  """Returns the leaves of `state_dict` that the other has too; logs others."""
  kept = transforms.flatten(intersect_state_dict)
  flat = transforms.flatten(state_dict)
  for name in sorted(flat.keys() - kept.keys()):
    logging.warning('%s is left out: the checkpoint lacks it.', name)
  return transforms.unflatten({k: v for k, v in flat.items() if k in kept})


def merge_state(
    state_dict: Mapping[str, Any],
    from_scratch_state: Mapping[str, Any],
    overwrite: bool = False,
) -> dict[str, Any]:
  """Returns `state_dict` with what only `from_scratch_state` has; logs it.

  Args:
    state_dict: leaves that are kept.
    from_scratch_state: leaves that are added.
    overwrite: takes those that both have from `from_scratch_state`.
  """
  flat = transforms.flatten(state_dict)
  for name, leaf in transforms.flatten(from_scratch_state).items():
    if overwrite or name not in flat:
      logging.warning('%s starts from scratch.', name)
      flat[name] = leaf
  return transforms.unflatten(flat)
