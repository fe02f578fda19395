# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A model's state out of a checkpoint, on any mesh, host count and dtype."""

from collections.abc import Callable, Mapping, Sequence
import concurrent.futures
import dataclasses
import inspect
from typing import Any

from absl import logging
import jax
import jax.numpy as jnp
import numpy as np

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import common_sight
from t5wild.checkpoints import formats
from t5wild.checkpoints import integrity
from t5wild.checkpoints import layer_stacks
from t5wild.checkpoints import state_io
from t5wild.checkpoints import stored as stored_lib
from t5wild.checkpoints import transforms
from t5wild.partitioning import distributed

PyTree = Any

# `dtype` of a restore that takes the parameters as they were saved.
AS_SAVED = 'as_saved'

_MOST_AT_ONCE = 4  # Arrays read at the same time, besides Orbax's own.


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
    trust_paths: See `RestoreCheckpointConfig`.
  """

  abstract_state: Mapping[str, Any]
  shardings: Mapping[str, Any]
  dtype: str | None = None
  transformation_fns: Sequence[Callable[..., PyTree]] = ()
  is_resuming: bool = False
  strict: bool = True
  fallback_state: Callable[[], Mapping[str, Any]] | None = None
  trust_paths: bool = False


def restore_state(
    checkpoint: str,
    request: Request,
    *,
    when_checked: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
  """Returns the nested state dict, as jax arrays in the wanted shardings.

  Layers that are stacked in the checkpoint and plain in the model, or the
  reverse, are taken apart or stacked. Names and shapes are compared before any
  array is read; `when_checked` is called in between.

  Raises:
    common_sight.OtherSightError: Processes see different ones at the path.
    steps.NotACheckpointError: The path is none.
    transforms.DifferentModelError: It is of another model.
    ValueError: A transformation refuses it.
  """
  common_sight.check(checkpoint)
  wanted = transforms.flatten(request.abstract_state)
  stored = formats.read_structure(
      checkpoint, trust_paths=request.trust_paths
  )
  stored = _transformed(stored, wanted, request)
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
  formats.check_complete([stored[key] for key in targets], checkpoint)
  when_checked()
  restored = _read_on_all(checkpoint, stored, targets)
  if missing:
    logging.warning(
        '%d of %d arrays are not in %s and begin from scratch: %s',
        len(missing), len(wanted), checkpoint, ', '.join(missing),
    )  # fmt: skip
    scratch = transforms.flatten(request.fallback_state())
    restored.update({key: scratch[key] for key in missing})
  return transforms.unflatten({key: restored[key] for key in wanted})


def _transformed(
    stored: Mapping[str, stored_lib.Stored],
    wanted: Mapping[str, Any],
    request: Request,
) -> dict[str, Any]:
  """The checkpoint's arrays under the model's names.

  Transformations see both layouts of layers where they differ, so that their
  patterns may name the model's keys or the checkpoint's.
  """
  adapted = layer_stacks.adapt(stored, wanted)
  if adapted.arrays:
    logging.info(
        '%d arrays of layers are taken out of %d, since the model stacks its '
        'layers otherwise', len(adapted.arrays), len(adapted.used),
    )  # fmt: skip
  state = transforms.unflatten({**stored, **adapted.arrays})
  for transform in request.transformation_fns:
    said = {}
    if _asks_for_resuming(transform):
      said['is_resuming'] = request.is_resuming
    state = transform(state, request.abstract_state, **said)
  return {
      key: leaf
      for key, leaf in transforms.flatten(state).items()
      if key in wanted or key not in adapted.used
  }


def _asks_for_resuming(transform: Callable[..., PyTree]) -> bool:
  """Whether it has the argument, and its maker has not set it, as T5X does."""
  if 'is_resuming' in getattr(transform, 'keywords', {}):
    return False
  return 'is_resuming' in inspect.signature(transform).parameters


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


def _read_on_all(
    checkpoint: str,
    stored: Mapping[str, Any],
    targets: Mapping[str, jax.ShapeDtypeStruct],
) -> dict[str, jax.Array]:
  """Reads, and holds what was read against the hashes of the save.

  A process that cannot read tells the others, which would wait for it else.

  Raises:
    steps.NotACheckpointError: Arrays are damaged; on all processes.
  """
  restored, told = {}, None
  try:
    restored = _read(stored, targets)
  except steps.NotACheckpointError as error:
    told = str(error)
  by_process = distributed.meet('arrays of a checkpoint', value=told)
  for told in filter(None, by_process):
    damages = integrity.damaged_files(checkpoint)
    raise steps.NotACheckpointError(
        integrity.explain(checkpoint, told, damages)
    )
  integrity.check_restored(
      checkpoint,
      restored,
      sources={
          key: stored[key].key
          for key in restored
          if isinstance(stored[key], state_io.StoredArray)
      },
  )
  return restored


def _read(
    stored: Mapping[str, Any], targets: Mapping[str, jax.ShapeDtypeStruct]
) -> dict[str, jax.Array]:
  """Reads each stored array once, and puts made ones into their sharding."""
  first_use, others = {}, {}
  for key, target in targets.items():
    if isinstance(stored[key], state_io.StoredArray):
      first_use.setdefault((stored[key].folder, stored[key].key), key)
    elif isinstance(stored[key], stored_lib.Stored):
      others[key] = target
  with concurrent.futures.ThreadPoolExecutor(_MOST_AT_ONCE) as pool:
    parts = pool.map(
        stored_lib.place, [stored[key] for key in others], others.values()
    )
    placed = dict(zip(others, parts, strict=True))
  by_folder = {}
  for (folder, source), key in first_use.items():
    by_folder.setdefault(folder, {})[source] = targets[key]
  read = {
      folder: state_io.read_arrays(folder, wanted)
      for folder, wanted in by_folder.items()
  }
  result = {}
  for key, target in targets.items():
    leaf = stored[key]
    if key in placed:
      result[key] = placed[key]
    elif not isinstance(leaf, state_io.StoredArray):
      result[key] = _place(leaf, target)
    elif first_use[leaf.folder, leaf.key] == key:
      result[key] = read[leaf.folder][leaf.key]
    else:  # A second use must not share memory: the step donates both.
      again = state_io.read_arrays(leaf.folder, {leaf.key: target})
      result[key] = again[leaf.key]
  return result


def _place(value: Any, target: jax.ShapeDtypeStruct) -> jax.Array:
  """Makes a global array of what a transformation computed on every host."""
  value = np.asarray(value).astype(target.dtype)
  return jax.make_array_from_callback(
      target.shape, target.sharding, lambda index: value[index]
  )
