# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The evaluations of a training run, by what they are of."""

from collections.abc import Callable
from typing import Any

import jax

from t5wild import training_data
from t5wild import training_plan
from t5wild.trainer import actions as actions_lib
from t5wild.trainer import evaluation
from t5wild.trainer import inference_evaluation
from t5wild.trainer import metrics_manager
from t5wild.trainer import recall
from t5wild.trainer import run_sinks


def make_evaluators(
    plan: training_plan.TrainingPlan,
    data: training_data.TrainingData,
    *,
    trainer: Any,
    sinks: run_sinks.RunSinks,
    train_state_axes: Any,
    on_late_metrics: Callable[..., None],
) -> dict[actions_lib.ActionMode, Any]:
  """Returns those that the run has.

  Args:
    plan: Of the run.
    data: Holds the data sets of evaluation.
    trainer: Holds the state.
    sinks: Take what is found.
    train_state_axes: PartitionSpecs of the state.
    on_late_metrics: Told of an evaluation by decoding that nothing waited for.
  """

  def managers(mode: actions_lib.ActionMode) -> dict[str, Any]:
    """Task name to the writer of what that evaluation finds."""
    found = {}
    for task in data.evaluated_tasks[mode]:
      name = f'{recall.COLLECTIONS[mode]}/{task}'
      found[task] = metrics_manager.MetricsManager(
          name, sinks=sinks.of(name), host=jax.process_index()
      )
    return found

  modes = actions_lib.ActionMode
  evaluators = {}
  if data.eval_datasets:
    evaluators[modes.TRAIN_EVAL] = evaluation.TrainingEvaluator(
        trainer=trainer,
        datasets=data.eval_datasets,
        to_device=plan.partitioner.global_batch,
        managers=managers(modes.TRAIN_EVAL),
    )
  decoder = data.inference_evaluator
  if decoder is not None:
    evaluators[modes.INFER_EVAL] = inference_evaluation.InferenceReports(
        start=lambda: decoder.start(trainer.train_state, train_state_axes),
        managers=managers(modes.INFER_EVAL),
        close=decoder.close,
        is_awaited=plan.decides_by_inference_metrics,
        on_late_metrics=on_late_metrics,
    )
  return evaluators
