# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Adds what befell a run's checkpoints to its `events.jsonl`."""

import logging
import os

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import records
from t5wild.vitals import run_clock
from t5wild.vitals import supervised

_EVERYDAY = ('mirrored',)


def add(
    model_dir: str, name: str, *, step: int, text: str, process: int = 0
) -> None:
  """Adds `checkpoint/NAME`; where that cannot be written, the log has it.

  Args:
    model_dir: The run directory; for a bucket the supervisor's folder is taken,
      where there is one.
    name: Of the event.
    step: Step of the checkpoint.
    text: What happened, for a person.
    process: Who tells it.
  """
  level = logging.INFO if name in _EVERYDAY else logging.WARNING
  logging.log(level, 'checkpoint/%s: step %d: %s', name, step, text)
  told = supervised.from_environment()
  folder = told.folder if told is not None else model_dir
  if not os.path.isdir(folder):  # a bucket, or a run directory that was moved
    return
  try:
    writer = records.RecordWriter(run_dir_lib.RunDir(folder).events_jsonl)
    writer.write([
        records.Record(
            step, run_clock.now(), process, f'checkpoint/{name}', 1.0, '', text
        )
    ])
    writer.close()
  except OSError:
    logging.exception('The event is not on record')
