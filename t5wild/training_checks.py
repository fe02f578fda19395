# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The checks for silent corruption of a run that asks for them."""

from collections.abc import Callable, Mapping
from typing import Any

from t5wild import training_plan
from t5wild import training_saves
from t5wild.trainer import corruption_checks
from t5wild.trainer import metrics_manager


class NoChecks:
  """Of a run that does not ask for them: does nothing."""

  def prepare(self, batch: Mapping[str, Any]) -> None:
    """Takes an abstract batch."""

  def seeing(self, step_fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns `step_fn`."""
    return step_fn

  def after_step(self, step: int) -> None:
    """Takes a step."""

  def finish(self, step: int) -> None:
    """Takes the last step."""


def open_checks(
    plan: training_plan.TrainingPlan,
    *,
    trainer: Any,
    saves: training_saves.TrainingSaves,
    metrics: metrics_manager.MetricsManager,
    first_step: int,
) -> NoChecks | corruption_checks.CorruptionChecks:
  """Returns the checks that a plan asks for, with what they need of the run.

  Raises:
    ValueError: For arguments of theirs that make no sense.
  """
  if plan.corruption_cls is None:
    return NoChecks()
  return plan.corruption_cls(
      corruption_checks.Watched(
          trainer=trainer,
          model=plan.model,
          partitioner=plan.partitioner,
          first_step=first_step,
          quarantine=saves.quarantine_after,
          record=metrics.write_scalars,
      )
  )
