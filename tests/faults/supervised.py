# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs two processes under `t5wild supervise`, harms them, reads what befell.

Faults come from outside: signals, files, sockets. No hook in what is tested.
"""

from collections.abc import Mapping, Sequence
import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import heartbeats
from t5wild.vitals import records
from tests import multiprocess

RECIPE = pathlib.Path(__file__).with_name('faults.gin')
TIMEOUT_SECONDS = 400
# A fault comes when this step is on record.
STEP = 25
NUM_STEPS = 60


def train_command(
    folder, bindings: Mapping[str, object], *, recipe: str = RECIPE.name
) -> list[str]:
  """`t5wild train` on the faults' recipe; `__` stands for a dot."""
  flags = [
      f'--gin.{name.replace("__", ".")}={value}'
      for name, value in {'MODEL_DIR': folder, **bindings}.items()
  ]
  return ['t5wild', 'train', f'--gin_file={RECIPE.parent / recipe}', *flags]


def environment() -> dict[str, str]:
  """One CPU device; all that compiles is kept for the next start."""
  return multiprocess.process_environment(
      devices_per_process=1,
      extra={'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '0'},
  )


class SupervisedRun:
  """A supervisor at work; `wait` for its end."""

  def __init__(
      self,
      folder: pathlib.Path,
      *,
      flags: Sequence[str] = (),
      first: Sequence[str] = (),
      processes: int = 2,
      extra: Mapping[str, str] | None = None,
      recipe: str = RECIPE.name,
      **bindings,
  ):
    """Starts it.

    Args:
      folder: of signs and events, and MODEL_DIR unless that is bound.
      flags: of the supervisor.
      first: comes before the command, as a wrapper does.
      processes: on this host.
      extra: environment variables.
      recipe: a file of this folder.
      **bindings: of gin; `__` stands for a dot.
    """
    self.folder = folder
    self.run_dir = run_dir_lib.RunDir(str(folder))
    self.log = folder.with_suffix('.log')
    with self.log.open('ab') as log:
      self.process = subprocess.Popen(
          [
              sys.executable, '-m', 't5wild.cli', 'supervise',
              f'--processes={processes}', '--stop_seconds=60',
              f'--run_dir={folder}',
              f'--node_ledger={folder.parent / "nodes.jsonl"}', *flags, '--',
              *first, *train_command(folder, bindings, recipe=recipe),
          ],
          env={**environment(), **(extra or {})},
          stdout=log,
          stderr=subprocess.STDOUT,
      )  # fmt: skip

  def sign(self, process: int, *, attempt: int = 1) -> heartbeats.Heartbeat:
    """The newest sign of life of a process; waits for its first.

    Args:
      process: its index.
      attempt: the sign is of this one, or a later one.
    """
    path = self.run_dir.heartbeat(socket.gethostname(), process)
    while True:
      sign = heartbeats.read(path)
      if sign is not None and sign.attempt >= attempt:
        return sign
      self._pause()

  def wait_for_step(self, step: int = STEP) -> None:
    """Returns when the loss of a step is on record."""
    while step not in losses(self.folder):
      self._pause()

  def wait_for_event(self, name: str) -> None:
    """Returns when an event is on record."""
    while not any(e.name.startswith(name) for e in self.events()):
      self._pause()

  def send(self, process: int, number: int) -> float:
    """Sends a signal to a training process; returns when."""
    os.kill(self.sign(process).pid, number)
    return time.time()

  def wait(self) -> int:
    """The supervisor's exit code."""
    return self.process.wait(TIMEOUT_SECONDS)

  def events(self) -> list[records.Record]:
    """What is on record, in order."""
    path = pathlib.Path(self.run_dir.events_jsonl)
    return list(records.read_records(path)) if path.exists() else []

  def exits(self) -> list[str]:
    """Kinds of the ends of its attempts."""
    prefix = 'supervisor/exit/'
    return [
        event.name.removeprefix(prefix)
        for event in self.events()
        if event.name.startswith(prefix)
    ]

  def close(self) -> None:
    """Ends whatever is left, in good order or not."""
    if self.process.poll() is None:
      self.process.send_signal(signal.SIGTERM)
      with contextlib.suppress(subprocess.TimeoutExpired):
        self.process.wait(20)
    self.kill()

  def kill(self) -> None:
    """Ends the supervisor, if it is alive, and all that it started, at once."""
    if self.process.poll() is not None:
      return
    self.process.kill()
    self.process.wait()
    for sign in heartbeats.read_all(self.run_dir):
      with contextlib.suppress(ProcessLookupError):
        os.kill(sign.pid, signal.SIGKILL)

  def _pause(self) -> None:
    if self.process.poll() is not None:
      raise AssertionError(f'it ended too early:\n{self.log.read_text()}')
    time.sleep(0.02)


def losses(folder) -> dict[int, float]:
  """Step to loss; of a step made twice, the last time."""
  path = pathlib.Path(folder) / 'metrics.jsonl'
  if not path.exists():
    return {}
  found = records.series(records.read_records(path), 'train/loss')
  return {record.step: record.value for record in found}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seconds:
  """How long what took: after a fault, and from a start to its first step."""

  detected: float
  next_step: float
  start: float


def seconds_after(
    run: SupervisedRun, fault: float, *, of_attempt: int = 1
) -> Seconds:
  """From a fault until it was seen, and until a step was finished again.

  Args:
    run: that recovered.
    fault: when it befell.
    of_attempt: the first after the fault that came to a step, of those after.
  """
  seen = [
      e.seconds
      for e in run.events()
      if e.name in ('supervisor/detected', 'watchdog/hang')
      and e.seconds > fault - 0.1
  ]
  started = [
      e.seconds
      for e in run.events()
      if e.name == 'supervisor/attempt' and e.seconds > fault
  ]
  again = [
      r.seconds
      for r in records.read_records(run.folder / 'metrics.jsonl')
      if r.name == 'train/loss' and r.seconds > started[of_attempt - 1]
  ]
  return Seconds(
      detected=min(seen) - fault,
      next_step=min(again) - fault,
      start=min(again) - started[of_attempt - 1],
  )


def tell(
    capsys, name: str, run: SupervisedRun, fault: float, *, of_attempt: int = 1
) -> Seconds:
  """Prints a row of the table; also to the file that FAULT_TABLE names."""
  seconds = seconds_after(run, fault, of_attempt=of_attempt)
  row = {
      'fault': name,
      'ends': run.exits(),
      'detected_seconds': round(seconds.detected, 2),
      'next_step_seconds': round(seconds.next_step, 2),
      'of_which_start_seconds': round(seconds.start, 2),
  }
  with capsys.disabled():
    sys.stdout.write(f'\n{json.dumps(row)}\n')
  if os.environ.get('FAULT_TABLE'):
    with open(os.environ['FAULT_TABLE'], 'a', encoding='utf-8') as file:
      file.write(json.dumps(row) + '\n')
  return seconds
