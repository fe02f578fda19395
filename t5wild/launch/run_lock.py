# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""One supervisor for each part of a run: two would start the same processes.

The processes it starts hold the lock as well, so that after a supervisor was
killed the next one waits until they have saved and left.
"""

from collections.abc import Callable, Iterator, Mapping
import contextlib
import os
import socket

from t5wild import folder_lock
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
def held(
    run_dir: run_dir_lib.RunDir,
    *,
    label: str,
    wait_seconds: float,
    say: Callable[[str], None],
) -> Iterator[int]:
  """Holds the lock of a part of a run; yields its file descriptor.

  Args:
    run_dir: a local folder, which is made.
    label: names the part; see `label_from`.
    wait_seconds: how long to wait for another one to leave.
    say: told that it waits.

  Raises:
    RunIsTakenError: it did not leave.
    OSError: the folder cannot be written.
  """
  os.makedirs(run_dir.path, exist_ok=True)
  path = run_dir.join(f'supervisor.{label}.lock')
  with contextlib.ExitStack() as stack:
    try:
      descriptor = stack.enter_context(
          folder_lock.held(path, wait_seconds=wait_seconds, say=say)
      )
    except folder_lock.TakenError as error:
      raise RunIsTakenError(
          f'{error}: expected this run to be free. Stop that supervisor (kill '
          'PID), or train in another MODEL_DIR.'
      ) from None
    yield descriptor
