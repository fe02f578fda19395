# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Files of a cache by their paths: in a folder of this machine, or a bucket.

A bucket has no folders and no renames; an object appears there as a whole.
Whatever fails there is an OSError, as on a disk.
"""

from collections.abc import Callable, Sequence
import concurrent.futures
import errno
import functools
import hashlib
import os
import pathlib
from typing import Any

from etils import epath

from t5wild import reachability
from t5wild.checkpoint_files import s3_paths  # noqa: F401 -- makes s3:// known

_SCHEMES = ('gs', 's3')
_REMOTE = '://'
_CHUNK_BYTES = 8 << 20
_MOST_REQUESTS = 16  # at once


class UnknownStoreError(ValueError):
  """A path in a kind of store that nothing here reads."""


def is_bucket(path: str | os.PathLike[str]) -> bool:
  """Whether a path lies in a bucket.

  Raises:
    UnknownStoreError: it is no folder, and no bucket that is known.
  """
  scheme, found, _ = os.fspath(path).partition(_REMOTE)
  if found and scheme not in _SCHEMES:
    raise UnknownStoreError(
        f'{os.fspath(path)!r} is on {scheme}{_REMOTE}: expected a folder of '
        f'this machine, or one of {[f"{s}{_REMOTE}" for s in _SCHEMES]}. Copy '
        'the cache to one of them.'
    )
  return bool(found)


def join(folder: str | os.PathLike[str], *names: str) -> str:
  """Path of a name in a folder."""
  if is_bucket(folder):
    return '/'.join((os.fspath(folder).rstrip('/'), *names))
  return os.path.join(folder, *names)


def seen_from(path: str | os.PathLike[str]) -> str:
  """What to say behind a path that depends on where a command was started."""
  if is_bucket(path) or os.path.isabs(path):
    return ''
  return f', seen from {os.getcwd()!r},'


class StorageError(OSError):
  """A bucket that does not do what was asked; names the path and the mend."""


def _told(call: Callable[..., Any]) -> Callable[..., Any]:
  @functools.wraps(call)
  def wrapped(path, *args, **kwargs):
    if not is_bucket(path):
      return call(path, *args, **kwargs)
    if not reachability.is_reachable(os.fspath(path)):
      raise StorageError(
          f'{os.fspath(path)}: its storage gave no answer within '
          f'{reachability.TIMEOUT_SECONDS:.0f} s. {_MEND}'
      )
    try:
      return call(path, *args, **kwargs)
    except (FileNotFoundError, NotADirectoryError, StorageError):
      raise
    except Exception as error:  # each driver has its own kinds
      if getattr(error, 'errno', None) == errno.ENOSPC:
        raise  # of this machine's disk
      reason = (str(error) or repr(error)).splitlines()[0][:300]
      raise StorageError(
          f'{os.fspath(path)}: {type(error).__name__}: {reason}. {_MEND}'
      ) from None  # its frames say nothing that helps

  return wrapped


_MEND = (
    'Expected a bucket that this machine reaches and may use. Check its name, '
    'the network and the credentials.'
)


def _at(path: str) -> Any:
  # etils asks for TensorFlow even where a path is a local one.
  return epath.Path(path) if is_bucket(path) else pathlib.Path(path)


@_told
def exists(path: str) -> bool:
  """Whether a file is there."""
  return _at(path).exists()


@_told
def read_text(path: str) -> str:
  """Contents of a small file."""
  return _at(path).read_text()


@_told
def num_bytes(path: str) -> int | None:
  """Size of a file; None where there is none."""
  if not is_bucket(path):
    return os.path.getsize(path) if os.path.exists(path) else None
  try:
    return epath.Path(path).stat().length
  except FileNotFoundError:
    return None
  except Exception:  # TensorFlow's NotFoundError is no OSError
    if not epath.Path(path).exists():
      return None
    raise


def side_by_side(
    call: Callable[[Any], Any], values: Sequence[Any], *, folder: str
) -> list[Any]:
  """Results of a call for each value; at once where each is a request."""
  if not is_bucket(folder):
    return [call(value) for value in values]
  with concurrent.futures.ThreadPoolExecutor(_MOST_REQUESTS) as pool:
    return list(pool.map(call, values))


@_told
def names(folder: str) -> list[str]:
  """What lies in a folder, by name; nothing where there is none."""
  try:
    return sorted(entry.name for entry in _at(folder).iterdir())
  except (FileNotFoundError, NotADirectoryError):
    return []


def folders_with(root: str, *, any_of: Sequence[str], depth: int) -> list[str]:
  """Folders below a root that have one of some files, in order."""
  there = names(root)
  if set(any_of) & set(there):
    return [root]
  if not depth:
    return []
  return [
      found
      for name in there
      for found in folders_with(
          join(root, name), any_of=any_of, depth=depth - 1
      )
  ]


@_told
def make_folder(path: str) -> None:
  """Makes a folder; in a bucket there are none to make."""
  if not is_bucket(path):
    os.makedirs(path, exist_ok=True)


@_told
def remove(path: str) -> None:
  """Removes a file, where it is."""
  _at(path).unlink(missing_ok=True)


@_told
def send_text(path: str, text: str) -> None:
  """Writes a small file into a bucket."""
  epath.Path(path).write_text(text)


@_told
def send(path: str, local: str) -> None:
  """Copies a file of this machine into a bucket.

  Raises:
    OSError: it did not arrive as a whole.
  """
  with open(local, 'rb') as source, epath.Path(path).open('wb') as target:
    while chunk := source.read(_CHUNK_BYTES):
      target.write(chunk)
  wanted, found = os.path.getsize(local), num_bytes(path)
  if found != wanted:
    raise StorageError(f'{path} has {found} bytes after {wanted} were sent')


@_told
def fetch(path: str, local: str) -> str:
  """Copies a file of a bucket to this machine; returns its SHA-256.

  Raises:
    OSError: it cannot be read, or there is no space here.
  """
  digest = hashlib.sha256()
  with epath.Path(path).open('rb') as source, open(local, 'r+b') as target:
    while chunk := source.read(_CHUNK_BYTES):
      digest.update(chunk)
      target.write(chunk)
    target.truncate()
    os.fsync(target.fileno())
  return digest.hexdigest()
