# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Statistics of each parameter, its gradient and its update, step by step."""

from typing import Any

import jax
import jax.numpy as jnp

from t5wild import metrics as metrics_lib
from t5wild import train_state as train_state_lib
from t5wild.optimizers import base as optimizers_base

PyTree = Any


class WeightMetricsComputer:
  """Computes statistics of all parameters in each step.

  A subclass may override `compute_metrics`. Each name is followed by
  `/parameter/path`: `weight_rms`, `weight_max` (absolute) after the update,
  `weight_gradient_rms`, `weight_update_rms`,
  `weight_update_divided_by_weight_rms` (weights that are zero left out). Costs
  a few passes over the parameters.
  """

  def compute_metrics(
      self,
      gradients: PyTree,
      old_train_state: train_state_lib.TrainState,
      new_train_state: train_state_lib.TrainState,
  ) -> metrics_lib.MetricsMap:
    """Returns the statistics as metrics, averaged over steps.

    Args:
      gradients: Gradient by each parameter.
      old_train_state: State before the update.
      new_train_state: State after it.
    """
    old, new = old_train_state.params, new_train_state.params
    updates = jax.tree.map(jnp.subtract, new, old)
    norm = optimizers_base.global_norm(gradients)
    return {
        'weight_gradient_norm': _metric(norm),
        **_by_parameter('weight_rms', _rms, new),
        **_by_parameter('weight_gradient_rms', _rms, gradients),
        **_by_parameter('weight_update_rms', _rms, updates),
        **_by_parameter(
            'weight_update_divided_by_weight_rms', _relative_rms, updates, old
        ),
        **_by_parameter('weight_max', _max, new),
    }


def _metric(value: jax.Array) -> metrics_lib.AveragePerStep:
  return metrics_lib.AveragePerStep.from_model_output(value)


def _by_parameter(name: str, fn, *trees: PyTree) -> metrics_lib.MetricsMap:
  flat = [optimizers_base.flatten_to_paths(tree) for tree in trees]
  return {
      f'{name}/{path}': _metric(fn(*(leaves[path] for leaves in flat)))
      for path in flat[0]
  }


def _rms(x: jax.Array) -> jax.Array:
  return jnp.sqrt(jnp.mean(jnp.square(x)))


def _max(x: jax.Array) -> jax.Array:
  return jnp.max(jnp.abs(x))


def _relative_rms(update: jax.Array, weight: jax.Array) -> jax.Array:
  nonzero = weight != 0
  ratio = jnp.where(nonzero, update / jnp.where(nonzero, weight, 1), 0)
  count = jnp.maximum(jnp.sum(nonzero), 1)
  return jnp.sqrt(jnp.sum(jnp.square(ratio)) / count)
