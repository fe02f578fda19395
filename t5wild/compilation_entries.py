# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Entries of JAX's compilation cache, sealed: whole, and of their own program.

JAX runs what lies under a program's name, and never replaces it. So a file that
a full disk or a kill cut off is read in vain at each start, which then compiles
anew for good; and bits that no checksum covers, or another program's file, are
run. Here each entry ends with a hash of its name and content, and what does not
agree with it is compiled anew and replaced.
"""

import contextlib
import errno
import hashlib
import pathlib
import struct

from absl import logging

try:  # nothing public takes a cache, and what is not public may go
  from jax._src import compilation_cache as jax_cache

  _open_file_cache = jax_cache.get_file_cache
  _reset = jax_cache.reset_cache
except (ImportError, AttributeError):
  jax_cache = None

# A skippable frame, as zstd's format names it: whoever decompresses the entry
# (zstd or zlib, with t5wild or without) passes over what stands behind it.
_SKIPPABLE = 0x184D2A5D
_MARK = b't5wild-1'
_HEADER = struct.Struct('<II')
_SEAL_BYTES = _HEADER.size + len(_MARK) + hashlib.sha256().digest_size


def _seal(key: str, value: bytes) -> bytes:
  told = hashlib.sha256(key.encode() + b'\0')
  told.update(value)
  body = _MARK + told.digest()
  return _HEADER.pack(_SKIPPABLE, len(body)) + body


def _program(key: str) -> str:
  return key.rpartition('-')[0] or key


class SealedEntries:
  """JAX's cache of one folder, as JAX asks for it."""

  def __init__(self, base, *, takes_unsealed: bool):
    """Wraps what JAX opened.

    Args:
      base: JAX's cache of a folder.
      takes_unsealed: whether entries that have no seal, as JAX writes them, are
        taken.
    """
    self._base = base
    self._path = base._path
    self._takes_unsealed = takes_unsealed
    self._given: set[str] = set()
    self._has_told = False
    self._is_locked = False  # by who stands still: 10 s were lost each time
    if getattr(base, 'eviction_enabled', False):
      _note_missing_ages(pathlib.Path(str(self._path)))

  def get(self, key: str) -> bytes | None:
    """Returns the program of this name; None where it is to be compiled."""
    if self._is_locked:
      return None
    try:
      entry = self._base.get(key)
    except OSError as error:
      self._tell(error, 'read')
      return None
    if entry is None:
      return None
    value, seal = entry[:-_SEAL_BYTES], entry[-_SEAL_BYTES:]
    if seal[_HEADER.size :].startswith(_MARK):
      is_good = seal == _seal(key, value)
    else:
      value, is_good = entry, self._takes_unsealed
    self._given.add(key)
    if is_good:
      return value
    logging.warning(
        'The compilation cache in %s holds a file for %s that was damaged or '
        "cut off, or is another program's: it is compiled anew and replaced.",
        self._path, _program(key),
    )  # fmt: skip
    return None

  def put(self, key: str, value: bytes) -> None:
    """Keeps a program, in the place of one that was of no use."""
    if self._is_locked:
      return
    try:
      if key in self._given:  # what JAX can use it does not compile
        self._remove(key)
      self._base.put(key, value + _seal(key, value))
    except OSError as error:
      self._tell(error, 'written')
      self._remove(key)

  def _remove(self, key: str) -> None:
    with contextlib.suppress(OSError):
      (self._path / f'{key}-cache').unlink()

  def _tell(self, error: OSError, verb: str) -> None:
    """Says once that the folder fails.

    In words of ours: a supervisor takes the system's for what ended the run.
    """
    self._is_locked = isinstance(error, TimeoutError)
    if self._has_told:
      return
    self._has_told = True
    logging.warning(
        'The compilation cache in %s cannot be %s (%s); the run goes on, and '
        'compiles at each start what is not there. Make room, or name another '
        'folder in T5WILD_COMPILATION_CACHE.',
        self._path, verb, reason(error),
    )  # fmt: skip


def reason(error: OSError) -> str:
  """What failed, in a word that no reader of logs takes for a run's end."""
  if error.errno is None:
    return type(error).__name__
  return errno.errorcode.get(error.errno, str(error.errno))


def _note_missing_ages(folder: pathlib.Path) -> None:
  """Gives an age to entries whose writer was killed before it noted one.

  Without it JAX before 0.12 fails at each removal of the oldest, which comes
  before each write: nothing is kept any more.
  """
  for entry in folder.glob('*-cache'):
    age = entry.with_name(entry.name.removesuffix('-cache') + '-atime')
    if not age.exists():
      with contextlib.suppress(OSError):
        age.write_bytes(bytes(8))


def start(*, takes_unsealed: bool) -> None:
  """Has JAX read and write sealed entries from now on, in this process.

  Args:
    takes_unsealed: whether to take entries that were written without t5wild.
  """
  if jax_cache is None:
    logging.warning(
        'This JAX opens its compilation cache in another way than 0.10 to '
        '0.12: its entries are not sealed, and one that is damaged is not '
        'found out.'
    )
    return

  def open_sealed(path: str):
    try:
      base, path = _open_file_cache(path)
    except OSError as error:
      logging.warning(
          'No compilation cache: %s cannot be opened (%s). Every start '
          'compiles anew; name a writable folder to change that.',
          path, reason(error),
      )  # fmt: skip
      return None
    return SealedEntries(base, takes_unsealed=takes_unsealed), path

  if jax_cache.get_file_cache is _open_file_cache:
    jax_cache.get_file_cache = open_sealed
    _reset()  # what was opened before, if anything
