# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint as nested numpy arrays, without any model; T5X's functions."""

from collections.abc import Callable, Mapping, Sequence
import contextlib
import os
from typing import Any

from absl import logging
import jax
import jax.numpy as jnp
import numpy as np

from t5wild.checkpoint_files import array_hashes
from t5wild.checkpoint_files import file_hashes
from t5wild.checkpoint_files import steps
from t5wild.checkpoint_files import stored_arrays
from t5wild.checkpoints import formats
from t5wild.checkpoints import integrity
from t5wild.checkpoints import stored as stored_lib
from t5wild.checkpoints import transforms

PyTree = Any


def find_checkpoint(
    path: str | os.PathLike[str], step: int | None = None
) -> str:
  """Returns the checkpoint that a path means.

  Args:
    path: A run directory, a checkpoint folder, or T5X's file `checkpoint`.
    step: Which of a run directory; None: the newest.

  Raises:
    steps.NotACheckpointError: There is none.
  """
  path = steps.absolute_path(path)
  saved = steps.all_steps(path)
  if step is not None and step not in saved:
    raise steps.NotACheckpointError(
        f'{path} has no checkpoint of step {step}, expected one of '
        f'{saved[-8:]}: take one of these, or leave the step out'
    )
  if saved:
    newest = saved[-1]
    return steps.get_checkpoint_dir(path, newest if step is None else step)
  tensorflow = steps.tensorflow_checkpoints(path)
  if tensorflow:
    return tensorflow[-1]
  steps.find(path)
  return path


def load_t5x_checkpoint(  # T5X's signature, and one more
    path: str | os.PathLike[str],
    step: int | None = None,
    state_transformation_fns: Sequence[Callable[..., PyTree]] = (),
    remap: bool = True,
    restore_dtype: Any = None,
    lazy_parameters: bool = False,
    *,
    trust_paths: bool = False,
) -> PyTree:
  """Returns `{'target': parameters, 'state': ...}` of a checkpoint.

  Of T5X's two formats, ours, and Mesh-TensorFlow's.

  Args:
    path: A run directory, a checkpoint folder, or T5X's file `checkpoint`.
    step: Which of a run directory; None: the newest.
    state_transformation_fns: Called in order as f(state, {}).
    remap: Whether these are called.
    restore_dtype: dtype of the floating-point parameters; None: as saved.
    lazy_parameters: Leave arrays on the disk: leaves have shape and dtype, and
      `get()` reads them.
    trust_paths: See `RestoreCheckpointConfig`.

  Raises:
    steps.NotACheckpointError: The path holds none, or a damaged one.
  """
  checkpoint = find_checkpoint(path, step)
  state = transforms.unflatten(
      formats.read_structure(checkpoint, trust_paths=trust_paths)
  )
  for transform in state_transformation_fns if remap else ():
    state = transform(state, {})
  flat = transforms.flatten(state)
  formats.check_complete(flat.values(), checkpoint)
  flat = cast_parameters(flat, restore_dtype)
  if not lazy_parameters:
    check_whole(checkpoint)
    flat = {key: np.asarray(leaf) for key, leaf in flat.items()}
  return transforms.unflatten(flat)


def check_whole(checkpoint: str) -> None:
  """Refuses a checkpoint that is not what was saved; one of others is told.

  By the checksums of its files, else (in a bucket) by those of its arrays. Who
  writes its numbers elsewhere would give them new ones.

  Raises:
    steps.NotACheckpointError: It is damaged.
  """
  damages = None
  if os.path.isdir(checkpoint):
    with contextlib.suppress(file_hashes.NoHashesError):
      damages = [
          str(each)
          for each in file_hashes.verify(checkpoint).damages
          if each.file.startswith(f'{steps.STATE_ITEM}/')
      ]
  if damages is None and array_hashes.has_any(checkpoint):
    damages = [
        f'array {key} {what}' for key, what in stored_arrays.damages(checkpoint)
    ]
  if damages is None:
    logging.warning(
        '%s has no checksums, as those of T5X and of other programs: its '
        'numbers are taken as they are', checkpoint,
    )  # fmt: skip
  elif damages:
    raise steps.NotACheckpointError(
        integrity.explain(checkpoint, 'what is there was not saved', damages)
    )


def cast_parameters(flat: Mapping[str, Any], dtype: Any) -> dict[str, Any]:
  """Returns arrays by key, floating-point parameters in a dtype; None: as is.

  What is stored stays so: its numbers are cast when they are read.
  """
  if dtype is None:
    return dict(flat)
  dtype = jnp.dtype(jax.dtypes.canonicalize_dtype(dtype))
  return {
      key: _cast(leaf, dtype)
      if transforms.is_target(key) and jnp.issubdtype(leaf.dtype, jnp.floating)
      else leaf
      for key, leaf in flat.items()
  }


def _cast(leaf: Any, dtype: Any) -> Any:
  if isinstance(leaf, stored_lib.Stored):
    return stored_lib.Cast(leaf, dtype)
  return leaf.astype(dtype)
