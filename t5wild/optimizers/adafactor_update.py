# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of one Adafactor update of one parameter.

Equations are those of Shazeer and Stern 2018,
https://arxiv.org/abs/1804.04235.
"""

from collections.abc import Mapping
from typing import Any

from flax import struct
from jax import lax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from t5wild.optimizers import factor_rules

SLOTS = ('v_row', 'v_col', 'v', 'm')


@struct.dataclass
class AdafactorHyperParams:
  """What `Adafactor` takes, plus the factor map made from logical axes."""

  learning_rate: float | None
  factored: bool
  multiply_by_parameter_scale: bool | factor_rules.HParamMap
  beta1: float | None
  decay_rate: float
  step_offset: int
  clipping_threshold: float | None
  weight_decay_rate: float | None
  min_dim_size_to_factor: int
  epsilon1: float
  epsilon2: float
  factor_map: (
      factor_rules.HParamMap | Mapping[str, factor_rules.FactorRule] | None
  ) = None
  logical_factor_rules: Mapping[str, Any] | None = None
  weight_decay_rate_lr_exponent: float | None = None
  global_norm_clip_threshold: float | None = None
  max_parameter_scale: float | None = None
  skip_nan_updates: bool | None = False


@struct.dataclass
class AdafactorParamState:
  """Second moment and momentum of one parameter.

  Unused slots are zeros of shape (1,), so that every parameter has the same
  four entries in a checkpoint.

  Attributes:
    v_row: Mean square over the COLUMN dimensions, if factored.
    v_col: Mean square over the ROW dimensions, if factored.
    v: Mean square of each element, if not factored.
    m: Momentum, with beta1.
  """

  v_row: Float[Array, '...']
  v_col: Float[Array, '...']
  v: Float[Array, '...']
  m: Float[Array, '...']


def second_moment_decay(
    num_updates: Int[Array, ''], *, exponent: float
) -> Float[Array, '']:
  """Returns 1 - (t + 1) ** -exponent (section 7.2); t below 0 counts as 0."""
  t = jnp.maximum(jnp.asarray(num_updates, jnp.float32), 0.0)
  return 1.0 - (t + 1.0) ** (-exponent)


def root_mean_square(
    x: Float[Array, '...'], axes: tuple[int, ...]
) -> Float[Array, '...']:
  """Returns the root mean square over `axes`, which stay as size 1."""
  return jnp.sqrt(jnp.mean(jnp.square(x), axis=axes, keepdims=True))


def normalize(
    grad: Float[Array, '...'],
    state: AdafactorParamState,
    dims: factor_rules.FactorDims,
    *,
    decay: Float[Array, ''],
    epsilon: float,
) -> tuple[Float[Array, '...'], dict[str, Float[Array, '...']]]:
  """Returns the gradient over its root second moment, and the new slots."""
  slots = {slot: jnp.zeros((1,), jnp.float32) for slot in SLOTS}
  square = jnp.square(grad)
  if not dims.factored:
    slots['v'] = _mix(decay, state.v, square + epsilon)
    return grad * lax.rsqrt(slots['v']), slots
  # The mean of square + epsilon, written so that XLA has one full-size product
  # (which a gradient norm shares) and keeps none in memory.
  row_square = jnp.mean(square, axis=dims.column) + epsilon
  column_square = jnp.mean(square, axis=dims.row) + epsilon
  slots['v_row'] = _mix(decay, state.v_row, row_square)
  slots['v_col'] = _mix(decay, state.v_col, column_square)
  # The second moment is v_row * v_col / mean(v_row) (equation 4).
  v_row = jnp.expand_dims(slots['v_row'], dims.column)
  v_col = jnp.expand_dims(slots['v_col'], dims.row)
  row_mean = jnp.mean(v_row, axis=dims.row, keepdims=True)
  direction = grad * lax.rsqrt(v_row / row_mean) * lax.rsqrt(v_col)
  return direction, slots


def _mix(decay, old, new):
  return decay * old + (1.0 - decay) * new


def parameter_scale(
    param: Float[Array, '...'],
    dims: factor_rules.FactorDims,
    hp: AdafactorHyperParams,
    *,
    path: str,
) -> Float[Array, '...'] | float:
  """Returns the root mean square of a parameter within its bounds, or 1."""
  wanted = hp.multiply_by_parameter_scale
  if isinstance(wanted, factor_rules.HParamMap):
    wanted = wanted[path]
  if not wanted:
    return 1.0
  scale = root_mean_square(param, dims.averaging)
  return jnp.clip(scale, min=hp.epsilon2, max=hp.max_parameter_scale)


def weight_decay(hp: AdafactorHyperParams) -> Any:
  """Returns the fraction of each weight removed in this step, or None."""
  if not hp.weight_decay_rate_lr_exponent:
    return hp.weight_decay_rate
  rate = hp.weight_decay_rate or 1.0
  return rate * hp.learning_rate**hp.weight_decay_rate_lr_exponent
