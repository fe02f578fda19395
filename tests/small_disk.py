# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A file system of a few megabytes, to see what happens when it is full."""

import contextlib
import pathlib
import shutil
import subprocess

import pytest


@contextlib.contextmanager
def mounted(folder: pathlib.Path, *, megabytes: int):
  """Mounts one on a new folder; skips the test where that is not allowed."""
  folder.mkdir()
  mount = ['mount', '-t', 'tmpfs', '-o', f'size={megabytes}m']
  if shutil.which('mount') is None or subprocess.run(
      [*mount, 'tmpfs', str(folder)], capture_output=True, check=False
  ).returncode:
    pytest.skip('cannot mount a small file system: run as root to test')
  try:
    yield folder
  finally:
    subprocess.run(['umount', '-l', str(folder)], check=False)


def grow(folder: pathlib.Path, *, megabytes: int) -> None:
  """Gives a mounted one more space."""
  subprocess.run(
      ['mount', '-o', f'remount,size={megabytes}m', str(folder)], check=True
  )
