# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The files of a cache's shards: looked at, hashed, brought to this machine.

ArrayRecord reads files of this machine alone: a shard of a bucket is fetched
when its first record is asked for.
"""

from collections.abc import Iterable, Sequence
import concurrent.futures
import json
import logging
import os
import tempfile
import time
from typing import Any

from t5wild.data import activities
from t5wild.data import fingerprints
from t5wild.data import node_cache
from t5wild.data import places

MANIFEST = 'manifest.json'
_MOST_FETCHES = 8  # at once
_READ_AT_START = 64 << 20  # bytes of a shard
# Shards that this process has read whole, as they were then.
_found_good: set[tuple] = set()
MEND = (
    'Copy that file again; or delete it, and run `t5wild cache` again, which '
    'writes what is missing; or go on without it by '
    'CachedDatasetConfig.skip_bad_shards = True.'
)


class BadCacheError(ValueError):
  """A cache that cannot be read as it is; names the file and the mend."""


class UnreachableShardError(OSError):
  """A shard of a bucket that cannot be had now, whatever is in it."""


def read_json(path: str, *, wanted: str, mend: str) -> Any:
  """What a small JSON file of a cache says.

  Args:
    path: of the file.
    wanted: what was expected in it, for an error.
    mend: what to do where it is damaged.

  Raises:
    BadCacheError: it is damaged.
  """
  text = places.read_text(path)
  try:
    found = json.loads(text)
    if not isinstance(found, dict):
      raise ValueError(f'a JSON {type(found).__name__}, no object')
    return found
  except ValueError as error:
    raise BadCacheError(
        f'{path} is damaged ({error}; {len(text)} characters): expected '
        f'{wanted}. {mend}'
    ) from None


class ShardFiles:
  """Where the shards of one folder are; a shard is a `record_cache.Shard`."""

  def __init__(self, folder: str):
    """Looks at nothing yet."""
    self._folder = folder
    self._node: node_cache.NodeCache | None = None

  def path(self, shard: Any) -> str:
    """As it was written."""
    return places.join(self._folder, shard.name)

  def check_sizes(self, shards: Sequence[Any]) -> None:
    """Refuses shards that are missing or truncated.

    Raises:
      BadCacheError: naming the first.
    """
    for shard, complaint in zip(shards, self._complaints(shards), strict=True):
      if complaint:
        raise BadCacheError(f'the shard {self.path(shard)} {complaint} {MEND}')
    if places.is_bucket(self._folder):
      self._node_cache().check_room(
          sum(shard.num_bytes for shard in shards), what=self._folder
      )

  def check_smallest(self, shards: Sequence[Any]) -> None:
    """Refuses the shards of another cache, whose sizes may be the same.

    They are padded, and say little of small shards: so the smallest, where that
    is quick, is read whole. What is in a bucket is hashed when it is fetched.

    Raises:
      BadCacheError: with both hashes.
    """
    smallest = min(shards, key=lambda shard: shard.num_bytes, default=None)
    if (
        smallest is not None
        and smallest.num_bytes <= _READ_AT_START
        and not places.is_bucket(self._folder)
    ):
      self._check_bytes_once(smallest)

  def _check_bytes_once(self, shard: Any) -> None:
    """The same as `check_bytes`, but not of what this process has read."""
    there = os.stat(self.path(shard))
    as_it_is = (
        self.path(shard), shard.sha256, there.st_ino, there.st_size,
        there.st_mtime_ns,
    )  # fmt: skip
    if as_it_is not in _found_good:
      self.check_bytes(shard)
      _found_good.add(as_it_is)

  def _complaints(self, shards: Sequence[Any]) -> list[str]:
    found = places.side_by_side(
        lambda shard: places.num_bytes(self.path(shard)),
        shards,
        folder=self._folder,
    )
    return [
        _complaint(shard, size)
        for shard, size in zip(shards, found, strict=True)
    ]

  def check_bytes(self, shard: Any) -> None:
    """Reads a whole shard, and refuses what is not as it was written.

    Raises:
      BadCacheError: with both hashes.
    """
    if places.is_bucket(self._folder):
      self.bring([shard])
      return
    found = fingerprints.of_file(self.path(shard))
    if found != shard.sha256:
      raise BadCacheError(self._altered(shard, found))

  def local(self, shard: Any) -> str:
    """Its file on this machine; fetched, and its hash checked, if need be.

    Raises:
      BadCacheError: it was altered.
      UnreachableShardError: it cannot be had now.
    """
    if not places.is_bucket(self._folder):
      return self.path(shard)
    try:
      return self._node_cache().fetch(
          self.path(shard), sha256=shard.sha256, num_bytes=shard.num_bytes
      )
    except node_cache.WrongHashError as error:
      raise BadCacheError(self._altered(shard, error.found)) from None
    except OSError as error:
      raise UnreachableShardError(
          f'the shard {self.path(shard)} cannot be fetched ({error}): expected '
          f'{shard.num_bytes} bytes. Mend the access to it, or the disk, and '
          'run again.'
      ) from None

  def bring(self, shards: Iterable[Any]) -> None:
    """Fetches those that are not on this machine, side by side.

    Raises:
      BadCacheError: see `local`.
    """
    if not places.is_bucket(self._folder):
      return
    node = self._node_cache()
    missing = [
        shard
        for shard in shards
        if not os.path.exists(node.path_of(shard.sha256))
    ]
    if not missing:
      return
    start = time.monotonic()
    what = f'fetching {len(missing)} shards of {self._folder}'
    with (
        activities.doing(what),
        concurrent.futures.ThreadPoolExecutor(_MOST_FETCHES) as pool,
    ):
      for done in [pool.submit(self.local, shard) for shard in missing]:
        done.result()
    num_bytes = sum(shard.num_bytes for shard in missing)
    seconds = max(time.monotonic() - start, 1e-3)
    logging.info(
        'Fetched %d shards of %s into %s: %.1f MB in %.1f s.',
        len(missing), self._folder, node.folder, num_bytes / 1e6, seconds,
    )  # fmt: skip

  def verified_copy(self, shard: Any) -> str:
    """Its file, every byte of which was read again and is right.

    Raises:
      BadCacheError: it is not as it was written.
    """
    if not places.is_bucket(self._folder):
      self.check_bytes(shard)
      return self.path(shard)
    # Not what is on this machine, which was right once.
    node = self._node_cache()
    with tempfile.TemporaryDirectory(dir=node.folder) as folder:
      again = node_cache.NodeCache(folder)
      path = self.path(shard)
      try:
        copy = again.fetch(
            path, sha256=shard.sha256, num_bytes=shard.num_bytes
        )
      except node_cache.WrongHashError as error:
        raise BadCacheError(self._altered(shard, error.found)) from None
      os.replace(copy, node.path_of(shard.sha256))
    return node.path_of(shard.sha256)

  def _node_cache(self) -> node_cache.NodeCache:
    if self._node is None:
      self._node = node_cache.NodeCache.of_environment()
    return self._node

  def _altered(self, shard: Any, found: str) -> str:
    return (
        f'the shard {self.path(shard)} was altered:\n'
        f'  SHA-256 of {MANIFEST}: {shard.sha256}\n'
        f'  SHA-256 of the file:     {found}\n'
        f'Expected the same. {MEND}'
    )


def _complaint(shard: Any, size: int | None) -> str:
  expected = f'expected {shard.num_bytes} bytes, as {MANIFEST} says'
  if size is None:
    return f'is missing: {expected}.'
  if size != shard.num_bytes:
    return (
        f'has {size} bytes: {expected}; it is truncated or another file.'
    )
  return ''
