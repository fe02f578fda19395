# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Alerts of what a run itself puts on record while it goes on.

A save that was given up, a checkpoint that was damaged, a rewind: the run
survives them, and whoever is away should know.
"""

from collections.abc import Callable
import os

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import records

# A person is told of these; the rest stays on record.
NAMES = frozenset({
    'checkpoint/damaged', 'checkpoint/fell_back', 'checkpoint/file_system',
    'checkpoint/foreign', 'checkpoint/incomplete', 'checkpoint/mirror_failed',
    'checkpoint/quarantined', 'checkpoint/save_abandoned',
    'checkpoint/save_failed',
    'run/place_lost',
    'vitals/gradient_spike', 'vitals/loss_spike', 'vitals/not_finite',
    'vitals/plateau', 'vitals/rewind', 'vitals/slow_steps', 'vitals/stop',
    'vitals/straggler', 'watchdog/hang', 'watchdog/stalled',
})  # fmt: skip
_MOST_BYTES = 1 << 20  # at a time; what was skipped stays on record


class EventAlerts:
  """Tells of new events; the file may grow by any process's hand."""

  def __init__(
      self, run_dir: run_dir_lib.RunDir, notify: Callable[[str, str], object]
  ):
    """Takes the events so far as known.

    Args:
      run_dir: of the run.
      notify: given (kind, text) of each.
    """
    self._path = run_dir.events_jsonl
    self._notify = notify
    self._offset = self._size()

  def _size(self) -> int:
    try:
      return os.path.getsize(self._path)
    except OSError:
      return 0

  def look(self) -> None:
    """Tells of what was added; costs a look at the file's size."""
    size = self._size()
    if size <= self._offset:
      self._offset = size
      return
    self._offset = max(self._offset, size - _MOST_BYTES)
    try:
      with open(self._path, 'rb') as file:
        file.seek(self._offset)
        data = file.read(size - self._offset)
    except OSError:
      return
    whole = data.rfind(b'\n') + 1
    self._offset += whole
    for line in data[:whole].splitlines():
      record = records.from_line(line)
      if record is not None and record.name in NAMES:
        self._notify(record.name, f'step {record.step}: {record.text}')
