# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Tells a run's books and events how it ended, by the exception that ended it.
"""

from collections.abc import Iterator
import contextlib
from typing import Any

from t5wild import training_end
from t5wild import training_place
from t5wild import training_plan
from t5wild.data import documents
from t5wild.data import reader_protocol
from t5wild.data import shard_files
from t5wild.partitioning import compile_errors
from t5wild.partitioning import distributed
from t5wild.trainer import action_checks
from t5wild.trainer import agreement
from t5wild.trainer import preemption
from t5wild.vitals import redaction
from t5wild.vitals import run_events
from t5wild.vitals import time_ledgers

# Errors that a restart would repeat, however late they come.
FOR_THE_USER = (
    action_checks.UnknownMetricError,
    agreement.DisagreementError,
    compile_errors.CudnnError,
    documents.CorruptTextError,
    reader_protocol.OtherDataError,
    shard_files.BadCacheError,
    training_plan.BadPlanError,
)
_BY_ERROR = {
    **dict.fromkeys(FOR_THE_USER, time_ledgers.REFUSED),
    preemption.Preempted: time_ledgers.STOPPED,
    KeyboardInterrupt: time_ledgers.STOPPED,
}


class LeftEarlyError(Exception):
  """A run that code of its recipe ended, with an exit code that says done."""


# No errors, and one that has left its words where they belong.
_IN_ORDER = (
    preemption.Preempted, KeyboardInterrupt, training_place.PlaceLostError
)  # fmt: skip
_MOST_CHARACTERS = 4000


def _record(error: BaseException, model_dir: str, *, step: int) -> None:
  """Leaves the error's words; of several processes, process 0's."""
  if distributed.process_index() != 0:
    return
  text = f'{type(error).__name__}: {error}'[:_MOST_CHARACTERS]
  events = run_events.RunEvents(model_dir, prefix='run')
  # What ends the run must stay what is told, whatever happens here.
  with contextlib.suppress(Exception), contextlib.closing(events):
    events.add('error', step=step, value=1.0, text=redaction.redacted(text))


@contextlib.contextmanager
def told_to(watchdog: Any, model_dir: str) -> Iterator[None]:
  """Tells the watchdog, which keeps the books, how the `with` block ends.

  The text of an error that ends it is `run/error` in the events, without
  secrets: logs may be elsewhere, or gone.

  Raises:
    LeftEarlyError: The block ended by `sys.exit()`, as if the run were done.
  """
  try:
    try:
      yield
    except SystemExit as error:
      if error.code:
        raise
      raise LeftEarlyError(
          f'sys.exit({error.code}) was called at step {watchdog.step}, before '
          'the run was done: expected code of a recipe to let it go on, or to '
          'raise what is wrong. Look for it in actions, metrics and data '
          'sources.'
      ) from error
  except BaseException as error:
    if not isinstance(error, _IN_ORDER):
      _record(error, model_dir, step=watchdog.step)
    watchdog.tell_end(
        next(
            (end for kind, end in _BY_ERROR.items() if isinstance(error, kind)),
            time_ledgers.FAILED,
        )
    )
    raise
  if distributed.process_index() == 0:
    training_end.note_done(model_dir)
  watchdog.tell_end(time_ledgers.DONE)
