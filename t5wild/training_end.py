# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""At which step a training ends.

TRAIN_STEPS_RELATIVE counts from the step that a run begins with. Begun again
before it has come to its end in order it goes on to that end, or each restart
would move it, that after a kill in its last evaluation too; begun again after
its end it makes as many steps more, as in T5X.
"""

import json

from absl import logging
from etils import epath

from t5wild import training_plan
from t5wild.checkpoint_files import small_files
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import initialize
from t5wild.partitioning import distributed

FILE = 'relative_end.json'


def last_step(
    plan: training_plan.TrainingPlan, initial: initialize.InitialState
) -> int:
  """Returns the step at which a run ends.

  Args:
    plan: What it is asked to do.
    initial: What it begins with.

  Raises:
    ValueError: It is past its end.
  """
  first_step = initial.step
  if not plan.relative_steps:
    return plan.last_step(first_step)
  end = None
  if distributed.process_index() == 0:
    file = epath.Path(steps.absolute_path(plan.model_dir)) / FILE
    known = _read(file) if initial.is_own else None
    if known is not None and _is_under_way(known, plan, first_step):
      end = known['last_step']
    else:
      end = plan.last_step(first_step)
      _write(file, first_step, end)
  end = distributed.meet('end of the run', value=end)[0]
  if end != plan.last_step(first_step):
    logging.info(
        'TRAIN_STEPS_RELATIVE = %s: the run goes on to step %s, as when it was '
        'first begun.', plan.relative_steps, end,
    )  # fmt: skip
  return end


def note_done(model_dir: str) -> None:
  """Says that a run has ended in order; process 0 calls it.

  Args:
    model_dir: Of the run, whether it counts relative steps or not.
  """
  file = epath.Path(steps.absolute_path(model_dir)) / FILE
  known = _read(file)
  if known is not None and not known['is_done']:
    _write(file, known['first_step'], known['last_step'], is_done=True)


def _is_under_way(
    known: dict[str, int], plan: training_plan.TrainingPlan, step: int
) -> bool:
  first, last = known['first_step'], known['last_step']
  if last - first != plan.relative_steps:
    return False
  return first <= step < last or (step == last and not known['is_done'])


def _read(file: epath.Path) -> dict[str, int] | None:
  try:
    known = json.loads(file.read_text())
    found = {name: int(known[name]) for name in ('first_step', 'last_step')}
    # Files without it are of runs that did not tell.
    return found | {'is_done': int(known.get('is_done', True))}
  except FileNotFoundError:
    return None
  except (OSError, ValueError, TypeError, LookupError):
    logging.exception('%s cannot be read: the steps are counted anew', file)
    return None


def _write(
    file: epath.Path, first_step: int, end: int, *, is_done: bool = False
) -> None:
  text = json.dumps(
      {'first_step': first_step, 'last_step': end, 'is_done': is_done}
  )
  try:
    small_files.replace(file, text)
  except OSError:
    logging.exception('%s: a restart will count the steps anew', file)
