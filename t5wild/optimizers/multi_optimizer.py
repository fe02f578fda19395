# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Several optimizers, each for its own part of the parameters.

Parameters that no part selects are not trained. For optax optimizers alone,
`optimizers.chain` with `optax.multi_transform` or `optax.masked` does the same.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flax import serialization
from flax import traverse_util
import jax.numpy as jnp

from t5wild.optimizers import base as optimizers_base


class MultiOptimizer(optimizers_base.OptimizerDef):
  """Applies one optimizer to each selected part of the parameters (T5X's)."""

  def __init__(
      self,
      traversals_and_optimizers: Sequence[
          tuple[traverse_util.Traversal, optimizers_base.OptimizerDef]
      ],
      *,
      global_norm_clip_threshold: float | None = None,
  ):
    """Makes the definition.

    Args:
      traversals_and_optimizers: Pairs of a flax traversal (usually
        `flax.traverse_util.ModelParamTraversal(filter_fn)`) and the optimizer
        of the parameters it selects.
      global_norm_clip_threshold: Scale all gradients down to this norm first,
        those of untrained parameters not counted; None: no clipping.
    """
    traversals, sub_optimizers = zip(*traversals_and_optimizers, strict=True)
    super().__init__([opt.hyper_params for opt in sub_optimizers])
    self.traversals = traversals
    self.sub_optimizers = sub_optimizers
    self._global_norm_clip_threshold = global_norm_clip_threshold

  def init_state(self, params: Any) -> optimizers_base.OptimizerState:
    """Returns step 0 and each part's initial states; None where untrained.

    Raises:
      ValueError: When two parts share a parameter, or an optimizer does not
        keep one state per parameter.
    """
    self._check_disjoint(params)
    states = dict.fromkeys(optimizers_base.flatten_to_paths(params))
    for part, opt in zip(self._parts(params), self.sub_optimizers, strict=True):
      _update_part(states, opt.init_state(part).param_states, part=part)
    return optimizers_base.OptimizerState(
        step=jnp.zeros((), jnp.int32),
        param_states=optimizers_base.unflatten_like(params, states),
    )

  def apply_gradient(self, hyper_params, params, state, grads):
    """Returns the updated parameters and state."""
    new_params = optimizers_base.flatten_to_paths(params)
    flat_states = optimizers_base.flatten_to_paths(state.param_states)
    new_states = dict.fromkeys(flat_states)
    parts = self._parts(params)
    part_grads = optimizers_base.clip_by_global_norm(
        [_like_part(grads, part=part) for part in parts],
        self._global_norm_clip_threshold,
    )
    steps = zip(
        self.sub_optimizers, hyper_params, parts, part_grads, strict=True
    )
    for opt, hp, part, grad in steps:
      part_state = optimizers_base.OptimizerState(
          step=state.step,
          param_states=_like_part(state.param_states, part=part),
      )
      part_params, part_state = opt.apply_gradient(hp, part, part_state, grad)
      new_params |= optimizers_base.flatten_to_paths(part_params)
      new_states |= optimizers_base.flatten_to_paths(part_state.param_states)
    return (
        optimizers_base.unflatten_like(params, new_params),
        optimizers_base.OptimizerState(
            step=state.step + 1,
            param_states=optimizers_base.unflatten_like(params, new_states),
        ),
    )

  def update_hyper_params(self, **hyper_param_overrides) -> list[Any]:
    """Returns each part's hyper-parameters with the overrides."""
    hyper_params = hyper_param_overrides.pop('hyper_params', self.hyper_params)
    if hyper_param_overrides:
      hyper_params = [
          hp.replace(**hyper_param_overrides) for hp in hyper_params
      ]
    return hyper_params

  def set_param_axes(self, param_logical_axes: Any) -> None:
    """Hands each part its logical axis names."""
    parts = self._parts(param_logical_axes)
    for part, opt in zip(parts, self.sub_optimizers, strict=True):
      if hasattr(opt, 'set_param_axes'):
        opt.set_param_axes(part)
    self.hyper_params = [opt.hyper_params for opt in self.sub_optimizers]

  def derive_logical_axes(
      self, optimizer: optimizers_base.Optimizer, param_logical_axes: Any
  ) -> optimizers_base.Optimizer:
    """Returns `optimizer` with logical axes (None: replicated) as leaves."""
    states = dict.fromkeys(optimizers_base.flatten_to_paths(optimizer.target))
    parts = self._parts(optimizer.target)
    for part, opt in zip(parts, self.sub_optimizers, strict=True):
      part_optimizer = optimizers_base.Optimizer(
          opt,
          optimizers_base.OptimizerState(
              step=None,
              param_states=_like_part(optimizer.state.param_states, part=part),
          ),
          part,
      )
      derived = opt.derive_logical_axes(
          part_optimizer, _like_part(param_logical_axes, part=part)
      )
      states |= optimizers_base.flatten_to_paths(derived.state.param_states)
    state = optimizers_base.OptimizerState(
        step=None,
        param_states=optimizers_base.unflatten_like(optimizer.target, states),
    )
    return optimizer.replace(state=state, target=param_logical_axes)

  def state_dict(
      self, target: Any, state: optimizers_base.OptimizerState
  ) -> dict[str, Any]:
    """Returns nested dicts of arrays; untrained parameters have no state."""
    nested = super().state_dict(target, state)
    nested['state'] = _map_flat(
        nested['state'],
        lambda flat: {k: v for k, v in flat.items() if v is not None},
    )
    return nested

  def restore_state(
      self,
      opt_target: Any,
      opt_state: optimizers_base.OptimizerState,
      state_dict: Mapping[str, Any],
  ) -> tuple[Any, optimizers_base.OptimizerState]:
    """Returns target and state holding the leaves of `state_dict`."""
    whole = serialization.to_state_dict(opt_state)
    untrained = {
        k: v
        for k, v in optimizers_base.flatten_to_paths(whole).items()
        if v is None
    }
    state = _map_flat(state_dict['state'], lambda flat: untrained | flat)
    return super().restore_state(
        opt_target, opt_state, {'target': state_dict['target'], 'state': state}
    )

  def _parts(self, tree: Any) -> list[Any]:
    """Returns the selected part of `tree` for each optimizer."""
    return [_select(traversal, tree) for traversal in self.traversals]

  def _check_disjoint(self, params: Any) -> None:
    owner = {}
    for number, part in enumerate(self._parts(params)):
      for path in optimizers_base.flatten_to_paths(part):
        if path in owner:
          raise ValueError(
              f'parameter {path} is selected by the traversals number '
              f'{owner[path]} and {number} of MultiOptimizer, expected at most '
              'one: make their filters exclude each other'
          )
        owner[path] = number


def _map_flat(tree: Any, fn: Callable[[dict], dict]) -> dict[str, Any]:
  flat = optimizers_base.flatten_to_paths(dict(tree))
  return traverse_util.unflatten_dict(fn(flat), sep='/')


def _select(traversal: traverse_util.Traversal, tree: Any) -> Any:
  """Returns the sub-tree of `tree` whose leaves the traversal visits."""
  flat = optimizers_base.flatten_to_paths(tree)
  paths = traverse_util.unflatten_dict({p: p for p in flat}, sep='/')
  selected = {p: flat[p] for p in traversal.iterate(paths)}
  return optimizers_base.unflatten_like(tree, selected)


def _like_part(tree: Any, *, part: Any) -> Any:
  """Returns the sub-tree of `tree` with the paths of `part`."""
  flat = optimizers_base.flatten_to_paths(tree)
  paths = optimizers_base.flatten_to_paths(part)
  return optimizers_base.unflatten_like(tree, {p: flat[p] for p in paths})


def _update_part(states: dict[str, Any], part_states: Any, *, part) -> None:
  paths = optimizers_base.flatten_to_paths(part).keys()
  flat = None
  if isinstance(part_states, Mapping):
    flat = optimizers_base.flatten_to_paths(part_states)
  if flat is None or flat.keys() != paths:
    raise ValueError(
        'an optimizer inside MultiOptimizer has a state of type '
        f'{type(part_states).__name__}, expected one state per parameter (as '
        'Adafactor has): for optax optimizers use optimizers.chain with '
        'optax.multi_transform or optax.masked'
    )
  states |= flat
