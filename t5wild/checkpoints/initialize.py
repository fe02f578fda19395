# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Where the first state of a run comes from: itself, a given path, scratch."""

from collections.abc import Callable
import dataclasses
import functools
import time
from typing import Any

from absl import logging
import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec

from t5wild import train_state as train_state_lib
from t5wild.checkpoint_files import named_steps
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import candidates
from t5wild.checkpoints import configs
from t5wild.checkpoints import confinement
from t5wild.checkpoints import integrity
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

  The newest complete checkpoint in `model_dir` and its tiers (the run goes on),
  else the one that `checkpoint_cfg.restore` names, else a new one. A path that
  names none is an error, never a silent new state. One of the run's own that is
  damaged, or that another run saved, is put in quarantine, and the next one
  taken. Every process calls it
  alike.

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
  found = candidates.find(cfg, model_dir)
  if not found:
    when_checked(None)
    state = init_fn(rng)
    return InitialState(
        train_state=state,
        step=int(state.step),
        dataset_state=None,
        source='scratch',
    )
  shardings = shardings_of(partitioner, train_state_shape, train_state_axes)
  when_checked = _Once(when_checked)
  refused = []
  for candidate in found:
    request = restoring.Request(
        abstract_state=train_state_shape.state_dict(),
        shardings=shardings,
        is_resuming=candidate.is_own,
        **_wishes(
            cfg.restore, candidate.is_own, lambda: init_fn(rng).state_dict()
        ),
    )
    try:
      candidates.check_is_ours(candidate, model_dir=model_dir)
      initial = _restore(
          candidate, request, cfg.restore, train_state_shape, when_checked
      )
      candidates.accept(candidate, model_dir=model_dir, refused=refused)
      return initial
    except confinement.UnsafeCheckpointError:
      raise
    except steps.NotACheckpointError as error:
      if not candidate.is_own:
        raise
      candidates.reject(candidate, error, model_dir=model_dir)
      refused.append(candidate)
  raise candidates.none_is_good(refused)


class _Once:
  """Calls a function the first time alone."""

  def __init__(self, function: Callable[[int | None], None]):
    self._function = function
    self._is_called = False

  def __call__(self, step: int | None) -> None:
    if not self._is_called:
      self._is_called = True
      self._function(step)


def _restore(
    candidate: candidates.Candidate,
    request: restoring.Request,
    restore: configs.RestoreCheckpointConfig | None,
    train_state_shape: train_state_lib.TrainState,
    when_checked: Callable[[int | None], None],
) -> InitialState:
  start = time.perf_counter()
  state = train_state_shape.restore_state(
      restoring.restore_state(
          candidate.path,
          request,
          when_checked=functools.partial(when_checked, candidate.step),
      )
  )
  jax.block_until_ready(state)
  if candidate.is_own and int(state.step) != candidate.step:
    raise integrity.CorruptError(
        f'{candidate.path} is damaged: '
        + named_steps.explain(candidate.step, saved=int(state.step))
    )
  if not candidate.is_own:
    _tell_dtype(state, train_state_shape, candidate.path)
  logging.info(
      'Restored %s in %.1f s', candidate.path, time.perf_counter() - start
  )
  position = None
  if candidate.is_own or restore.restore_dataset:
    position = _read_position(candidate.path, is_needed=not candidate.is_own)
  return InitialState(
      train_state=state,
      step=int(state.step),
      dataset_state=position,
      source=candidate.path,
      is_own=candidate.is_own,
  )


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
  position = told = None
  try:
    integrity.check_small_files(path, steps.DATASET_ITEM)
    position = positions.read_position(
        path, process=jax.process_index(), count=jax.process_count()
    )
    if position is None and positions.was_saved(path):
      told = (
          f'{path} is damaged: its position in the data was saved and is gone '
          f'({steps.DATASET_ITEM}/). Expected it, as the run would repeat data '
          'else: take an older checkpoint, or a copy'
      )
  except (steps.NotACheckpointError, ValueError, OSError) as error:
    told = f'{path} is damaged: its position in the data: {error}'
  # All take it, or none.
  by_process = distributed.meet('data positions', value=told)
  for damage in filter(None, by_process):
    raise integrity.CorruptError(damage)
  if position is not None:
    return position
  if is_needed:
    raise steps.NotACheckpointError(
        f'{path} holds no position in the data, expected one since '
        'RestoreCheckpointConfig.restore_dataset is True: set it to False to '
        'read the data from the beginning'
    )
  logging.warning(
      '%s holds no position in the data, as none was saved with it '
      '(SaveCheckpointConfig.save_dataset = False, as T5X recipes set; or it '
      'is not of t5wild) or keep_dataset_checkpoints removed it: the run reads '
      'the data from the beginning and repeats what it has seen. To prevent '
      'this in the future set the first to True, the second to None', path,
  )  # fmt: skip
  return None
