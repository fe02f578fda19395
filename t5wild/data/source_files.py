# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The files that a source reads, as far as they are of this machine.

Their sizes and times tell whether they are still what they were when a cache
was begun: shards of a text before a change do not go with shards after it.
"""

from collections.abc import Iterable, Mapping
import datetime
import hashlib
import os
import re

from t5wild.data import fingerprints

_MOST_NAMED = 5
_MOST_READ_BYTES = 1 << 30
# A source may name parts of a file: path[first:last].
_PART = re.compile(r'\[[^\[\]]*\]\Z')

# Size in bytes and time of the last change in nanoseconds, by path.
State = Mapping[str, tuple[int, int]]


def look_at(shards: Iterable[str]) -> State:
  """State of the files that a source's shards are of.

  Args:
    shards: names, as a seqio source lists them; what is no file of this
      machine (an object of a bucket, a made-up name) is passed over.
  """
  paths = {_PART.sub('', os.fspath(name)) for name in shards}
  found = {}
  for path in sorted(paths):
    try:
      status = os.stat(path)
    except (OSError, ValueError):
      continue
    found[os.path.abspath(path)] = (status.st_size, status.st_mtime_ns)
  return found


def in_words(state: State) -> str:
  """How many files there are, and how large they are together."""
  size = sum(num_bytes for num_bytes, _ in state.values())
  return f'{len(state):,} of {size:,} bytes'


def fingerprint(state: State) -> str:
  """Tells these files from others in one line, wherever they lie.

  By what is in them, as far as that is read in seconds; else by sizes and
  times.
  """
  told = hashlib.sha256()
  is_read = sum(size for size, _ in state.values()) <= _MOST_READ_BYTES
  for path in sorted(state, key=lambda path: (os.path.basename(path), path)):
    told.update(os.path.basename(path).encode() + b'\0')
    what = fingerprints.of_file(path) if is_read else repr(state[path])
    told.update(what.encode())
  return f'{in_words(state)}, {told.hexdigest()[:16]}'


def changes(before: State, after: State) -> str:
  """What differs, a line a file, the first few; '' where nothing does."""
  changed = sorted(
      path
      for path in before.keys() | after.keys()
      if before.get(path) != after.get(path)
  )
  lines = [
      f'  {path}: {_words(before.get(path))}, now {_words(after.get(path))}'
      for path in changed[:_MOST_NAMED]
  ]
  if len(changed) > _MOST_NAMED:
    lines.append(f'  and {len(changed) - _MOST_NAMED} more')
  return '\n'.join(lines)


def _words(state: tuple[int, int] | None) -> str:
  if state is None:
    return 'absent'
  size, nanoseconds = state
  time = datetime.datetime.fromtimestamp(nanoseconds / 1e9)
  return f'{size} bytes of {time:%Y-%m-%d %H:%M:%S.%f}'
