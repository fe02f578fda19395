# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What every compiled step tells of its gradient and its update.

The squares that a group's norm is made of are those of the global norm, so that
groups cost nothing, nor does the count of what is not finite; the size of the
update takes a pass over the parameters.
"""

from typing import Any

import jax
import jax.numpy as jnp

from t5wild import metrics as metrics_lib
from t5wild import train_state as train_state_lib
from t5wild.optimizers import base as optimizers_base
from t5wild.vitals import parameter_groups

PyTree = Any

GRADIENT_NORM = 'weight_gradient_norm'  # T5X's name of the global one
GROUP_NORMS = 'gradient_norm'
UPDATE_RATIO = 'update_to_weight_ratio'
NOT_FINITE = 'non_finite/gradients'
UPDATES_SKIPPED = 'updates_skipped'


def of_update(
    gradients: PyTree,
    old_train_state: train_state_lib.TrainState,
    new_train_state: train_state_lib.TrainState,
) -> metrics_lib.MetricsMap:
  """Returns the vital signs of an update, as averages over steps.

  `gradient_norm/GROUP` for each layer, `update_to_weight_ratio` (norm of the
  update by that of the parameters before it), `non_finite/gradients` (of how
  many parameters they are not finite).

  Args:
    gradients: Gradient by each parameter, before any clipping.
    old_train_state: State before the update.
    new_train_state: State after it.
  """
  old, new = old_train_state.params, new_train_state.params
  update = jax.tree.map(jnp.subtract, new, old)
  ratio = optimizers_base.global_norm(update) / jnp.maximum(
      optimizers_base.global_norm(old), jnp.finfo(jnp.float32).tiny
  )
  per_step = metrics_lib.AveragePerStep.from_model_output
  return {
      GROUP_NORMS: _group_norms(gradients),
      UPDATE_RATIO: per_step(ratio),
      NOT_FINITE: per_step(_count_not_finite(gradients)),
  }


def _group_norms(gradients: PyTree) -> metrics_lib.AveragesPerStep:
  groups: dict[str, list[jax.Array]] = {}
  for path, leaf in optimizers_base.flatten_to_paths(gradients).items():
    groups.setdefault(parameter_groups.group_of(path), []).append(leaf)
  norms = [optimizers_base.global_norm(groups[name]) for name in sorted(groups)]
  return metrics_lib.AveragesPerStep(
      total=jnp.stack(norms), names=tuple(sorted(groups))
  )


def _count_not_finite(tree: PyTree) -> jax.Array:
  """Of how many arrays the squares do not add up to a finite number."""
  norms = map(optimizers_base.global_norm, jax.tree.leaves(tree))
  return sum(jnp.float32(~jnp.isfinite(norm)) for norm in norms)
