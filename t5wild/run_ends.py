# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Tells a run's books how the run ended, by the exception that ended it."""

from collections.abc import Iterator
import contextlib
from typing import Any

from t5wild import training_plan
from t5wild.data import documents
from t5wild.data import shard_files
from t5wild.partitioning import compile_errors
from t5wild.trainer import action_checks
from t5wild.trainer import agreement
from t5wild.trainer import preemption
from t5wild.vitals import time_ledgers

# Errors that a restart would repeat, however late they come.
FOR_THE_USER = (
    action_checks.UnknownMetricError,
    agreement.DisagreementError,
    compile_errors.CudnnError,
    documents.CorruptTextError,
    shard_files.BadCacheError,
    training_plan.BadPlanError,
)
_BY_ERROR = {
    **dict.fromkeys(FOR_THE_USER, time_ledgers.REFUSED),
    preemption.Preempted: time_ledgers.STOPPED,
    KeyboardInterrupt: time_ledgers.STOPPED,
}


@contextlib.contextmanager
def told_to(watchdog: Any) -> Iterator[None]:
  """Tells the watchdog, which keeps the books, how the `with` block ends."""
  try:
    yield
  except BaseException as error:
    watchdog.tell_end(
        next(
            (end for kind, end in _BY_ERROR.items() if isinstance(error, kind)),
            time_ledgers.FAILED,
        )
    )
    raise
  watchdog.tell_end(time_ledgers.DONE)
