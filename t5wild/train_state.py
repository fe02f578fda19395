# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Everything a training step reads and replaces: parameters and optimizer.

T5X's names and layout are kept: `state_dict()` is
`{'target', 'state': {'step', 'param_states'}, 'flax_mutables'}`.
"""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable, Self

from flax import linen as nn
from flax import traverse_util
import flax.core
from flax.linen import partitioning as flax_partitioning
import flax.struct
import jax
import jax.numpy as jnp

from t5wild.optimizers import base as optimizers_base

PyTree = Any
EMPTY_DICT = flax.core.freeze({})


@runtime_checkable
class TrainState(Protocol):
  """What trainers, partitioners and checkpoints need of a train state."""

  @property
  def step(self) -> jax.Array:
    """Number of finished updates, an int32 scalar."""

  @property
  def params(self) -> PyTree:
    """The parameters."""

  @property
  def param_states(self) -> PyTree:
    """What the optimizer remembers about the parameters."""

  @property
  def flax_mutables(self) -> PyTree:
    """The network's other variables; empty for most networks."""

  def state_dict(self) -> dict[str, Any]:
    """Returns nested dicts of arrays: what a checkpoint holds."""

  def restore_state(self, state_dict: Mapping[str, Any]) -> Self:
    """Returns this state holding the leaves of `state_dict`."""

  def replace_params(self, params: PyTree) -> Self:
    """Returns this state with other parameters."""

  def replace_flax_mutables(self, flax_mutables: PyTree) -> Self:
    """Returns this state with other mutable variables."""

  def replace_step(self, step: jax.Array) -> Self:
    """Returns this state with another step."""

  def apply_gradient(
      self, grads, learning_rate, flax_mutables=EMPTY_DICT
  ) -> Self:
    """Returns the state after one update."""

  def as_logical_axes(self) -> Self:
    """Returns this state with logical axis names as leaves."""


class FlaxOptimTrainState(flax.struct.PyTreeNode):
  """Parameters with their optimizer.

  Attributes:
    params_axes: The network's record of the parameters' logical axes.
    flax_mutables: The network's other variables.
    flax_mutables_axes: The record of their logical axes.
  """

  _optimizer: optimizers_base.Optimizer
  params_axes: PyTree | None = None
  flax_mutables: PyTree = EMPTY_DICT
  flax_mutables_axes: PyTree | None = None

  @classmethod
  def create(
      cls,
      optimizer_def: optimizers_base.OptimizerDef,
      model_variables: Mapping[str, PyTree],
  ) -> Self:
    """Returns the state before the first update.

    Args:
      optimizer_def: The optimizer; told the logical axes if it wants them.
      model_variables: What `get_initial_variables` returns: 'params', usually
        'params_axes', and any other collections (with their '..._axes').

    Raises:
      ValueError: When parameters lack axis names.
    """
    variables = _Variables.split(model_variables)
    if hasattr(optimizer_def, 'set_param_axes'):
      if variables.params_axes is None:
        raise ValueError(
            f'{type(optimizer_def).__name__} asks for the logical axes of the '
            'parameters and the network names none, expected a collection '
            "'params_axes': make the network's parameters with "
            'flax.linen.partitioning.param_with_axes'
        )
      optimizer_def.set_param_axes(
          flax_partitioning.get_axis_names(variables.params_axes)
      )
    return cls(
        optimizer_def.create(variables.params),
        params_axes=variables.params_axes,
        flax_mutables=variables.mutables,
        flax_mutables_axes=variables.mutables_axes,
    )

  @property
  def step(self) -> jax.Array:
    """Number of finished updates, an int32 scalar."""
    return self._optimizer.state.step

  @property
  def params(self) -> PyTree:
    """The parameters."""
    return self._optimizer.target

  @property
  def param_states(self) -> PyTree:
    """What the optimizer remembers about the parameters."""
    return self._optimizer.state.param_states

  def state_dict(self) -> dict[str, Any]:
    """Returns nested dicts of arrays: what a checkpoint holds."""
    state_dict = self._optimizer.state_dict()
    if self.flax_mutables:
      state_dict['flax_mutables'] = flax.core.unfreeze(self.flax_mutables)
    return state_dict

  def restore_state(self, state_dict: Mapping[str, Any]) -> Self:
    """Returns this state holding the leaves of `state_dict`."""
    return self.replace(
        _optimizer=self._optimizer.restore_state(state_dict),
        flax_mutables=_mutables_of(state_dict),
    )

  def replace_params(self, params: PyTree) -> Self:
    """Returns this state with other parameters."""
    return self.replace(_optimizer=self._optimizer.replace(target=params))

  def replace_flax_mutables(self, flax_mutables: PyTree) -> Self:
    """Returns this state with other mutable variables."""
    return self.replace(flax_mutables=flax_mutables)

  def replace_step(self, step: jax.Array) -> Self:
    """Returns this state with another step."""
    state = self._optimizer.state.replace(step=step)
    return self.replace(_optimizer=self._optimizer.replace(state=state))

  def apply_gradient(
      self, grads, learning_rate, flax_mutables=EMPTY_DICT
  ) -> Self:
    """Returns the state after one update.

    Args:
      grads: Gradient of the loss by each parameter.
      learning_rate: Learning rate of this update.
      flax_mutables: The mutable variables from now on.
    """
    optimizer = self._optimizer.apply_gradient(
        grads, learning_rate=learning_rate
    )
    return self.replace(_optimizer=optimizer, flax_mutables=flax_mutables)

  def as_logical_axes(self) -> Self:
    """Returns this state with logical axis names (None: replicated) as leaves.

    Raises:
      ValueError: When the network names no axes.
    """
    optimizer_def = self._optimizer.optimizer_def
    return type(self)(
        _optimizer=optimizer_def.derive_logical_axes(
            self._optimizer, _axis_names(self.params_axes)
        ),
        flax_mutables=_axis_names(self.flax_mutables_axes or EMPTY_DICT),
    )


class InferenceState(flax.struct.PyTreeNode):
  """Parameters without an optimizer; its dict is part of a train state's."""

  step: jax.Array | None
  params: PyTree
  params_axes: PyTree | None = None
  flax_mutables: PyTree = EMPTY_DICT
  flax_mutables_axes: PyTree | None = None

  @classmethod
  def create(cls, model_variables: Mapping[str, PyTree]) -> Self:
    """Returns the state at step 0; see `FlaxOptimTrainState.create`."""
    variables = _Variables.split(model_variables)
    return cls(
        step=jnp.zeros((), jnp.int32),
        params=variables.params,
        params_axes=variables.params_axes,
        flax_mutables=variables.mutables,
        flax_mutables_axes=variables.mutables_axes,
    )

  @property
  def param_states(self) -> PyTree:
    """An inference state has none."""
    raise TypeError(self._no_optimizer('param_states'))

  def apply_gradient(self, *args, **kwargs) -> Self:
    """An inference state cannot be trained."""
    del args, kwargs
    raise TypeError(self._no_optimizer('apply_gradient'))

  def _no_optimizer(self, asked: str) -> str:
    return (
        f'{asked} was asked of an InferenceState with the parameters '
        f'{sorted(self.params)}, which has no optimizer; expected a train '
        'state: make it with FlaxOptimTrainState.create(optimizer_def, '
        'variables)'
    )

  def state_dict(self) -> dict[str, Any]:
    """Returns nested dicts of arrays: what a checkpoint holds."""
    state_dict = {
        'target': flax.core.unfreeze(self.params),
        'state': {'step': self.step},
    }
    if self.flax_mutables:
      state_dict['flax_mutables'] = flax.core.unfreeze(self.flax_mutables)
    return state_dict

  def restore_state(self, state_dict: Mapping[str, Any]) -> Self:
    """Returns this state holding the leaves of `state_dict`."""
    params = state_dict['target']
    if isinstance(self.params, flax.core.FrozenDict):
      params = flax.core.freeze(params)
    return self.replace(
        params=params,
        step=state_dict['state']['step'],
        flax_mutables=_mutables_of(state_dict),
    )

  def replace_step(self, step: jax.Array) -> Self:
    """Returns this state with another step."""
    return self.replace(step=step)

  def replace_params(self, params: PyTree) -> Self:
    """Returns this state with other parameters."""
    return self.replace(params=params)

  def replace_flax_mutables(self, flax_mutables: PyTree) -> Self:
    """Returns this state with other mutable variables."""
    return self.replace(flax_mutables=flax_mutables)

  def as_logical_axes(self) -> Self:
    """Returns this state with logical axis names (None: replicated)."""
    return type(self)(
        step=None,
        params=_axis_names(self.params_axes),
        flax_mutables=_axis_names(self.flax_mutables_axes or EMPTY_DICT),
    )


@flax.struct.dataclass
class _Variables:
  """The collections of a network, sorted by what becomes of them."""

  params: PyTree
  params_axes: PyTree | None
  mutables: PyTree
  mutables_axes: PyTree | None

  @classmethod
  def split(cls, model_variables: Mapping[str, PyTree]) -> Self:
    """Sorts collections; each 'x_axes' names the axes of 'x'."""
    model_variables = _unboxed(model_variables)
    axes = {
        name.removesuffix('_axes'): tree
        for name, tree in model_variables.items()
        if name.endswith('_axes')
    }
    variables = {
        name: tree
        for name, tree in model_variables.items()
        if not name.endswith('_axes')
    }
    for name, tree in axes.items():
      _check_all_named(name, tree, variables[name])
    params = variables.pop('params')
    params_axes = axes.pop('params', None)
    return cls(
        params=params,
        params_axes=params_axes,
        mutables=flax.core.freeze(variables),
        mutables_axes=flax.core.freeze(axes) or None,
    )


def _unboxed(variables: Mapping[str, PyTree]) -> dict[str, PyTree]:
  """The collections with boxes opened, and what is written on them beside.

  Flax has two ways to name axes: `nn.with_logical_partitioning` puts a variable
  in a box, `param_with_axes` makes an entry of another collection, 'x_axes'.
  """
  found = dict(variables)
  for name, tree in variables.items():
    flat = traverse_util.flatten_dict(
        flax.core.unfreeze(tree), is_leaf=lambda _, x: _is_box(x)
    )
    boxes = {path: box for path, box in flat.items() if _is_box(box)}
    if not boxes:
      continue
    axes = flax.core.unfreeze(variables.get(f'{name}_axes', EMPTY_DICT))
    named = traverse_util.flatten_dict(axes)
    for (*parents, last), box in boxes.items():
      named[*parents, f'{last}_axes'] = flax_partitioning.AxisMetadata(
          names=tuple(box.names)
      )
    opened = {path: box.value for path, box in boxes.items()}
    found[name] = traverse_util.unflatten_dict(flat | opened)
    found[f'{name}_axes'] = traverse_util.unflatten_dict(named)
  return found


def _is_box(value: Any) -> bool:
  return isinstance(value, nn.Partitioned)


def _check_all_named(collection: str, axes: PyTree, variables: PyTree) -> None:
  named = optimizers_base.flatten_to_paths(
      flax_partitioning.get_axis_names(axes)
  )
  missing = optimizers_base.flatten_to_paths(variables).keys() - named.keys()
  if missing:
    raise ValueError(
        f'{sorted(missing)} in {collection!r} have no logical axes while '
        f'others have, expected names for all: make them with '
        'flax.linen.partitioning.param_with_axes'
    )


def _mutables_of(state_dict: Mapping[str, Any]) -> PyTree:
  if 'flax_mutables' not in state_dict:
    return EMPTY_DICT
  return flax.core.freeze(state_dict['flax_mutables'])


def _axis_names(axes: PyTree | None) -> PyTree:
  if axes is None:
    raise ValueError(
        f'the network names no logical axes ({axes!r}), expected a '
        "collection 'params_axes' to shard by: make its parameters with "
        'flax.linen.partitioning.param_with_axes'
    )
  return flax_partitioning.get_axis_names(axes)
