# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A sink whose client lives in a process of its own, and can stop nothing."""

from collections.abc import Sequence
import contextlib
import json
import logging
import os
import queue
import subprocess
import sys
import threading
import time
from typing import Any

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import records as records_lib
from t5wild.vitals.services import service as service_lib

_MOST_WAITING = 2000  # reports; a client that hangs must not fill the memory
_LOOK_SECONDS = 1.0
_STOP = object()
# Finds what this process finds, a service of the user's own too.
_CODE = (
    'import sys; sys.path[:] = {path!r}; '
    'from t5wild.vitals.services import process; process.main()'
)


class ServiceSink:
  """Hands records to a service's process, and never waits for it.

  A report goes into a bounded queue, and a thread writes it to the process's
  pipe. What a service that hangs, fails or has gone does not take is dropped,
  told once, and counted in `dropped`; the run goes on. Only `close` waits, as
  long as the service's `close_seconds`, and then ends the process.
  """

  def __init__(
      self,
      service: service_lib.Service,
      run_dir: run_dir_lib.RunDir,
      *,
      most_waiting: int = _MOST_WAITING,
  ):
    """Starts the thread, which starts the process.

    Args:
      service: what gin made.
      run_dir: the run's directory, local.
      most_waiting: reports that may wait for the process.

    Raises:
      service.BadServiceError: it is none.
    """
    self.name = type(service).__name__
    self.dropped = 0
    self._described = service_lib.described(service)
    self._close_seconds = service.close_seconds
    self._run_dir = run_dir
    self._queue: queue.Queue = queue.Queue(most_waiting)
    self._process: subprocess.Popen | None = None
    self._has_told_of_drops = False
    self._is_closed = False
    self._until = 0.0
    self._thread = threading.Thread(
        target=self._run, name=f'service_{self.name}', daemon=True
    )
    self._thread.start()

  def write(self, records: Sequence[records_lib.Record]) -> None:
    """Queues records; returns at once."""
    self._put({'records': [records_lib.to_line(r) for r in records]})

  def write_text(self, step: int, name: str, text: str) -> None:
    """Queues a text; returns at once."""
    self._put({'text': [step, name, text]})

  def flush(self) -> None:
    """Does nothing: nobody waits for a service."""

  def start_closing(self) -> None:
    """Tells the service to end, and returns at once: several end together."""
    if not self._is_closed:
      self._is_closed = True
      self._until = time.monotonic() + self._close_seconds
      # Where it is full, the thread sees that it is closed once it is empty.
      with contextlib.suppress(queue.Full):
        self._queue.put_nowait(_STOP)

  def close(self) -> None:
    """Gives the service its seconds for what is left, then ends it."""
    self.start_closing()
    until = self._until
    self._thread.join(max(0.0, until - time.monotonic()))
    process = self._process
    if process is None:
      return
    try:
      process.wait(max(0.1, until - time.monotonic()))
    except subprocess.TimeoutExpired:
      logging.error(
          '%s has not sent all within %g s of the end of the run; the rest is '
          'lost there, and is in metrics.jsonl. More time: %s.close_seconds.',
          self.name, self._close_seconds, self.name,
      )  # fmt: skip
      process.kill()
      process.wait()

  def _put(self, message: dict[str, Any]) -> None:
    try:
      self._queue.put_nowait(message)
    except queue.Full:
      self.dropped += 1
      if not self._has_told_of_drops:
        self._has_told_of_drops = True
        self._tell('takes nothing more, as if it hung')

  def _tell(self, problem: str) -> None:
    logging.error(
        '%s %s. The run goes on without it: all is in metrics.jsonl. What its '
        'client said is in %s.',
        self.name, problem, self._run_dir.service_file(self.name, 'log.txt'),
    )  # fmt: skip

  def _run(self) -> None:
    """Starts the process, and feeds it until the end."""
    try:
      self._process = self._start()
      self._send({**self._described, 'model_dir': self._run_dir.path})
      while (message := self._next()) is not _STOP:
        self._send(message)
      self._process.stdin.close()
    except (OSError, ValueError, TypeError) as error:
      if not self._is_closed:
        self._tell(f'has ended ({error})')
      self._drop_the_rest()

  def _next(self) -> Any:
    while True:
      try:
        return self._queue.get(timeout=_LOOK_SECONDS)
      except queue.Empty:
        if self._is_closed:
          return _STOP

  def _drop_the_rest(self) -> None:
    while not self._is_closed:
      if self._next() is _STOP:
        return
      self.dropped += 1

  def _send(self, message: dict[str, Any]) -> None:
    self._process.stdin.write(json.dumps(message) + '\n')
    self._process.stdin.flush()

  def _start(self) -> subprocess.Popen:
    log = self._run_dir.service_file(self.name, 'log.txt')
    os.makedirs(os.path.dirname(log), exist_ok=True)
    with open(log, 'ab') as file:
      process = subprocess.Popen(
          [sys.executable, '-c', _CODE.format(path=sys.path)],
          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file,
          # Ctrl-C is for the run, which ends this with its pipe.
          start_new_session=True, encoding='utf-8',
      )  # fmt: skip
    threading.Thread(
        target=self._listen, args=(process,), daemon=True,
        name=f'service_{self.name}_complaints',
    ).start()  # fmt: skip
    return process

  def _listen(self, process: subprocess.Popen) -> None:
    for line in process.stdout:
      told = json.loads(line)
      self._tell(f'cannot {told["doing"]} ({told["error"]})')
