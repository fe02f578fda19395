# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a run recorded before it was resumed, and what it left undone."""

import jax

from t5wild import training_data
from t5wild.partitioning import distributed
from t5wild.trainer import actions as actions_lib
from t5wild.trainer import recall


def read(
    metrics_jsonl: str,
    *,
    actions: actions_lib.ActionMapType,
    step: int,
    is_resumed: bool,
) -> recall.Past | None:
  """What a run recorded until a checkpoint of its own; on process 0 only.

  Args:
    metrics_jsonl: The run's records.
    actions: By mode; what they recall is read.
    step: Of the checkpoint.
    is_resumed: Whether it is the run's own.
  """
  if jax.process_index() != 0:
    return None
  names = recall.recalled_names(actions)
  if not is_resumed:
    return recall.Past((), last_step=step, names=names)
  return recall.Past.read(metrics_jsonl, last_step=step, names=names)


def must_evaluate_first(
    past: recall.Past | None,
    data: training_data.TrainingData,
    *,
    wished: bool,
    is_due: bool,
    step: int,
    is_resumed: bool,
) -> bool:
  """Whether the first state's evaluation is asked for and not done yet.

  A run killed between a save and the end of the evaluation that follows makes
  up for it: the state is the same. All processes call it.

  Args:
    past: What was recorded; on process 0.
    data: Says what is evaluated.
    wished: Whether the first state is to be evaluated.
    is_due: Whether the first step's evaluation is due by its period.
    step: The first step.
    is_resumed: Whether the run goes on from a checkpoint of its own.
  """
  if not is_resumed:
    return wished and data.is_evaluated
  due = data.is_evaluated and (wished if step == 0 else is_due)
  is_missing = past is not None and not all(
      past.has_evaluation(f'{recall.COLLECTIONS[mode]}/{task}')
      for mode, tasks in data.evaluated_tasks.items()
      for task in tasks
  )
  return distributed.meet('first evaluation', value=due and is_missing)[0]
