# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that a person has told to stay, by a file in each."""

import os
import time

from etils import epath

FILE = 'pinned.txt'


def pin(checkpoint: str | os.PathLike[str], *, reason: str = '') -> None:
  """Lets a checkpoint stay, whatever a run is told to keep.

  Raises:
    OSError: It cannot be written to.
  """
  when = time.strftime('%Y-%m-%d %H:%M:%S')
  (epath.Path(checkpoint) / FILE).write_text(f'{when} {reason}'.strip() + '\n')


def unpin(checkpoint: str | os.PathLike[str]) -> None:
  """Lets a checkpoint go when its time comes."""
  (epath.Path(checkpoint) / FILE).unlink(missing_ok=True)


def is_pinned(checkpoint: str | os.PathLike[str]) -> bool:
  """Whether somebody has pinned it; one that cannot be asked is pinned."""
  try:
    return (epath.Path(checkpoint) / FILE).exists()
  except OSError:
    return True
