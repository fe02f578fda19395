# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A service that writes down what it takes, and fails as it is told to."""

from __future__ import annotations

import dataclasses
import json
import os
import time


@dataclasses.dataclass(frozen=True, kw_only=True)
class Notebook:
  """Appends what it takes to a file.

  Attributes:
    path: of the file.
    raises_in: 'connect', 'write' or 'close'.
    hangs_in: the same, for ever.
    ends_in: the same, killing its process.
    write_seconds: that each write takes.
    close_seconds: how long a run waits.
  """

  path: str
  raises_in: str = ''
  hangs_in: str = ''
  ends_in: str = ''
  write_seconds: float = 0.0
  close_seconds: float = 10.0

  def connect(self, run_dir):
    """The client."""
    self.act('connect')
    return _Client(self)

  def act(self, doing: str) -> None:
    """Fails if it is to."""
    if doing == self.raises_in:
      raise RuntimeError(f'no {doing} today, password=hunter2')
    while doing == self.hangs_in:
      time.sleep(1)
    if doing == self.ends_in:
      os._exit(3)


class _Client:
  def __init__(self, notebook: Notebook):
    self._notebook = notebook

  def _note(self, what) -> None:
    with open(self._notebook.path, 'a', encoding='utf-8') as file:
      file.write(json.dumps(what) + '\n')

  def write(self, records) -> None:
    self._notebook.act('write')
    time.sleep(self._notebook.write_seconds)
    self._note([[r.step, r.name, r.value] for r in records])

  def write_text(self, step, name, text) -> None:
    self._note([step, name, text])

  def close(self) -> None:
    self._notebook.act('close')
    self._note('closed')
