# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Leaves out single updates, inside the compiled step: no host is waited for.

The step is handed the largest norm that its gradient may have, which the host
makes of steps that are long finished (`step_watch`), the same on every process.
A step whose gradient is larger, or not finite, counts as one and changes
nothing else: parameters, optimizer and mutable variables stay as they were.
"""

from collections.abc import Sequence
import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp

from t5wild import metrics as metrics_lib
from t5wild import train_state as train_state_lib
from t5wild.optimizers import base as optimizers_base
from t5wild.trainer import vital_signs
from t5wild.vitals import spikes

PyTree = Any

# No norm is below it.
_NOTHING_PASSES = -1.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class UpdateGuard:
  """Which updates are left out: `trainer.Trainer.update_guard` in gin.

    trainer.Trainer.update_guard = @update_guard.UpdateGuard()

  Those whose gradient is not finite always are.

  Attributes:
    gradient: which norms are too large; None: `spikes.OF_GRADIENTS`.
    not_finite_only: whether no norm that is finite is too large.
    max_in_a_row: a run that leaves out more than so many one after the other
      stops, since it learns nothing.
    skip_steps: updates, counted from 1, that are left out whatever their
      gradient is: what another run's record lists, to repeat it.
  """

  gradient: spikes.Sensitivity | None = None
  not_finite_only: bool = False
  max_in_a_row: int = 20
  skip_steps: Sequence[int] = ()

  def __post_init__(self):
    """Refuses what makes no sense.

    Raises:
      ValueError: names the argument.
    """
    if self.gradient is None:
      object.__setattr__(self, 'gradient', spikes.OF_GRADIENTS)
    if not isinstance(self.gradient, spikes.Sensitivity):
      raise ValueError(
          f'gradient of UpdateGuard is {self.gradient!r}: expected a '
          'Sensitivity, or None. Write update_guard.UpdateGuard.gradient = '
          '@guard/spikes.Sensitivity().'
      )
    if type(self.max_in_a_row) is not int or self.max_in_a_row < 1:
      raise ValueError(
          f'max_in_a_row of UpdateGuard is {self.max_in_a_row!r}: expected a '
          'whole number of at least 1. Set update_guard.UpdateGuard.'
          'max_in_a_row to one, such as 20.'
      )
    wrong = [
        step for step in self.skip_steps if type(step) is not int or step < 1
    ]
    if wrong:
      raise ValueError(
          f'skip_steps of UpdateGuard has {wrong}: expected whole numbers of '
          'at least 1, updates counted from 1. Correct update_guard.'
          'UpdateGuard.skip_steps.'
      )

  def limit_at(self, step: int, *, usual: float) -> float:
    """The largest norm that the gradient of an update may have.

    Args:
      step: the update's number.
      usual: the limit that the steps before have made.
    """
    if step in self.skip_steps:
      return _NOTHING_PASSES
    return math.inf if self.not_finite_only else usual


def inputs(trainer: Any, batch: Any, limit: Any) -> tuple[Any, ...]:
  """What the step of a trainer takes besides its state."""
  return (batch,) if trainer.update_guard is None else (batch, limit)


def select(
    new_train_state: train_state_lib.TrainState,
    old_train_state: train_state_lib.TrainState,
    gradients: PyTree,
    limit: jax.Array,
) -> tuple[train_state_lib.TrainState, metrics_lib.MetricsMap]:
  """Returns the state after an update that may be left out, and a metric.

  Args:
    new_train_state: State after the update.
    old_train_state: State before it.
    gradients: What the update was made of.
    limit: Largest norm of them at which the update is made, a scalar.
  """
  norm = optimizers_base.global_norm(gradients)
  is_made = jnp.isfinite(norm) & (norm <= limit)
  kept = jax.tree.map(
      lambda new, old: jnp.where(is_made, new, old),
      new_train_state,
      old_train_state,
  )
  skipped = metrics_lib.Sum(total=jnp.float32(~is_made))
  return kept.replace_step(new_train_state.step), {
      vital_signs.UPDATES_SKIPPED: skipped
  }
