# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Adafactor (Shazeer and Stern 2018) with T5X's factor rules.

https://arxiv.org/abs/1804.04235. The paper factors matrices; here any set of
dimensions may be rows, any other columns, and scanned layers are treated each
by itself (see `factor_rules`), so that a parameter's update does not depend on
whether its layers are stacked.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from t5wild.optimizers import adafactor_update as update_lib
from t5wild.optimizers import base as optimizers_base
from t5wild.optimizers import factor_rules

FactorDim = factor_rules.FactorDim
FactorRule = factor_rules.FactorRule
HeuristicRule = factor_rules.HeuristicRule
HEURISTIC_RULE = factor_rules.HEURISTIC_RULE
HParamMap = factor_rules.HParamMap
factor_name_to_factordim = factor_rules.factor_name_to_factordim
standard_logical_factor_rules = factor_rules.standard_logical_factor_rules


class Adafactor(optimizers_base.OptimizerDef):
  """Adafactor with T5X's arguments, defaults and checkpoint layout."""

  def __init__(  # noqa: PLR0913  # T5X's signature
      self,
      learning_rate: float | None = None,
      factored: bool = True,
      multiply_by_parameter_scale: bool | HParamMap = True,
      beta1: float | None = None,
      decay_rate: float = 0.8,
      step_offset: int = 0,
      clipping_threshold: float | None = 1.0,
      weight_decay_rate: float | None = None,
      min_dim_size_to_factor: int = 128,
      epsilon1: float = 1e-30,
      epsilon2: float = 1e-3,
      dtype_momentum: Any = jnp.float32,
      factor_map: HParamMap | None = None,
      logical_factor_rules: Mapping[str, Any] | None = None,
      weight_decay_rate_lr_exponent: float | None = None,
      global_norm_clip_threshold: float | None = None,
      max_parameter_scale: float | None = None,
      skip_nan_updates: bool | None = False,
  ):
    """Makes the definition.

    Args:
      learning_rate: Used where `apply_gradient` is given none. The trainer
        always gives one.
      factored: Keep row and column statistics instead of one per element.
      multiply_by_parameter_scale: Make steps relative to the root mean square
        of the parameter; an `HParamMap` decides per parameter.
      beta1: Momentum, at the price of one more copy of the parameters; None:
        none.
      decay_rate: c in the second moment's decay 1 - (t + 1) ** -c.
      step_offset: Step at which t is 0: set it to the first step of a
        fine-tuning run to forget the statistics of pre-training.
      clipping_threshold: Largest root mean square of an update before the
        learning rate; None: no clipping.
      weight_decay_rate: Fraction of each weight removed per step; None: none.
      min_dim_size_to_factor: The size heuristic factors a matrix only if both
        sides are at least this long.
      epsilon1: Added to squared gradients.
      epsilon2: Smallest parameter scale.
      dtype_momentum: dtype of the momentum.
      factor_map: Factor rule by parameter path.
      logical_factor_rules: Part of each logical axis name in the factoring;
        takes the place of `factor_map` when the model names its axes.
      weight_decay_rate_lr_exponent: With e, the weight decay rate is
        multiplied by learning_rate ** e (and is 1 where None).
      global_norm_clip_threshold: Scale all gradients down to this norm first;
        None: no clipping.
      max_parameter_scale: Largest parameter scale; None: no limit.
      skip_nan_updates: Leave elements that would become NaN as they were.

    Raises:
      ValueError: For a factor map where nothing is factored.
      TypeError: For a map that is not an `HParamMap`.
    """
    _check_arguments(factored, multiply_by_parameter_scale, factor_map)
    self.dtype_momentum = jax.dtypes.canonicalize_dtype(dtype_momentum)
    super().__init__(
        update_lib.AdafactorHyperParams(
            learning_rate=learning_rate,
            factored=factored,
            multiply_by_parameter_scale=multiply_by_parameter_scale,
            beta1=beta1,
            decay_rate=decay_rate,
            step_offset=step_offset,
            clipping_threshold=clipping_threshold,
            weight_decay_rate=weight_decay_rate,
            min_dim_size_to_factor=min_dim_size_to_factor,
            epsilon1=epsilon1,
            epsilon2=epsilon2,
            factor_map=factor_map,
            logical_factor_rules=logical_factor_rules,
            weight_decay_rate_lr_exponent=weight_decay_rate_lr_exponent,
            global_norm_clip_threshold=global_norm_clip_threshold,
            max_parameter_scale=max_parameter_scale,
            skip_nan_updates=skip_nan_updates,
        )
    )

  def __eq__(self, other: Any) -> bool:
    """Equal definitions give equal train state structures."""
    if not isinstance(other, Adafactor):
      return False
    return (
        self.hyper_params == other.hyper_params
        and self.dtype_momentum == other.dtype_momentum
    )

  def __hash__(self) -> int:
    """Hashes what no later call changes and is always hashable."""
    return hash((type(self), str(self.dtype_momentum)))

  def set_param_axes(self, param_logical_axes: Any) -> None:
    """Makes the factor map from the logical axis names of all parameters."""
    rules = self.hyper_params.logical_factor_rules
    if rules is None:
      return
    self.hyper_params = self.hyper_params.replace(
        factor_map=factor_rules.factor_map_from_axes(rules, param_logical_axes)
    )

  def factor_dims(self, shape: tuple[int, ...], *, path: str):
    """Returns the `FactorDims` of a parameter."""
    hyper_params = self.hyper_params
    rule = None
    if hyper_params.factored:
      rule = HEURISTIC_RULE
      if hyper_params.factor_map:
        rule = hyper_params.factor_map[path]
    return factor_rules.parse_rule(
        rule,
        shape,
        path=path,
        min_dim_size_to_factor=hyper_params.min_dim_size_to_factor,
    )

  def init_param_state(
      self, param: Float[Array, '...'], path: str
  ) -> update_lib.AdafactorParamState:
    """Returns zero statistics for one parameter."""
    dims = self.factor_dims(param.shape, path=path)
    shapes = dict.fromkeys(update_lib.SLOTS, (1,))
    if dims.factored:
      shapes['v_row'] = _without(param.shape, dims.column)
      shapes['v_col'] = _without(param.shape, dims.row)
    else:
      shapes['v'] = param.shape
    slots = {k: jnp.zeros(shape, jnp.float32) for k, shape in shapes.items()}
    if self.hyper_params.beta1 is not None:
      slots['m'] = jnp.zeros(param.shape, self.dtype_momentum)
    return update_lib.AdafactorParamState(**slots)

  def init_state(self, params: Any) -> optimizers_base.OptimizerState:
    """Returns step 0 and zero statistics for all parameters."""
    states = {
        path: self.init_param_state(param, path)
        for path, param in optimizers_base.flatten_to_paths(params).items()
    }
    return optimizers_base.OptimizerState(
        step=jnp.zeros((), jnp.int32),
        param_states=optimizers_base.unflatten_like(params, states),
    )

  def apply_gradient(self, hyper_params, params, state, grads):
    """Returns the updated parameters and state."""
    flat_params = optimizers_base.flatten_to_paths(params)
    flat_states = optimizers_base.flatten_to_paths(state.param_states)
    flat_grads = optimizers_base.flatten_to_paths(
        optimizers_base.clip_by_global_norm(
            grads, hyper_params.global_norm_clip_threshold
        )
    )
    new_params, new_states = {}, {}
    for path, param in flat_params.items():
      new_params[path], new_states[path] = self.apply_param_gradient(
          state.step,
          hyper_params,
          param,
          flat_states[path],
          flat_grads[path],
          path,
      )
    return (
        optimizers_base.unflatten_like(params, new_params),
        optimizers_base.OptimizerState(
            step=state.step + 1,
            param_states=optimizers_base.unflatten_like(params, new_states),
        ),
    )

  def apply_param_gradient(
      self, step, hyper_params, param, state, grad, path
  ) -> tuple[Float[Array, '...'], update_lib.AdafactorParamState]:
    """Returns one updated parameter and its statistics."""
    hp = hyper_params
    if hp.learning_rate is None:
      raise ValueError(
          f'Adafactor has learning_rate {hp.learning_rate!r} at the update of '
          f'{path!r}, expected a number: pass learning_rate to apply_gradient '
          '(the trainer does, from trainer.Trainer.learning_rate_fn) or to '
          'Adafactor'
      )
    dims = self.factor_dims(param.shape, path=path)
    grad = grad.astype(jnp.float32)
    direction, slots = update_lib.normalize(
        grad,
        state,
        dims,
        decay=update_lib.second_moment_decay(
            step - hp.step_offset, exponent=hp.decay_rate
        ),
        epsilon=hp.epsilon1,
    )
    rate = hp.learning_rate
    rate *= update_lib.parameter_scale(param, dims, hp, path=path)
    if hp.clipping_threshold is not None:
      rms = update_lib.root_mean_square(direction, dims.averaging)
      rate = rate / jnp.maximum(1.0, rms / hp.clipping_threshold)
    update = rate * direction
    if hp.beta1 is not None:
      update = hp.beta1 * state.m + (1.0 - hp.beta1) * update
      slots['m'] = update.astype(self.dtype_momentum)

    weight_decay = update_lib.weight_decay(hp)
    kept = param if weight_decay is None else (1.0 - weight_decay) * param
    new_param = (kept - update).astype(param.dtype)
    new_state = update_lib.AdafactorParamState(**slots)
    if hp.skip_nan_updates:
      new_param, new_state = jax.tree.map(
          lambda new, old: jnp.where(jnp.isnan(new), old, new),
          (new_param, new_state),
          (param, state),
      )
    return new_param, new_state

  def derive_logical_axes(
      self, optimizer: optimizers_base.Optimizer, param_logical_axes: Any
  ) -> optimizers_base.Optimizer:
    """Returns `optimizer` with logical axes as leaves.

    Statistics lie like their parameter: row statistics keep its axes but the
    COLUMN ones, so that no update gathers them.
    """
    flat_axes = optimizers_base.flatten_to_paths(param_logical_axes)
    flat_params = optimizers_base.flatten_to_paths(optimizer.target)
    axes = {
        path: self._param_state_axes(flat_axes[path], param.shape, path=path)
        for path, param in flat_params.items()
    }
    state = optimizers_base.OptimizerState(
        step=None,
        param_states=optimizers_base.unflatten_like(optimizer.target, axes),
    )
    return optimizer.replace(state=state, target=param_logical_axes)

  def _param_state_axes(self, axes, shape, *, path: str):
    dims = self.factor_dims(shape, path=path)
    slots = dict.fromkeys(update_lib.SLOTS)
    if dims.factored:
      make_axes = jax.sharding.PartitionSpec
      slots['v_row'] = make_axes(*_without(axes, dims.column))
      slots['v_col'] = make_axes(*_without(axes, dims.row))
    elif tuple(shape) != (1,):
      slots['v'] = axes
    if self.hyper_params.beta1 is not None:
      slots['m'] = axes
    return update_lib.AdafactorParamState(**slots)


def _check_arguments(factored, multiply_by_parameter_scale, factor_map) -> None:
  if not isinstance(multiply_by_parameter_scale, (bool, HParamMap)):
    raise TypeError(
        f'multiply_by_parameter_scale is {multiply_by_parameter_scale!r}, '
        'expected True, False or an HParamMap: for one value per parameter '
        'write @adafactor.HParamMap() and bind its rules'
    )
  if not isinstance(factor_map, (type(None), HParamMap)):
    raise TypeError(
        f'factor_map is {factor_map!r}, expected None or an HParamMap: write '
        '@adafactor.HParamMap() and bind its rules'
    )
  if not factored and factor_map is not None:
    raise ValueError(
        f'factored is {factored!r} while factor_map is {factor_map!r}, '
        'expected no factor rules when nothing is factored: drop one of the two'
    )


def _without(values, positions: tuple[int, ...]) -> tuple:
  return tuple(v for i, v in enumerate(values) if i not in positions)
