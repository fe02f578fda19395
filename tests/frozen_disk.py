# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A file system that stalls: whoever writes to it waits until it thaws."""

from collections.abc import Iterator
import contextlib
import pathlib
import shutil
import subprocess

import pytest

_NEEDED = ('mkfs.ext4', 'mount', 'umount', 'fsfreeze')
_MEGABYTES = 64


def _done(*command: object) -> bool:
  return not subprocess.run(
      list(map(str, command)), capture_output=True, check=False
  ).returncode


class Disk:
  """A mounted file system that can be frozen.

  Attributes:
    folder: where it is mounted.
  """

  def __init__(self, folder: pathlib.Path):
    """Takes a mounted one."""
    self.folder = folder

  def freeze(self) -> None:
    """Lets every write wait from now on."""
    subprocess.run(['fsfreeze', '-f', str(self.folder)], check=True)

  def thaw(self) -> None:
    """Lets them go on."""
    _done('fsfreeze', '-u', self.folder)


@contextlib.contextmanager
def mounted(folder: pathlib.Path) -> Iterator[Disk]:
  """Mounts one on a new folder; skips the test where that is not allowed."""
  image = folder.with_suffix('.image')
  if not all(map(shutil.which, _NEEDED)):
    pytest.skip(f'needs {_NEEDED} to stall a file system: install them')
  with image.open('wb') as file:
    file.truncate(_MEGABYTES * 2**20)
  folder.mkdir()
  if not _done('mkfs.ext4', '-q', image) or not _done(
      'mount', '-o', 'loop', image, folder
  ):
    pytest.skip('cannot mount a file system in a file: run as root to test')
  disk = Disk(folder)
  try:
    yield disk
  finally:
    disk.thaw()
    _done('umount', '-l', folder)
    image.unlink()
