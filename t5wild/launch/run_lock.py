# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""One supervisor for each part of a run: two would start the same processes.

The processes it starts hold the lock as well, so that after a supervisor was
killed the next one waits until they have saved and left.
"""

from collections.abc import Mapping
import contextlib
import fcntl
import os
import socket
import time

from t5wild import run_dir as run_dir_lib

_RANKS = (
    'JAX_PROCESS_INDEX', 'SLURM_PROCID', 'OMPI_COMM_WORLD_RANK',
    'JOB_COMPLETION_INDEX',
)  # fmt: skip


class RunIsTakenError(RuntimeError):
  """Another supervisor, or what it started, is at work on this run."""


def label_from(environment: Mapping[str, str]) -> str:
  """Names a supervisor among those of its run: its host, and its rank.

  A launcher that starts several tasks on one host starts a supervisor in each.
  """
  ranks = [environment[name] for name in _RANKS if environment.get(name)]
  return '.rank_'.join([socket.gethostname(), *ranks[:1]])


@contextlib.contextmanager
def held(run_dir: run_dir_lib.RunDir, *, label: str, wait_seconds: float):
  """Holds the lock of a part of a run; yields its file descriptor.

  Args:
    run_dir: a local folder, which is made.
    label: names the part; see `label_from`.
    wait_seconds: how long to wait for another one to leave.

  Raises:
    RunIsTakenError: it did not.
    OSError: the folder cannot be written.
  """
  os.makedirs(run_dir.path, exist_ok=True)
  path = run_dir.join(f'supervisor.{label}.lock')
  descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
  try:
    _wait_for(descriptor, path, wait_seconds)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    yield descriptor
  finally:
    os.close(descriptor)


def _wait_for(descriptor: int, path: str, wait_seconds: float) -> None:
  deadline = time.monotonic() + wait_seconds
  while True:
    try:
      fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
      return
    except BlockingIOError:
      if time.monotonic() > deadline:
        owner = os.pread(descriptor, 20, 0).decode(errors='replace')
        raise RunIsTakenError(
            f'{path} is held by the supervisor of pid {owner}, or by what it '
            f'started, for {wait_seconds:.0f} s: expected this run to be free. '
            'Stop that one (kill PID), or train in another MODEL_DIR.'
        ) from None
      time.sleep(0.1)
