# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Where the first state of a run comes from: itself, a given path, scratch."""

from collections.abc import Callable
import dataclasses
import functools
import os
import time
from typing import Any

from absl import logging
import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec

from t5wild import run_dir as run_dir_lib
from t5wild import train_state as train_state_lib
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.checkpoints import positions
from t5wild.checkpoints import restoring
from t5wild.checkpoints import transforms
from t5wild.partitioning import distributed
from t5wild.partitioning import partitioner as partitioner_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class InitialState:
  """The state a run begins with.

  Attributes:
    train_state: The state, on its devices.
    step: Number of finished updates in it.
    dataset_state: This process's position in the data, or None to read from
      the beginning.
    source: Where it comes from, to be told: 'scratch', or a checkpoint's path.
    is_own: Whether the run goes on from a checkpoint of its own.
  """

  train_state: train_state_lib.TrainState
  step: int
  dataset_state: dict[str, Any] | None
  source: str
  is_own: bool = False


def initialize_train_state(
    *,
    checkpoint_cfg: configs.CheckpointConfig | None,
    model_dir: str | None,
    partitioner: partitioner_lib.BasePartitioner,
    train_state_shape: train_state_lib.TrainState,
    train_state_axes: train_state_lib.TrainState,
    init_fn: Callable[[jax.Array], train_state_lib.TrainState],
    rng: jax.Array,
    when_checked: Callable[[int | None], None] = lambda own_step: None,
) -> InitialState:
  """Returns the state that a run begins with.

  The newest complete checkpoint in `model_dir` (the run goes on), else the one
  that `checkpoint_cfg.restore` names, else a new one. A path that names none
  is an error, never a silent new state. Every process calls it alike.

  Args:
    checkpoint_cfg: How the run saves and restores; None does neither.
    model_dir: The run's own directory, or None.
    partitioner: Gives shardings for `train_state_axes`.
    train_state_shape: The state with leaves that have shape and dtype.
    train_state_axes: The state with PartitionSpecs as leaves.
    init_fn: Makes a sharded state from a key; called only when something must
      come from scratch.
    rng: The key for it.
    when_checked: Called once nothing can be refused any more, before arrays
      are made or read, with the step of the run's own checkpoint, or None.

  Raises:
    steps.UnwritableError: The run is to save where it cannot write.
    steps.NotACheckpointError: The path to restore holds no checkpoint.
    transforms.DifferentModelError: A checkpoint is of another model.
  """
  cfg = checkpoint_cfg or configs.CheckpointConfig()
  if cfg.save is not None and model_dir is not None:
    steps.check_writable(
        steps.absolute_path(model_dir), process=jax.process_index()
    )
  source = _choose_source(cfg.restore, model_dir)
  if source is None:
    when_checked(None)
    state = init_fn(rng)
    return InitialState(
        train_state=state,
        step=int(state.step),
        dataset_state=None,
        source='scratch',
    )
  path, is_own = source
  start = time.perf_counter()
  request = restoring.Request(
      abstract_state=train_state_shape.state_dict(),
      shardings=shardings_of(partitioner, train_state_shape, train_state_axes),
      is_resuming=is_own,
      **_wishes(cfg.restore, is_own, lambda: init_fn(rng).state_dict()),
  )
  state = train_state_shape.restore_state(
      restoring.restore_state(
          path,
          request,
          when_checked=functools.partial(
              when_checked, _step_of(path) if is_own else None
          ),
      )
  )
  jax.block_until_ready(state)
  if not is_own:
    _tell_dtype(state, train_state_shape, path)
  logging.info('Restored %s in %.1f s', path, time.perf_counter() - start)
  position = None
  if is_own or cfg.restore.restore_dataset:
    position = _read_position(path, is_needed=not is_own)
  return InitialState(
      train_state=state,
      step=int(state.step),
      dataset_state=position,
      source=path,
      is_own=is_own,
  )


def _step_of(path: str) -> int | None:
  return run_dir_lib.checkpoint_step(os.path.basename(path))


def _choose_source(
    restore: configs.RestoreCheckpointConfig | None, model_dir: str | None
) -> tuple[str, bool] | None:
  """Returns the checkpoint and whether it is the run's own, or None.

  Process 0 chooses, since a file system may show new folders to others late.
  """
  chosen = error = None
  if distributed.process_index() == 0:
    try:
      chosen = _look(restore, model_dir)
    except steps.NotACheckpointError as found:
      error = str(found)
  answers = distributed.meet('first checkpoint', value=[chosen, error])
  chosen, error = answers[0]
  if error is not None:
    raise steps.NotACheckpointError(error)
  return None if chosen is None else (chosen[0], chosen[1])


def _look(
    restore: configs.RestoreCheckpointConfig | None, model_dir: str | None
) -> tuple[str, bool] | None:
  if model_dir is not None:
    newest = steps.latest_step(steps.absolute_path(model_dir))
    if newest is not None:
      return steps.get_checkpoint_dir(model_dir, newest), True
  paths = [] if restore is None else restore.checkpoint_paths()
  if len(paths) > 1:
    raise steps.NotACheckpointError(
        f'RestoreCheckpointConfig names {len(paths)} checkpoints '
        f'({paths[0]} ... {paths[-1]}), expected one to train from: set mode '
        "to 'specific' and path to one of them"
    )
  return (paths[0], False) if paths else None


def _wishes(
    restore: configs.RestoreCheckpointConfig | None,
    is_own: bool,
    fallback_state: Callable[[], dict[str, Any]],
) -> dict[str, Any]:
  """What a recipe asks of a checkpoint; the run's own is taken as it is."""
  if is_own:
    # It may be somebody's, copied to here to go on with.
    return {'trust_paths': restore is not None and restore.trust_paths}
  return {
      'dtype': restore.dtype or restoring.AS_SAVED,
      'transformation_fns': restore.transformation_fns(),
      'strict': restore.strict,
      'fallback_state': fallback_state if restore.fallback_to_scratch else None,
      'trust_paths': restore.trust_paths,
  }


def shardings_of(
    partitioner: partitioner_lib.BasePartitioner,
    train_state_shape: train_state_lib.TrainState,
    train_state_axes: train_state_lib.TrainState,
) -> dict[str, Any]:
  """Shardings by name; what has no PartitionSpec is on every device."""
  named = transforms.flatten(
      partitioner.shardings(train_state_axes).state_dict()
  )
  everywhere = NamedSharding(partitioner.mesh, PartitionSpec())
  keys = transforms.flatten(train_state_shape.state_dict())
  return transforms.unflatten(
      {key: named.get(key, everywhere) for key in keys}
  )


def _tell_dtype(state, train_state_shape, path: str) -> None:
  wanted = transforms.flatten(train_state_shape.state_dict())
  other = {
      str(leaf.dtype)
      for key, leaf in transforms.flatten(state.state_dict()).items()
      if leaf.dtype != wanted[key].dtype
  }
  if other:
    logging.warning(
        'Parameters of %s stay %s, and the model makes another dtype: set '
        "RestoreCheckpointConfig.dtype, such as 'float32', to convert them",
        path, sorted(other),
    )  # fmt: skip


def _read_position(path: str, *, is_needed: bool) -> dict[str, Any] | None:
  position = positions.read_position(
      path, process=jax.process_index(), count=jax.process_count()
  )
  if position is not None:
    return position
  if is_needed:
    raise steps.NotACheckpointError(
        f'{path} holds no position in the data, expected one since '
        'RestoreCheckpointConfig.restore_dataset is True: set it to False to '
        'read the data from the beginning'
    )
  logging.warning(
      '%s holds no position in the data: the run reads it from the beginning '
      'and repeats what it has seen, as where it was saved with '
      'SaveCheckpointConfig.save_dataset = False (as T5X recipes set). Set it '
      'to True to prevent this in the future', path,
  )  # fmt: skip
  return None
