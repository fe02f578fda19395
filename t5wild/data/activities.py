# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What the threads that make batches are doing, told to whoever waits for them.

Nothing is guessed: a reader says what it begins (a file, a shard), and of a
user's Python code the frame that is running is looked up.
"""

from collections.abc import Iterator
import contextlib
import os
import sys
import sysconfig
import threading
import time
import types

# By thread: what, and since when.
_doing: dict[int, tuple[str, float]] = {}
_OURS = __name__.split('.')[0]
_FOREIGN = tuple(
    os.path.realpath(sysconfig.get_paths()[name]) + os.sep
    for name in ('stdlib', 'platstdlib', 'purelib', 'platlib')
)
_SITE = f'{os.sep}site-packages{os.sep}'
# TensorFlow calls a pipeline's Python code from here.
_PIPELINE = os.path.join('tensorflow', 'python', 'ops', 'script_ops.py')


@contextlib.contextmanager
def doing(what: str) -> Iterator[None]:
  """Says what this thread does meanwhile, such as 'reading PATH'."""
  thread = threading.get_ident()
  before = _doing.get(thread)
  _doing[thread] = (what, time.perf_counter())
  try:
    yield
  finally:
    if before is None:
      del _doing[thread]
    else:
      _doing[thread] = before


def now(feeding: int | None) -> str | None:
  """What keeps a batch from being there; None where nobody says.

  A user's code comes first, then what was begun longest ago.

  Args:
    feeding: the thread that asks readers for batches.
  """
  for thread, frame in sys._current_frames().items():
    if thread != threading.get_ident():
      found = _users_frame(frame, is_feeding=thread == feeding)
      if found:
        return found
  begun = [
      (since, what)
      for thread, (what, since) in tuple(_doing.items())
      if thread != threading.get_ident()
  ]
  return min(begun)[1] if begun else None


def _users_frame(
    frame: types.FrameType | None, *, is_feeding: bool
) -> str | None:
  """The innermost frame of a user's code, in a thread that makes batches."""
  found = None
  makes_batches = is_feeding
  while frame is not None:
    path = frame.f_code.co_filename
    makes_batches = makes_batches or path.endswith(_PIPELINE)
    module = frame.f_globals.get('__name__', '')
    if found is None and module.split('.')[0] != _OURS and _is_users(path):
      name = frame.f_code.co_qualname
      found = f'{name} at {path}:{frame.f_lineno}'
    frame = frame.f_back
  return found if makes_batches else None


def _is_users(path: str) -> bool:
  real = os.path.realpath(path)
  return (
      os.path.isabs(path)
      and _SITE not in real
      and not real.startswith(_FOREIGN)
  )
