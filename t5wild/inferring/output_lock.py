# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Keeps two jobs from writing one output at once.

The system gives the lock back when its process ends, however it ends.
"""

import errno
import os

from absl import logging

# What file systems answer that know no locks.
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


class TakenError(Exception):
  """Another job has the lock."""


class OutputLock:
  """A lock on a file beside an output, held until the process ends."""

  def __init__(self, path: str):
    """Takes the lock; in a bucket, and where locks are unknown, there is none.

    Args:
      path: The file, which is made.

    Raises:
      TakenError: Another job has it.
      OSError: The file cannot be made.
    """
    self._file = None
    if '://' in path:
      return
    try:
      import fcntl
    except ImportError:  # not on Windows
      return
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
      os.close(file)
      if error.errno in _NO_LOCKS:
        logging.warning('%s: no locks there; start no second job', path)
        return
      if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
        raise TakenError from None
      raise
    self._file = file
    if not _is_still_there(file, path):
      # Its holder has just finished, and removed it with the chunks.
      self.close()
      raise TakenError

  def close(self) -> None:
    """Gives the lock back."""
    if self._file is not None:
      os.close(self._file)
      self._file = None


def _is_still_there(file: int, path: str) -> bool:
  try:
    return os.path.samestat(os.fstat(file), os.stat(path))
  except FileNotFoundError:
    return False
