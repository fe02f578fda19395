# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Holds the step in a checkpoint's state against the name of its folder.

A folder that was renamed, or copied to another name, is whole by all its
hashes, and is another state than its name says.
"""

import os

from etils import epath
import numpy as np

from t5wild import run_dir as run_dir_lib
from t5wild.checkpoint_files import array_hashes
from t5wild.checkpoint_files import file_hashes

_KEY = 'state/step'


def problem(checkpoint: str | os.PathLike[str]) -> str | None:
  """What is wrong with the name of a checkpoint's folder; None if nothing is.

  The hash of the step tells, so that no array is decoded; nor is anything
  known of a checkpoint without hashes.
  """
  step = run_dir_lib.checkpoint_step(epath.Path(checkpoint).name)
  try:
    saved = array_hashes.read(checkpoint).get(_KEY)
  except file_hashes.NoHashesError:
    return None
  if step is None or saved is None:
    return None
  shape, dtype, expected = saved
  try:
    named = np.full(shape, step, dtype)
  except (TypeError, ValueError, OverflowError):  # no step of ours
    return None
  return None if array_hashes.hash_array(named) == expected else explain(step)


def explain(named: int, *, saved: int | None = None) -> str:
  """Says that a state is of another step than its folder.

  Args:
    named: The step in the folder's name.
    saved: That in the state; None: another one.
  """
  found = 'another step' if saved is None else f'step {saved}'
  return (
      f'its state is of {found}, and its folder is named for step {named}, '
      'expected the same: it was renamed, or is a copy of another checkpoint; '
      'give it its own name, or remove it'
  )
