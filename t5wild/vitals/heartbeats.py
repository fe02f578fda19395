# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Signs of life: one small file for each process, replaced every second.

Whoever sees the run directory sees how far each process has come, with no
collective and no network of the run's own.
"""

from collections.abc import Sequence
import contextlib
import dataclasses
import glob
import json
import os
import re
import time

from t5wild import run_dir as run_dir_lib

_TEMPORARY = re.compile(r'\.\d+\.tmp\Z')
# Where in a run directory `replace` writes.
_WITH_SMALL_FILES = (
    '', 'heartbeats/*/', 'hosts/signs/', 'stacks/', 'time/', 'vitals/'
)  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Heartbeat:
  """One sign of life.

  Attributes:
    process: index of the process in the run.
    host: name of its machine.
    pid: its process id there.
    attempt: number of the supervisor's attempt; 0 without one.
    supervisor: its process id; 0 without one.
    count: how many signs this process has given; one more each time.
    seconds: wall clock when it was given, seconds since 1970.
    first_step: updates in the state with which the process began.
    step: updates handed to the device since; it runs ahead by two at most.
    phase: kind of the time ledger that is open, e.g. `step`, `save`.
    phase_seconds: how long nothing has finished in it.
    median_step_seconds: of the last steps; None before there are any.
    host_seconds: that its loop was busy a step, of the last interval.
    device_seconds: of the same small piece of work on its slowest device.
    ended: how the run ended, as the time ledger has it; '': it goes on.
    dated: when it was given, by the clock of the run's records; 0: not told.
  """

  process: int
  host: str
  pid: int
  attempt: int
  supervisor: int
  count: int
  seconds: float
  first_step: int
  step: int
  phase: str
  phase_seconds: float
  median_step_seconds: float | None = None
  host_seconds: float | None = None
  device_seconds: float | None = None
  ended: str = ''
  dated: float = 0.0


def write(run_dir: run_dir_lib.RunDir, heartbeat: Heartbeat) -> None:
  """Replaces the file of a process, whole.

  Raises:
    OSError: it cannot be written.
  """
  path = run_dir.heartbeat(heartbeat.host, heartbeat.process)
  replace(path, json.dumps(dataclasses.asdict(heartbeat)), num_folders=2)


def replace(path: str, text: str, *, num_folders: int = 1) -> None:
  """Writes a file that readers see whole, old or new.

  Args:
    path: in a run directory, which is there once a run is accepted, and is not
      made: whoever deletes it does so for good.
    text: all of it.
    num_folders: how many folders around the file lie below the run directory;
      these are made.

  Raises:
    OSError: it cannot be written.
  """
  temporary = f'{path}.{os.getpid()}.tmp'
  try:
    with open(temporary, 'w', encoding='utf-8') as file:
      file.write(text)
  except FileNotFoundError:
    folders = [os.path.dirname(path)]
    while len(folders) < num_folders:
      folders.append(os.path.dirname(folders[-1]))
    for folder in reversed(folders[:num_folders]):
      with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
    with open(temporary, 'w', encoding='utf-8') as file:
      file.write(text)
  os.replace(temporary, path)


def remove_leftovers(
    run_dir: run_dir_lib.RunDir, *, older_seconds: float = 60.0
) -> list[str]:
  """Removes what writers that were killed, or a full disk, left of `replace`.

  Args:
    run_dir: on a local disk.
    older_seconds: what is younger may be another process's, on any host.

  Returns:
    The paths.
  """
  found = [
      path
      for folder in _WITH_SMALL_FILES
      for path in glob.glob(f'{glob.escape(run_dir.path)}/{folder}*.tmp')
      if _TEMPORARY.search(path)
  ]
  removed = []
  for path in found:
    with contextlib.suppress(OSError):
      if time.time() - os.path.getmtime(path) > older_seconds:
        os.unlink(path)
        removed.append(path)
  return removed


def read(path: str | os.PathLike[str]) -> Heartbeat | None:
  """The sign of life in a file; None if there is none that can be read."""
  try:
    with open(path, encoding='utf-8') as file:
      return Heartbeat(**json.load(file))
  except (OSError, ValueError, TypeError):
    return None


def read_all(
    run_dir: run_dir_lib.RunDir, *, host: str | None = None
) -> list[Heartbeat]:
  """The newest sign of each process, of one host or of all, by index."""
  if host is None:
    pattern = glob.escape(os.path.dirname(run_dir.heartbeats('x'))) + '/*'
  else:
    pattern = glob.escape(run_dir.heartbeats(host))
  found = filter(None, map(read, glob.glob(pattern + '/*.json')))
  return sorted(found, key=lambda heartbeat: heartbeat.process)


def runs_now(run_dir: run_dir_lib.RunDir, *, now: float) -> float:
  """What a run's records would be dated now, by its newest sign of life.

  Args:
    run_dir: on a local disk.
    now: wall clock, seconds since 1970.
  """
  found = [sign for sign in read_all(run_dir) if sign.dated]
  if not found:
    return now
  newest = max(found, key=lambda sign: sign.seconds)
  return now + newest.dated - newest.seconds


def laggards(
    found: Sequence[Heartbeat], *, now: float, silent_seconds: float
) -> list[str]:
  """Says which processes the others wait for, the likeliest first.

  A process that gives no sign any more is stopped, dead, or cut off; among
  those alive, one whose counter is behind has not come to the step on which the
  others wait.

  Args:
    found: signs of one attempt.
    now: wall clock, seconds since 1970.
    silent_seconds: without a sign for so long a process counts as silent.
  """
  if not found:
    return []
  silent = [one for one in found if now - one.seconds > silent_seconds]
  names = [
      f'process {one.process} on {one.host} (pid {one.pid}) gave no sign of '
      f'life for {now - one.seconds:.0f} s: last in {one.phase!r} after step '
      f'{one.step}'
      for one in silent
  ]
  furthest = max(one.step for one in found)
  names += [
      f'process {one.process} on {one.host} (pid {one.pid}) is behind: in '
      f'{one.phase!r} after step {one.step}, others after step {furthest}'
      for one in found
      if one not in silent and one.step < furthest
  ]
  return names
