# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""One training at a time in a MODEL_DIR.

Two would write the same checkpoints at once, and delete each other's.
"""

from collections.abc import Iterator
import contextlib
import os

from absl import logging
import jax

from t5wild import folder_lock
from t5wild import run_dir as run_dir_lib
from t5wild import training_place
from t5wild import training_plan
from t5wild.vitals import run_clock
from t5wild.vitals import supervised

# One that was asked to stop may still be saving.
_WAIT_SECONDS = 60.0


@contextlib.contextmanager
def held(run_dir: run_dir_lib.RunDir) -> Iterator[training_place.Place]:
  """Holds a run while it trains; process 0 does so for all.

  Yields what tells whether the folder is still there.

  A bucket has no locks: there nothing is held.

  Raises:
    training_plan.BadPlanError: another training holds it, or the folder cannot
      be written.
    folder_lock.TakenError: the same under a supervisor, which may try again:
      it may be what a host left that the group goes on without.
  """
  if jax.process_index() != 0 or run_dir.is_bucket:
    _start_clock(run_dir)
    yield training_place.Place(run_dir)
    return
  with contextlib.ExitStack() as stack:
    try:
      os.makedirs(run_dir.path, exist_ok=True)
      descriptor = stack.enter_context(folder_lock.held(
          run_dir.training_lock,
          wait_seconds=_WAIT_SECONDS,
          say=logging.warning,
      ))
      place = training_place.Place(run_dir, descriptor=descriptor)
    except OSError as error:
      raise training_plan.BadPlanError(
          f'MODEL_DIR = {run_dir.path!r} cannot be written: {error}.\n'
          'Expected a folder that can. Set another --gin.MODEL_DIR.'
      ) from error
    except folder_lock.TakenError as error:
      if supervised.from_environment():
        raise
      raise training_plan.BadPlanError(
          f'{error}: it trains in {run_dir.path}.\n'
          'Expected one training at a time in a MODEL_DIR: two delete each '
          "other's checkpoints.\n"
          'Stop that one (kill PID), or set another --gin.MODEL_DIR.'
      ) from None
    _start_clock(run_dir)  # nobody adds records any more
    yield place


def _start_clock(run_dir: run_dir_lib.RunDir) -> None:
  """Dates what comes after what the run has on record."""
  told = supervised.from_environment()
  if told is None:
    run_clock.start(run_dir)
  else:
    run_clock.start(
        run_dir_lib.RunDir(told.folder), ahead=told.clock_ahead
    )
