# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a run waited for when it waited for data, in its own words."""

from __future__ import annotations

import collections
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
  texts: collections.Counter[str] = collections.Counter()
  with open(path, encoding='utf-8', errors='replace') as file:
    for line in file:
      if _NAME not in line or '"text"' not in line:
        continue
      record = records_lib.from_line(line)
      is_inside = record and first_step <= record.step <= last_step
      if is_inside and record.text:
        texts[record.text] += 1
  if not texts:
    return ''
  return redaction.redacted(texts.most_common(1)[0][0]).removeprefix(_ALL)
