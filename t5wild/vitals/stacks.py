# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What every thread of this process is doing, written down."""

import faulthandler
import os
import shutil
import subprocess
import sys
import threading
import time

NATIVE_SECONDS = 10.0
_DEBUGGERS = ('pdb', 'bdb', 'pydevd', '_pydevd')


def write(path: str | None, why: str) -> None:
  """Appends the Python stacks of all threads to a file (None: stderr)."""
  if path is None:
    faulthandler.dump_traceback(sys.__stderr__, all_threads=True)
    return
  os.makedirs(os.path.dirname(path), exist_ok=True)
  with open(path, 'a', encoding='utf-8') as file:
    names = ', '.join(
        f'{thread.name} is 0x{thread.ident:016x}'
        for thread in threading.enumerate()
        if thread.ident is not None  # one is about to begin
    )
    file.write(
        f'=== {time.strftime("%F %T")} pid {os.getpid()}: {why}\n'
        f'threads: {names}\n'
    )
    file.flush()
    faulthandler.dump_traceback(file, all_threads=True)


def write_native(path: str) -> None:
  """Appends the native stacks, by py-spy if it is there; takes seconds."""
  found = _native()
  with open(path, 'a', encoding='utf-8') as file:
    file.write(found)


def _native() -> str:
  """What py-spy sees of this process, or why it sees nothing."""
  found = shutil.which('py-spy')
  if found is None:
    return '(no native stacks: py-spy is not installed)\n'
  try:
    done = subprocess.run(
        [found, 'dump', '--native', '--pid', str(os.getpid())],
        capture_output=True,
        text=True,
        timeout=NATIVE_SECONDS,
        check=False,
    )
  except (OSError, subprocess.TimeoutExpired) as error:
    return f'(no native stacks: {error})\n'
  return done.stdout or f'(no native stacks: {done.stderr.strip()})\n'


def in_debugger() -> bool:
  """Whether a person's debugger holds the main thread: pdb's, an editor's."""
  frame = sys._current_frames().get(threading.main_thread().ident)
  while frame is not None:
    if frame.f_globals.get('__name__', '').startswith(_DEBUGGERS):
      return True
    frame = frame.f_back
  return False
