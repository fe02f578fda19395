# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Says before the first step what of a store would fail at the thousandth."""

from collections.abc import Callable, Iterator
import concurrent.futures
import contextlib
import errno
import fcntl
import os
import resource
import shutil
import time
import uuid

PREFIX = '.store_probe_'
_BYTES = 2**20
_SLOW_SECONDS = 1.0
_OTHER_FILES = 256  # of Python, XLA, data
_NOT_THERE = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)


def look(
    directory: str,
    *,
    checkpoint_bytes: int,
    num_arrays: int,
    timeout_seconds: float = 60.0,
) -> list[str]:
  """Returns what speaks against saving there; nothing for a bucket.

  Writes a megabyte, and removes it.

  Args:
    directory: That exists and can be written.
    checkpoint_bytes: Of one checkpoint.
    num_arrays: In one checkpoint.
    timeout_seconds: How long to wait for the file system.
  """
  if '://' in directory:
    return []
  pool = concurrent.futures.ThreadPoolExecutor(1, 'store_probe')
  future = pool.submit(
      lambda: list(_findings(directory, checkpoint_bytes, num_arrays))
  )
  pool.shutdown(wait=False)
  try:
    return future.result(timeout_seconds)
  except concurrent.futures.TimeoutError:
    return [
        f'{directory} has not answered in {timeout_seconds:.0f} s, expected a '
        'write of a megabyte in less than one: saves will exceed '
        'SaveCheckpointConfig.deadline_seconds; mend the mount'
    ]


def _findings(
    directory: str, checkpoint_bytes: int, num_arrays: int
) -> Iterator[str]:
  yield from _space(directory, checkpoint_bytes)
  yield from _open_files(num_arrays)
  folder = os.path.join(directory, f'{PREFIX}{uuid.uuid4().hex[:8]}')
  try:
    os.mkdir(folder)
    yield from _writing(folder)
    yield from _locking(folder)
    yield from _renaming(folder)
  except OSError as error:
    yield (
        f'{directory} does not take a megabyte ({error}), expected a file '
        'system with space that can be written: saves will fail; mend it'
    )
  finally:
    for name in (folder, f'{folder}.renamed'):
      shutil.rmtree(name, ignore_errors=True)


def _space(directory: str, needed: int) -> Iterator[str]:
  stat = os.statvfs(directory)
  free = stat.f_bavail * stat.f_frsize
  if free < needed:
    yield (
        f'{directory} has {free / 1e9:,.2f} GB free, expected '
        f'{needed / 1e9:,.2f} GB for the next checkpoint (an old one goes only '
        'when the new one is whole): saves will fail; free space, or set '
        'SaveCheckpointConfig.keep'
    )
  if stat.f_files and stat.f_favail < 64:
    yield (
        f'{directory} has room for {stat.f_favail} files, expected at least '
        '64: saves will fail; free inodes'
    )


def _open_files(num_arrays: int) -> Iterator[str]:
  soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
  needed = num_arrays + _OTHER_FILES
  if soft < needed:
    with contextlib.suppress(OSError, ValueError):
      resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
  if soft != resource.RLIM_INFINITY and soft < needed:
    yield (
        f'this process may open {soft} files, expected {needed} for a '
        f'checkpoint of {num_arrays} arrays: saves or restores may fail; raise '
        'the hard limit (ulimit -Hn, LimitNOFILE)'
    )


def _writing(folder: str) -> Iterator[str]:
  start = time.monotonic()
  with open(os.path.join(folder, 'data'), 'wb') as file:
    file.write(b'\0' * _BYTES)
    file.flush()
    os.fsync(file.fileno())
  seconds = time.monotonic() - start
  if seconds > _SLOW_SECONDS:
    yield (
        f'{folder} takes {seconds:.1f} s to bring a megabyte to the disk, '
        'expected less than one: saves will be slow; use another store, with '
        'this one as a Mirror'
    )


def _locking(folder: str) -> Iterator[str]:
  with open(os.path.join(folder, 'data'), 'rb+') as file:
    try:
      fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
      if error.errno in _NOT_THERE:
        yield (
            f'{folder} has no file locks ({error}), expected them, by which '
            'two supervisors of one run find each other: mount it with locks'
        )


def _renaming(folder: str) -> Iterator[str]:
  try:
    os.rename(folder, f'{folder}.renamed')
  except OSError as error:
    yield (
        f'{folder} cannot be renamed ({error}), expected a file system that '
        'renames folders, by which a checkpoint becomes complete: use another'
    )


def is_shared(
    directory: str, *, process: int, meet: Callable[[str], list[str]]
) -> list[str]:
  """Returns what speaks against all processes seeing one store.

  Args:
    directory: The store.
    process: Index of this one.
    meet: Gives what each process brings, in order.
  """
  name = f'{PREFIX}{uuid.uuid4().hex[:8]}'
  path = os.path.join(directory, name)
  if process == 0:
    with open(path, 'w', encoding='utf-8') as file:
      file.write(name)
  names = meet(name)
  seen = os.path.exists(os.path.join(directory, names[0]))
  blind = [i for i, sees in enumerate(meet(str(seen))) if sees != 'True']
  if process == 0:
    os.unlink(path)
  if not blind:
    return []
  return [
      f'processes {blind} do not see what process 0 writes to {directory}, '
      'expected one store for all: saves will not become complete; name a '
      'directory that all hosts mount'
  ]
