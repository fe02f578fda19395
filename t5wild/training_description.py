# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a run leaves of itself before its first step."""

import contextlib

import jax

from t5wild import run_dir as run_dir_lib
from t5wild import training_changes
from t5wild import training_data
from t5wild import training_plan
from t5wild.trainer import agreement
from t5wild.trainer import metrics_manager
from t5wild.trainer import model_info
from t5wild.vitals import environment


def write(
    plan: training_plan.TrainingPlan,
    data: training_data.TrainingData,
    info,
    *,
    metrics: metrics_manager.MetricsManager,
    step: int,
    is_resumed: bool,
) -> None:
  """Leaves model-info.txt and the operative config in the run directory.

  Where a resumed run has another configuration or environment than before,
  that is told.
  """
  metrics.write_scalars(
      step, {'data/position_is_exact': float(data.position_is_exact)}
  )
  if jax.process_index() != 0:
    return
  run_dir = run_dir_lib.RunDir(plan.model_dir)
  model_info.write(info, run_dir)
  with contextlib.ExitStack() as told:
    if is_resumed:
      told.enter_context(training_changes.environment_told(run_dir, step=step))
      told.enter_context(training_changes.told(run_dir, step=step))
    environment.write(
        run_dir,
        devices=[device.device_kind for device in jax.devices()],
        num_processes=jax.process_count(),
        settings=agreement.settings(),
    )
    if plan.summarize_config_fn is not None:
      plan.summarize_config_fn(plan.model_dir, metrics, step)
