# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a supervisor writes into a run's events, and reads back."""

import os

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import records
from t5wild.vitals import run_clock

ATTEMPT = 'supervisor/attempt'


class Events:
  """Appends to `events.jsonl`; each event is on disk when `add` returns."""

  def __init__(self, run_dir: run_dir_lib.RunDir):
    """Opens the file.

    Raises:
      OSError: it cannot be written.
    """
    self._writer = records.RecordWriter(run_dir.events_jsonl)

  def add(
      self,
      name: str,
      value: float,
      *,
      unit: str = '',
      text: str = '',
      step: int | None = None,
      process: int = 0,
  ) -> None:
    """Adds one event, `supervisor/NAME`."""
    self._writer.write([
        records.Record(
            step or 0, run_clock.now(), process, f'supervisor/{name}', value,
            unit, text,
        )  # fmt: skip
    ])
    self._writer.flush()

  def close(self) -> None:
    """Closes the file."""
    self._writer.close()


def last_attempt(run_dir: run_dir_lib.RunDir) -> int:
  """Number of the newest attempt of any supervisor; 0 before the first."""
  if not os.path.exists(run_dir.events_jsonl):
    return 0
  found = records.read_records(run_dir.events_jsonl)
  return max(
      (int(record.value) for record in found if record.name == ATTEMPT),
      default=0,
  )
