# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a run waited for when it waited for data, in its own words."""

from __future__ import annotations

import collections
from collections.abc import Iterator
import mmap
import os

from t5wild import run_dir as run_dir_lib
from t5wild.reports import history as history_lib
from t5wild.vitals import records as records_lib
from t5wild.vitals import redaction

_NAME = 'train/timing/data_wait_share'
_ALL = '100% for '


def reason(
    history: history_lib.History, *, first_step: int, last_step: int
) -> str:
  """The most frequent reason between two steps; '' where none is recorded."""
  path = run_dir_lib.RunDir(history.path).metrics_jsonl
  if _NAME not in history.columns or not os.path.isfile(path):
    return ''
  texts = collections.Counter(
      record.text
      for record in _records(path)
      if record.text and first_step <= record.step <= last_step
  )
  if not texts:
    return ''
  return redaction.redacted(texts.most_common(1)[0][0]).removeprefix(_ALL)


def _records(path: str) -> Iterator[records_lib.Record]:
  """The records of the name, found without a look at the other lines."""
  name = _NAME.encode()
  with (
      open(path, 'rb') as file,
      mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as lines,
  ):
    place = lines.find(name)
    while place >= 0:
      start = lines.rfind(b'\n', 0, place) + 1
      end = lines.find(b'\n', place)
      end = len(lines) if end < 0 else end
      line = lines[start:end].decode('utf-8', errors='replace')
      record = records_lib.from_line(line)
      if record is not None and record.name == _NAME:
        yield record
      place = lines.find(name, end)
