# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The arrays of a checkpoint, whatever wrote it: found out by what lies there.

Orbax (ours and T5X's), T5X's native format, Mesh-TensorFlow's, Hugging Face's.
"""

from collections.abc import Iterable
import os
from typing import Any

from t5wild.checkpoint_files import array_specs
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import confinement
from t5wild.checkpoints import hf
from t5wild.checkpoints import state_io
from t5wild.checkpoints import stored as stored_lib
from t5wild.checkpoints import t5x_import
from t5wild.checkpoints import tf_import


def read_structure(
    checkpoint: str | os.PathLike[str], *, trust_paths: bool = False
) -> dict[str, stored_lib.Stored]:
  """Returns the arrays of a checkpoint by key, without their numbers.

  Args:
    checkpoint: A folder; or the first part of the names of a TensorFlow
      checkpoint, such as `model.ckpt-1000`.
    trust_paths: Whether it may have links and paths out of its folder.

  Raises:
    steps.NotACheckpointError: The path is none, or damaged.
    confinement.UnsafeCheckpointError: It points out of its folder.
  """
  kind, folder = steps.find(checkpoint)
  if kind == steps.TENSORFLOW:
    return tf_import.read_structure(os.fspath(folder))
  if not trust_paths:
    # All of it: the folder of the arrays may itself be a link out.
    confinement.check_files(checkpoint)
  if kind == steps.HUGGING_FACE:
    return hf.read_structure(os.fspath(folder))
  if kind == steps.T5X_NATIVE:
    return t5x_import.read_structure(folder, trust_paths=trust_paths)
  names = array_specs.names(folder)
  if not trust_paths:
    confinement.check_keys(names, where=str(folder))
  return state_io.read_structure(os.fspath(checkpoint))


def check_complete(arrays: Iterable[Any], checkpoint: str) -> None:
  """Refuses arrays that are not whole, as far as no number need be read.

  Args:
    arrays: Those that will be read; others than `Stored` are not looked at.
    checkpoint: Named in the error.

  Raises:
    steps.NotACheckpointError: Names the arrays.
  """
  sources = {
      id(source): source
      for array in arrays
      if isinstance(array, stored_lib.Stored)
      for source in array.sources()
  }
  t5x_import.check_complete(sources.values(), checkpoint)
