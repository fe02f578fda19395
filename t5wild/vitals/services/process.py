# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The process of one service's client: reads lines, and never answers late.

A client may raise, block, leak memory, or hold up the end of its process. Here
it can do so without the run, which writes lines to a pipe and reads a line for
each new complaint. The end of the pipe, also that of a killed run, ends it.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import threading
from typing import Any, TextIO

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import records as records_lib
from t5wild.vitals import redaction

_SECONDS_AFTER_THE_RUN = 60.0  # for what is left, where nobody waits any more


def main() -> None:
  """Serves what stdin says, and complains on stdout."""
  # A Ctrl-C or a SIGTERM of the whole group is the run's affair: it ends us.
  for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
  # Clients print; stdout is for complaints.
  complaints = os.fdopen(os.dup(1), 'w', encoding='utf-8')
  os.dup2(2, 1)
  lines = os.fdopen(os.dup(0), encoding='utf-8')
  first = json.loads(lines.readline())
  serve(first, lines, complaints)
  # A client's threads and exit hooks have no say in when we end.
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(0)


def serve(first: dict[str, Any], lines: TextIO, complaints: TextIO) -> None:
  """Hands lines to a client until they end.

  Args:
    first: the service (`service.described`), `model_dir`.
    lines: JSON: `{"records": [...]}` of lines of records, or `{"text": [step,
      name, text]}`.
    complaints: takes a line where something fails that did not before.
  """
  complained = _Complaints(complaints)
  client = None
  with complained.about('connect'):
    module = importlib.import_module(first['module'])
    made = getattr(module, first['name'])(**first['arguments'])
    client = made.connect(run_dir_lib.RunDir(first['model_dir']))
  for line in lines:
    if client is not None:
      with complained.about('write'):
        _hand_over(json.loads(line), client)
  limit = threading.Timer(_SECONDS_AFTER_THE_RUN, os._exit, [1])
  limit.daemon = True
  limit.start()
  if client is not None:
    with complained.about('close'):
      client.close()
  limit.cancel()


def _hand_over(message: dict[str, Any], client: Any) -> None:
  if 'text' in message:
    step, name, text = message['text']
    client.write_text(step, name, redaction.redacted(text))
  else:
    read = map(records_lib.from_line, message['records'])
    client.write([record for record in read if record is not None])


class _Complaints:
  """Says what fails, once until it works again."""

  def __init__(self, stream: TextIO):
    self._stream = stream
    self._failing: set[str] = set()
    self._about = ''

  def about(self, doing: str) -> _Complaints:
    """A context: what it raises is told."""
    self._about = doing
    return self

  def __enter__(self) -> None:
    """Begins to do something."""

  def __exit__(self, kind, error, trace) -> bool:
    """Tells of an error, and swallows it."""
    if error is None:
      self._failing.discard(self._about)
      return False
    if not isinstance(error, Exception):
      error = RuntimeError(f'{kind.__name__}: {error}')
    if self._about not in self._failing:
      text = redaction.redacted(f'{type(error).__name__}: {error}')
      told = {'doing': self._about, 'error': text}
      self._stream.write(json.dumps(told) + '\n')
      self._stream.flush()
    self._failing.add(self._about)
    return True

