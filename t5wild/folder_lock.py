# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A file that one process holds at a time.

The kernel lets go of it however its holder ends. Processes to which the holder
gives the descriptor hold it as well.
"""

from collections.abc import Callable, Iterator
import contextlib
import fcntl
import os
import socket
import time

_OWNER_BYTES = 300


class TakenError(RuntimeError):
  """Another process holds the file."""


def owner() -> str:
  """What this process writes into the files that it holds."""
  return f'pid {os.getpid()} on {socket.gethostname()}'


@contextlib.contextmanager
def held(
    path: str, *, wait_seconds: float, say: Callable[[str], None]
) -> Iterator[int]:
  """Holds a file, which is made; yields its descriptor.

  A file system without locks is told of, and nothing is held on it.

  Args:
    path: in a local or shared folder that exists.
    wait_seconds: how long to wait for another one to leave.
    say: told that it waits, and of a file system without locks.

  Raises:
    TakenError: the other one did not leave; says which it is.
    OSError: the file cannot be written.
  """
  descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
  try:
    _wait_for(descriptor, path, wait_seconds, say)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, owner().encode(), 0)
    yield descriptor
  finally:
    os.close(descriptor)


def _wait_for(descriptor, path, wait_seconds, say) -> None:
  deadline = time.monotonic() + wait_seconds
  told = False
  while True:
    try:
      fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
      return
    except BlockingIOError:
      other = os.pread(descriptor, _OWNER_BYTES, 0).decode(errors='replace')
      if time.monotonic() > deadline:
        raise TakenError(
            f'{path} is held by {other}, or by what it started, for '
            f'{wait_seconds:.0f} s'
        ) from None
    except OSError as error:  # a mount without locks
      say(f'{path} cannot be locked ({error}): nothing keeps a second one out.')
      return
    if not told:
      say(f'{path} is held by {other}: waiting for it to leave.')
      told = True
    time.sleep(0.1)
