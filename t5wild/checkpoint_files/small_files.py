# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Small files of a run, seen whole, old or new, on disks and in buckets."""

import os

from etils import epath

from t5wild.vitals import heartbeats


def replace(
    path: str | os.PathLike[str], text: str, *, num_folders: int = 1
) -> None:
  """Writes a file; a bucket has whole files alone.

  Args:
    path: of the file.
    text: all of it.
    num_folders: on a disk, see `heartbeats.replace`.

  Raises:
    OSError: it cannot be written.
  """
  if '://' in os.fspath(path):
    epath.Path(path).write_text(text)
  else:
    heartbeats.replace(os.fspath(path), text, num_folders=num_folders)
