# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Adds what befell a run's numbers to its `events.jsonl`, waiting for no disk.
"""

import logging
import threading

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import records
from t5wild.vitals import run_clock
from t5wild.vitals import supervised


class RunEvents:
  """Events of one process; the file is opened with the first of them."""

  def __init__(self, model_dir: str, *, prefix: str, process: int = 0):
    """Opens nothing yet.

    Args:
      model_dir: The run directory; for a bucket the supervisor's folder is
        taken, where there is one.
      prefix: Of all names.
      process: Who tells them.
    """
    told = supervised.from_environment()
    self._folder = told.folder if told is not None else model_dir
    self._prefix = prefix
    self._process = process
    self._writer: records.RecordWriter | None = None
    self._lock = threading.Lock()

  def add(
      self, name: str, *, step: int, value: float, unit: str = '', text: str
  ) -> None:
    """Adds `PREFIX/NAME`; where that cannot be written, the log has it."""
    name = f'{self._prefix}/{name}'
    logging.warning('%s: step %d: %s', name, step, text)
    record = records.Record(
        step, run_clock.now(), self._process, name, value, unit, text
    )
    with self._lock:
      if self._open():
        self._writer.write([record])

  def _open(self) -> bool:
    if self._writer is None and '://' not in self._folder:
      try:
        self._writer = records.RecordWriter(
            run_dir_lib.RunDir(self._folder).events_jsonl
        )
      except OSError:
        logging.exception('The event is not on record')
    return self._writer is not None

  def close(self) -> None:
    """Waits until all is written."""
    with self._lock:
      if self._writer is not None:
        self._writer.close()
        self._writer = None
