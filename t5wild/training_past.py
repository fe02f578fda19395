# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a run recorded before it was resumed, and what it left undone."""

from collections.abc import Callable, Mapping
import contextlib
import os

import jax

from t5wild import training_data
from t5wild.partitioning import distributed
from t5wild.trainer import actions as actions_lib
from t5wild.trainer import recall
from t5wild.vitals import records
from t5wild.vitals import run_events

_TAIL_BYTES = 1 << 18  # thousands of records: some are of the last steps


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
    _tell_lost_steps(metrics_jsonl, step=step)
    return recall.Past((), last_step=step, names=names)
  return recall.Past.read(metrics_jsonl, last_step=step, names=names)


def _tell_lost_steps(metrics_jsonl: str, *, step: int) -> None:
  """Tells of steps on record of which no checkpoint is left, as an event."""
  last = _last_recorded_step(metrics_jsonl)
  if last <= step:
    return
  events = run_events.RunEvents(
      os.path.dirname(metrics_jsonl), prefix='checkpoint'
  )
  with contextlib.closing(events):
    events.add(
        'none_left',
        step=step,
        value=float(last),
        text=f'{metrics_jsonl} has records up to step {last}, and no '
        f'checkpoint of this run is here: it begins anew at step {step}. '
        'Where there should be one, stop it, bring that back (a mirror: t5wild '
        'checkpoints mirror), and start again.',
    )


def _last_recorded_step(metrics_jsonl: str) -> int:
  """The highest step in the end of the file; 0 without one, or in a bucket."""
  last = 0
  with contextlib.suppress(OSError), open(metrics_jsonl, 'rb') as file:
    file.seek(max(0, os.path.getsize(metrics_jsonl) - _TAIL_BYTES))
    lines = file.read().decode('utf-8', 'replace').splitlines()
    found = map(records.from_line, lines)
    last = max((each.step for each in found if each is not None), default=0)
  return last


def must_evaluate_first(
    past: recall.Past | None,
    data: training_data.TrainingData,
    *,
    note: Callable[[int, Mapping[str, float]], None],
    wished: bool,
    is_due: bool,
    step: int,
    is_resumed: bool,
) -> bool:
  """Whether the first state's evaluation is asked for and not done yet.

  A run killed between a save and the end of the evaluation that follows makes
  up for it: the state is the same. One killed just after it still knows what
  it found, to keep the best checkpoints. All processes call it.

  Args:
    past: What was recorded; on process 0.
    data: Says what is evaluated.
    note: Called with the step and what was found, where all is on record.
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
  found = past.evaluation if past is not None and not is_missing else {}
  must, found = distributed.meet(
      'first evaluation', value=(due and is_missing, found)
  )[0]
  if not must:
    note(step, found)
  return must
