# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Shards of buckets on a disk of this machine, by their SHA-256.

A shard is fetched once for all processes of a machine, and is there only after
its hash was found right. What was not read for the longest time makes room. The
folder is the environment's to name, as it is a machine's and no recipe's:
T5WILD_NODE_CACHE, and T5WILD_NODE_CACHE_BYTES for the most that it may hold.
"""

import contextlib
import errno
import logging
import os
import shutil
import tempfile
import threading
import time
import uuid

import filelock

from t5wild.data import places

FOLDER = 'T5WILD_NODE_CACHE'
MOST_BYTES = 'T5WILD_NODE_CACHE_BYTES'
_SUFFIX = '.shard'
_PART = '.part'
_LEFT_FREE = 0.05  # of what is free, where no most is said
_STALE_SECONDS = 600.0  # a part that nobody writes to any more


class NodeCacheError(OSError):
  """The node's cache cannot take a shard; says what to do."""


class WrongHashError(ValueError):
  """A file of a bucket is not what its hash says; `found` is its own."""

  def __init__(self, found: str):
    """Takes the hash of what was fetched."""
    super().__init__(f'it has the SHA-256 {found}')
    self.found = found


class NodeCache:
  """A folder of shards; any number of processes may share it."""

  def __init__(self, folder: str, *, most_bytes: int | None = None):
    """Makes the folder.

    Args:
      folder: of a disk of this machine.
      most_bytes: of all shards together; None: what is free there.

    Raises:
      NodeCacheError: it cannot be made, or is another user's.
    """
    self.folder = folder
    self._most_bytes = most_bytes
    self._in_use: set[str] = set()
    self._lock = threading.Lock()
    try:
      os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
      raise NodeCacheError(
          f'{folder} cannot be made ({error}): expected a folder of this '
          f'machine for shards of buckets. Name one by {FOLDER}.'
      ) from None
    if os.stat(folder).st_uid != os.getuid():
      raise NodeCacheError(
          f'{folder} is of the user {os.stat(folder).st_uid}: expected one of '
          f'{os.getuid()}, whose shards can be trusted. Name another by '
          f'{FOLDER}.'
      )

  @classmethod
  def of_environment(cls) -> 'NodeCache':
    """The one that the environment names, by default in its folder TMPDIR.

    Raises:
      NodeCacheError: see `__init__`; or what is named is no number.
    """
    folder = os.environ.get(FOLDER) or os.path.join(
        tempfile.gettempdir(), f't5wild_shards_{os.getuid()}'
    )
    text = os.environ.get(MOST_BYTES)
    try:
      most = int(float(text)) if text else None
    except (ValueError, OverflowError):
      raise NodeCacheError(
          f'{MOST_BYTES} is {text!r}: expected a number of bytes, such as '
          '200e9. Set it to one, or unset it.'
      ) from None
    return cls(folder, most_bytes=most)

  def most_bytes(self) -> int:
    """What all shards together may take, as it is now."""
    if self._most_bytes is not None:
      return self._most_bytes
    free = shutil.disk_usage(self.folder).free
    held = sum(size for size, _, _ in self._held())
    return int(free * (1 - _LEFT_FREE)) + held

  def check_room(self, num_bytes: int, *, what: str) -> None:
    """Refuses what could never be here as a whole.

    Raises:
      NodeCacheError: with both sizes.
    """
    most = self.most_bytes()
    if num_bytes > most:
      raise NodeCacheError(
          f'{what} has {num_bytes} bytes, and {self.folder} may hold {most}: '
          'expected room for all, as each window of the order is of all '
          f'shards. Name a larger disk by {FOLDER}, raise {MOST_BYTES}, or '
          'copy the cache to a file system that all machines see.'
      )

  def path_of(self, sha256: str) -> str:
    """Where a shard is, or would be."""
    return os.path.join(self.folder, f'{sha256}{_SUFFIX}')

  def fetch(self, path: str, *, sha256: str, num_bytes: int) -> str:
    """Returns a shard's file on this machine, fetched if it is not there.

    Args:
      path: in a bucket.
      sha256: of its bytes, which is checked.
      num_bytes: its size.

    Raises:
      WrongHashError: it is not what was written.
      NodeCacheError: there is no room, or the disk refused it.
      OSError: the bucket did.
    """
    own = self.path_of(sha256)
    with self._lock:
      self._in_use.add(own)
    if self._is_there(own, num_bytes=num_bytes):
      return own
    with filelock.FileLock(f'{own}.lock'):
      if not self._is_there(own, num_bytes=num_bytes):
        self._fetch(path, own, sha256=sha256, num_bytes=num_bytes)
    return own

  def _is_there(self, own: str, *, num_bytes: int) -> bool:
    try:
      if os.path.getsize(own) != num_bytes:
        return False
      os.utime(own)  # the time of its last use
    except FileNotFoundError:
      return False
    return True

  def _fetch(
      self, path: str, own: str, *, sha256: str, num_bytes: int
  ) -> None:
    part = f'{own}.{uuid.uuid4().hex}{_PART}'
    try:
      self._reserve(part, num_bytes=num_bytes, path=path)
      found = places.fetch(path, part)
      if found != sha256:
        raise WrongHashError(found)
      os.replace(part, own)
    except OSError as error:
      if error.errno != errno.ENOSPC:
        raise
      raise NodeCacheError(
          f'{self.folder} is full: expected room for the {num_bytes} bytes of '
          f'{path}. Free some, or name a larger disk by {FOLDER}.'
      ) from None
    finally:
      with contextlib.suppress(FileNotFoundError):
        os.remove(part)

  def _reserve(self, part: str, *, num_bytes: int, path: str) -> None:
    """Makes room for a shard, and takes it for a file of its size."""
    with filelock.FileLock(os.path.join(self.folder, 'room.lock')):
      most = self.most_bytes()
      held = sorted(self._held(), key=lambda each: each[1])
      total = sum(size for size, _, _ in held)
      for size, used, old in held:
        if total + num_bytes <= most:
          break
        is_stale = used < time.time() - _STALE_SECONDS
        if old in self._in_use or (old.endswith(_PART) and not is_stale):
          continue
        logging.info('%s is removed to make room for %s', old, path)
        with contextlib.suppress(FileNotFoundError):
          os.remove(old)
        total -= size
      if total + num_bytes > most:
        raise NodeCacheError(
            f'there is no room for {path} in {self.folder}: it has {num_bytes} '
            f'bytes, what this process reads there {total}, and {most} is the '
            f'most. Expected room for all. Name a larger disk by {FOLDER}, or '
            f'raise {MOST_BYTES}.'
        )
      with open(part, 'wb') as file:
        file.truncate(num_bytes)

  def _held(self) -> list[tuple[int, float, str]]:
    """(bytes, time of the last use, path) of each shard and part."""
    with os.scandir(self.folder) as entries:
      mine = [e for e in entries if e.name.endswith((_SUFFIX, _PART))]
    found = []
    for entry in mine:
      with contextlib.suppress(FileNotFoundError):
        status = entry.stat()
        found.append((status.st_size, status.st_mtime, entry.path))
    return found
