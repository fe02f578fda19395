# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint as nested numpy arrays, without any model; T5X's functions."""

from collections.abc import Callable, Mapping, Sequence
import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import formats
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
    flat = {key: np.asarray(leaf) for key, leaf in flat.items()}
  return transforms.unflatten(flat)


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
