# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What an optimizer is: a definition, a state, and the target they update.

The definition is static (hyper-parameters and rules); the state and the target
are pytrees of arrays. T5X's names and checkpoint layout are kept:
`{'target': parameters, 'state': {'step', 'param_states'}}`.
"""

import abc
from collections.abc import Mapping
from typing import Any

from flax import serialization
from flax import struct
from flax import traverse_util
import flax.core
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

__all__ = [
    'Optimizer', 'OptimizerDef', 'OptimizerDefType', 'OptimizerState',
    'OptimizerStateType', 'OptimizerType',
]

PyTree = Any


def flatten_to_paths(tree: Mapping[str, Any]) -> dict[str, Any]:
  """Returns `{'a/b/c': leaf}` of a nested dict, frozen or not."""
  return traverse_util.flatten_dict(flax.core.unfreeze(tree), sep='/')


def unflatten_like(reference: PyTree, flat: Mapping[str, Any]) -> PyTree:
  """Returns the nested dict of `flat`, frozen when `reference` is."""
  tree = traverse_util.unflatten_dict(dict(flat), sep='/')
  if isinstance(reference, flax.core.FrozenDict):
    return flax.core.freeze(tree)
  return tree


def global_norm(tree: PyTree) -> Float[Array, '']:
  """Returns the Euclidean norm of all leaves together, in float32."""
  squares = [
      jnp.sum(jnp.square(x.astype(jnp.float32)))
      for x in jax.tree_util.tree_leaves(tree)
  ]
  return jnp.sqrt(sum(squares, start=jnp.zeros((), jnp.float32)))


def clip_by_global_norm(grads: PyTree, threshold: float | None) -> PyTree:
  """Returns gradients scaled so that their global norm is at most `threshold`.

  Pascanu et al. 2013, https://proceedings.mlr.press/v28/pascanu13.pdf.

  Args:
    grads: Gradients of any structure.
    threshold: Largest norm let through; None or 0 clips nothing (T5X's
      meaning).
  """
  if not threshold:
    return grads
  # min(1, threshold / norm), written so that a zero norm gives 1, not NaN.
  scale = threshold * jnp.minimum(1.0 / threshold, 1.0 / global_norm(grads))
  return jax.tree.map(lambda g: g * scale.astype(g.dtype), grads)


@struct.dataclass
class OptimizerState:
  """Number of finished updates and the per-parameter states.

  Attributes:
    step: Number of finished updates, an int32 scalar.
    param_states: What the optimizer remembers about the parameters.
  """

  step: Int[Array, '']
  param_states: PyTree


class OptimizerDef(abc.ABC):
  """Base class of an optimizer's definition.

  Subclasses implement `init_state`, `apply_gradient` and
  `derive_logical_axes`. A subclass with a method `set_param_axes` is given the
  logical axis names of all parameters when a train state is made.
  """

  def __init__(self, hyper_params: Any):
    """Keeps the hyper-parameters that no call overrides."""
    self.hyper_params = hyper_params

  @abc.abstractmethod
  def init_state(self, params: PyTree) -> OptimizerState:
    """Returns the state before the first update of `params`."""

  @abc.abstractmethod
  def apply_gradient(
      self, hyper_params: Any, params: PyTree, state: OptimizerState, grads
  ) -> tuple[PyTree, OptimizerState]:
    """Returns the updated parameters and state."""

  @abc.abstractmethod
  def derive_logical_axes(
      self, optimizer: 'Optimizer', param_logical_axes: PyTree
  ) -> 'Optimizer':
    """Returns `optimizer` with logical axes (None: replicated) as leaves."""

  def update_hyper_params(self, **hyper_param_overrides) -> Any:
    """Returns the hyper-parameters with overrides.

    Args:
      **hyper_param_overrides: Fields to replace; `hyper_params=` replaces the
        whole.
    """
    hyper_params = hyper_param_overrides.pop('hyper_params', self.hyper_params)
    if hyper_param_overrides:
      hyper_params = hyper_params.replace(**hyper_param_overrides)
    return hyper_params

  def create(self, target: PyTree) -> 'Optimizer':
    """Returns an optimizer of `target` before its first update."""
    return Optimizer(self, self.init_state(target), target)

  def state_dict(self, target: PyTree, state: OptimizerState) -> dict[str, Any]:
    """Returns nested dicts of arrays: what a checkpoint holds."""
    return {
        'target': serialization.to_state_dict(target),
        'state': serialization.to_state_dict(state),
    }

  def restore_state(
      self,
      opt_target: PyTree,
      opt_state: OptimizerState,
      state_dict: Mapping[str, Any],
  ) -> tuple[PyTree, OptimizerState]:
    """Returns target and state holding the leaves of `state_dict`."""
    return (
        serialization.from_state_dict(opt_target, state_dict['target']),
        serialization.from_state_dict(opt_state, state_dict['state']),
    )


class Optimizer(struct.PyTreeNode):
  """A definition, its state and the target it updates.

  Attributes:
    optimizer_def: The definition; static, not part of the pytree's leaves.
    state: An `OptimizerState`.
    target: The parameters.
  """

  optimizer_def: OptimizerDef = struct.field(pytree_node=False)
  state: Any
  target: Any

  def apply_gradient(self, grads: PyTree, **hyper_param_overrides):
    """Returns the optimizer after one update by `grads`."""
    hyper_params = self.optimizer_def.update_hyper_params(
        **hyper_param_overrides
    )
    target, state = self.optimizer_def.apply_gradient(
        hyper_params, self.target, self.state, grads
    )
    return self.replace(target=target, state=state)

  def state_dict(self) -> dict[str, Any]:
    """Returns nested dicts of arrays: what a checkpoint holds."""
    return self.optimizer_def.state_dict(self.target, self.state)

  def restore_state(self, state: Mapping[str, Any]) -> 'Optimizer':
    """Returns this optimizer holding the leaves of a state dict."""
    target, state = self.optimizer_def.restore_state(
        self.target, self.state, state
    )
    return self.replace(target=target, state=state)


# T5X's names of these types.
OptimizerType = Optimizer
OptimizerStateType = OptimizerState | Mapping[str, Any]
OptimizerDefType = OptimizerDef
