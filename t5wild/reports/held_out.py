# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What the quickstart measures on held-out text, from its held_out.jsonl."""

from __future__ import annotations

from collections.abc import Iterator
import json
import math
from typing import Any

import numpy as np

from t5wild import run_dir as run_dir_lib
from t5wild.reports import record_columns

FILE = 'held_out.jsonl'
PREFIX = 'held_out/'
_METRICS = {'nats_per_byte': 'nats/byte', 'exact_fraction': ''}


def read_rows(path: str) -> Iterator[dict[str, Any]]:
  """Yields the whole lines of a run; none where it has no such file."""
  try:
    with open(
        run_dir_lib.RunDir(path).join(FILE), encoding='utf-8', errors='replace'
    ) as lines:
      text = lines.read()
  except OSError:
    return
  for line in text.splitlines():
    try:
      row = json.loads(line)
    except ValueError:  # torn by a kill
      continue
    if isinstance(row, dict) and isinstance(row.get('step'), int):
      yield row


def read_columns(path: str) -> dict[str, record_columns.Column]:
  """The metrics over steps, as columns; their records have no clock (NaN)."""
  rows = list(read_rows(path))
  columns = {}
  for metric, unit in _METRICS.items():
    found = [
        (row['step'], float(row[metric]))
        for row in rows
        if isinstance(row.get(metric), (int, float))
    ]
    if found:
      steps, values = zip(*found, strict=True)
      columns[PREFIX + metric] = record_columns.Column(
          name=PREFIX + metric,
          unit=unit,
          steps=np.array(steps, np.int64),
          seconds=np.full(len(steps), math.nan),
          values=np.array(values, np.float64),
      )
  return columns
