# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The processes of one attempt on this host: started, watched, ended together.

They live and die as one: where one is gone, the others wait for it in a
collective, and no collective can be mended.
"""

from collections.abc import Callable, Mapping, Sequence
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from typing import BinaryIO

from t5wild import run_dir as run_dir_lib
from t5wild.launch import failures
from t5wild.launch import host_memory
from t5wild.launch import log_tails
from t5wild.launch import process_state
from t5wild.vitals import heartbeats
from t5wild.vitals import supervised
from t5wild.vitals import time_ledgers

# Signs come each second; so late, it is worth a line.
_LATE_SECONDS = 15.0
# Within this of an exit, a sign is the last one, or nearly.
_NEW_SIGN_SECONDS = 5.0


def free_port() -> int:
  """A TCP port of this machine that is free now."""
  with socket.socket() as probe:
    probe.bind(('127.0.0.1', 0))
    return probe.getsockname()[1]


def coordinator_flags(
    coordinator: str, *, count: int, index: int
) -> list[str]:
  """T5X's flags for one of several processes."""
  return [
      f'--coordinator_address={coordinator}',
      f'--process_count={count}',
      f'--process_index={index}',
  ]


def on_this_python(command: Sequence[str]) -> list[str]:
  """The command, where `t5wild` is that of this very interpreter."""
  if os.path.basename(command[0]) == 't5wild':
    return [sys.executable, '-m', 't5wild.cli', *command[1:]]
  return list(command)


def gives_signs(command: Sequence[str]) -> bool:
  """Whether a command is training of ours, here: it gives signs of life.

  What `srun` and its like start may be on another host.
  """
  if not os.path.basename(command[0]).startswith(('t5wild', 'python')):
    return False
  words = [os.path.basename(word) for word in command]
  return 't5wild.train' in words or (
      't5wild' in words and 'train' in words[words.index('t5wild') :]
  )


class LocalGroup:
  """The processes of one attempt."""

  def __init__(
      self,
      command: Sequence[str],
      *,
      told: supervised.Supervised,
      environments: Sequence[Mapping[str, str]],
      coordinator: str | None,
      count: int,
      first: int = 0,
      shown: BinaryIO | None,
      keep_open: Sequence[int] = (),
  ):
    """Starts them.

    Args:
      command: what to run.
      told: what they are told of this attempt.
      environments: of each, but for that.
      coordinator: `host:port`, told by flags; None: they find it themselves.
      count: of all processes of the run, on other hosts as well.
      first: index of the first of these among them.
      shown: where their output is shown.
      keep_open: file descriptors that live as long as any of them.

    Raises:
      OSError: the command cannot be run.
    """
    self._dir = run_dir_lib.RunDir(told.folder)
    self._told = told
    self._oom_kills = host_memory.num_oom_kills()
    self._processes: list[subprocess.Popen] = []
    self._tails: list[log_tails.LogTail] = []
    self._failures: list[failures.Failure] = []
    self._seen: dict[int, tuple[int, float]] = {}
    self._late: set[int] = set()
    self._first = first
    with contextlib.ExitStack() as stack:
      stack.callback(self.kill)
      for index, environment in enumerate(environments, start=first):
        flags = []
        if coordinator is not None:
          flags = coordinator_flags(coordinator, count=count, index=index)
        path = self._dir.attempt_log(told.attempt, told.label, index)
        with log_tails.open_log(path) as log:
          self._processes.append(
              subprocess.Popen(
                  [*on_this_python(command), *flags],
                  env={**environment, **told.to_environment()},
                  stdin=subprocess.DEVNULL,
                  stdout=log,
                  stderr=subprocess.STDOUT,
                  start_new_session=True,
                  pass_fds=keep_open,
              )
          )
        prefix = f'[{index}] ' if count > 1 else ''
        self._tails.append(
            log_tails.LogTail(path, shown=shown, prefix=prefix)
        )
      stack.pop_all()
    self._started = time.monotonic()

  def running(self) -> list[int]:
    """Indices of those that run; shows what they print, notes how they end."""
    for tail in self._tails:
      tail.pump()
    noted = {failure.process for failure in self._failures}
    ended = []
    for index, process in enumerate(self._processes):
      if self._first + index not in noted and process.poll() is not None:
        ended.append(index)
    # The lines first of all: the exit may have come after the last pump.
    for index in ended:
      self._tails[index].pump()
      failure = failures.classify(
          self._processes[index].returncode,
          self._tails[index].lines(),
          process=self._first + index,
          num_oom_kills=host_memory.num_oom_kills() - self._oom_kills,
      )
      self._failures.append(self._left_early(failure) or failure)
    return [
        index
        for index, process in enumerate(self._processes, start=self._first)
        if process.poll() is None
    ]

  def _left_early(self, end: failures.Failure) -> failures.Failure | None:
    """The failure of a process that says it is done, and by its sign is not.

    As where code of the recipe, or a library, ends the process. An old sign
    tells nothing: the last one may not have been written (a full disk).
    """
    if end.kind is not failures.DONE:
      return None
    for sign in self.signs():
      is_new = abs(time.time() - sign.seconds) < _NEW_SIGN_SECONDS
      is_open = sign.ended not in time_ledgers.IN_ORDER
      if sign.process == end.process and is_new and is_open:
        return failures.left_early(end.process, step=sign.step)
    return None

  def ended(self) -> list[failures.Failure]:
    """How those ended that have, in order of time."""
    return list(self._failures)

  def signs(self) -> list[heartbeats.Heartbeat]:
    """The newest signs of life of this attempt, on this host."""
    told = self._told
    return [
        sign
        for sign in heartbeats.read_all(self._dir, host=told.host)
        if (sign.attempt, sign.supervisor) == (told.attempt, told.supervisor)
    ]

  def silent(
      self,
      *,
      silent_seconds: float,
      start_seconds: float | None,
      on_late: Callable[[int, float, str], None] = lambda *told: None,
  ) -> tuple[int, str] | None:
    """A process that gives no sign of life, and what is wrong with it.

    Args:
      silent_seconds: how long the newest sign may stay the newest.
      start_seconds: how long the first may take; None: any time.
      on_late: told, once each time, of a process whose sign is late: its
        index, for how many seconds, and what is known of it.
    """
    now = time.monotonic()
    signs = self.signs()
    age = now - self._started
    if start_seconds is not None and age > start_seconds:
      missing = len(self._processes) - len(signs)
      if missing > 0:
        return self._first, (
            f'{missing} of {len(self._processes)} processes gave no sign of '
            f'life within {age:.0f} s of their start'
        )
    ended = {p.pid for p in self._processes if p.poll() is not None}
    for sign in signs:
      seen = self._seen.get(sign.process)
      if seen is None or seen[0] != sign.count:
        self._seen[sign.process] = seen = sign.count, now
        self._late.discard(sign.process)
      age = now - seen[1]
      if sign.pid in ended or age <= min(silent_seconds, _LATE_SECONDS):
        continue
      line = (
          f'no sign of life for {age:.1f} s: last in {sign.phase!r} after '
          f'step {sign.step} ({process_state.words(sign.pid)})'
      )
      if age > silent_seconds:
        return sign.process, line
      if sign.process not in self._late:
        self._late.add(sign.process)
        on_late(sign.process, age, line)
    return None

  def signal(self, number: int) -> None:
    """Sends a signal to each process, not to what it has started."""
    for process in self._processes:
      if process.poll() is None:
        process.send_signal(number)

  def abort(self) -> None:
    """Asks all for their stacks, as their last words on stderr."""
    self.signal(signal.SIGABRT)

  def kill(self) -> None:
    """Ends what is left, with all that it started."""
    for process in self._processes:
      with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for process in self._processes:
      process.wait()

  def close(self) -> None:
    """Shows what was printed last."""
    for tail in self._tails:
      tail.close()
