# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A model's state out of a checkpoint, on any mesh, host count and dtype."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
from typing import Any

from absl import logging
import jax
import jax.numpy as jnp
import numpy as np

from t5wild.checkpoints import state_io
from t5wild.checkpoints import transforms

PyTree = Any

# `dtype` of a restore that takes the parameters as they were saved.
AS_SAVED = 'as_saved'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
  """What is wanted of a checkpoint.

  Attributes:
    abstract_state: Nested state dict of the model; leaves have shape and dtype.
    shardings: Nested dict of the leaves' shardings.
    dtype: dtype of the floating-point parameters: a name, `AS_SAVED`, or None
      for the model's. Other leaves always get the model's.
    transformation_fns: See `RestoreCheckpointConfig`.
    is_resuming: Whether a run goes on in its own directory.
    strict: See `RestoreCheckpointConfig`.
    fallback_state: Makes a nested state dict for what the checkpoint lacks;
      None makes lacking an error.
  """

  abstract_state: Mapping[str, Any]
  shardings: Mapping[str, Any]
  dtype: str | None = None
  transformation_fns: Sequence[Callable[..., PyTree]] = ()
  is_resuming: bool = False
  strict: bool = True
  fallback_state: Callable[[], Mapping[str, Any]] | None = None


def restore_state(
    checkpoint: str,
    request: Request,
    *,
    when_checked: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
  """Returns the nested state dict, as jax arrays in the wanted shardings.

  Names and shapes are compared before any array is read; `when_checked` is
  called in between.

  Raises:
    steps.NotACheckpointError: The path is none.
    transforms.DifferentModelError: It is of another model.
    ValueError: A transformation refuses it.
  """
  stored = _transformed(state_io.read_structure(checkpoint), request)
  wanted = transforms.flatten(request.abstract_state)
  missing = transforms.check_same_model(
      stored,
      wanted,
      path=checkpoint,
      strict=request.strict,
      fallback_to_scratch=request.fallback_state is not None,
  )
  targets = _targets(
      {key: leaf for key, leaf in wanted.items() if key not in missing},
      stored,
      request,
  )
  when_checked()
  restored = _read(stored, targets)
  if missing:
    logging.warning(
        '%d of %d arrays are not in %s and begin from scratch: %s',
        len(missing), len(wanted), checkpoint, ', '.join(missing),
    )  # fmt: skip
    scratch = transforms.flatten(request.fallback_state())
    restored.update({key: scratch[key] for key in missing})
  return transforms.unflatten({key: restored[key] for key in wanted})


def _transformed(
    stored: Mapping[str, state_io.StoredArray], request: Request
) -> dict[str, Any]:
  state = transforms.unflatten(stored)
  for transform in request.transformation_fns:
    state = transform(
        state, request.abstract_state, is_resuming=request.is_resuming
    )
  return transforms.flatten(state)


def _targets(
    wanted: Mapping[str, Any], stored: Mapping[str, Any], request: Request
) -> dict[str, jax.ShapeDtypeStruct]:
  """Shape, dtype and sharding of every array to read."""
  shardings = transforms.flatten(request.shardings)
  lacking = sorted(wanted.keys() - shardings.keys())
  if lacking:
    raise ValueError(
        f'shardings has nothing for {lacking[:5]} ({len(lacking)} arrays), '
        'expected one for every array of abstract_state: use '
        'partitioner.shardings(train_state_axes).state_dict()'
    )
  return {
      key: jax.ShapeDtypeStruct(
          leaf.shape,
          _dtype(key, leaf, stored[key], request.dtype),
          sharding=shardings[key],
      )
      for key, leaf in wanted.items()
  }


def _dtype(key: str, leaf: Any, stored: Any, dtype: str | None):
  if not transforms.is_target(key) or dtype is None:
    return leaf.dtype
  if dtype == AS_SAVED:
    return stored.dtype
  return jnp.dtype(dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else (
      leaf.dtype
  )


def _read(
    stored: Mapping[str, Any], targets: Mapping[str, jax.ShapeDtypeStruct]
) -> dict[str, jax.Array]:
  """Reads each stored array once, and puts made ones into their sharding."""
  first_use = {}
  for key in targets:
    if isinstance(stored[key], state_io.StoredArray):
      first_use.setdefault(stored[key].key, key)
  by_folder = {}
  for source, key in first_use.items():
    by_folder.setdefault(stored[key].folder, {})[source] = targets[key]
  read = {}
  for folder, wanted in by_folder.items():
    read.update(state_io.read_arrays(folder, wanted))
  result = {}
  for key, target in targets.items():
    if not isinstance(stored[key], state_io.StoredArray):
      result[key] = _place(stored[key], target)
    elif first_use[stored[key].key] == key:
      result[key] = read[stored[key].key]
    else:  # A second use must not share memory: the step donates both.
      again = state_io.read_arrays(
          stored[key].folder, {stored[key].key: target}
      )
      result[key] = again[stored[key].key]
  return result


def _place(value: Any, target: jax.ShapeDtypeStruct) -> jax.Array:
  """Makes a global array of what a transformation computed on every host."""
  value = np.asarray(value).astype(target.dtype)
  return jax.make_array_from_callback(
      target.shape, target.sharding, lambda index: value[index]
  )
