# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A model's parameters out of checkpoints, on the mesh, to infer with.

Nothing of an optimizer is made or read, so the memory is the parameters' own.
"""

from collections.abc import Callable, Mapping
import dataclasses
import datetime
import json
from typing import Any

from etils import epath
import jax

from t5wild import train_state as train_state_lib
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.checkpoints import initialize
from t5wild.models import base as models_base
from t5wild.partitioning import distributed
from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.trainer import initializer

# Orbax writes it into each checkpoint, with the time of the save.
_METADATA = '_CHECKPOINT_METADATA'


class InferenceStates:
  """Reads the inference state of any checkpoint of one model.

  Attributes:
    global_train_state_shape: The state with `jax.ShapeDtypeStruct` leaves.
    train_state_axes: The state with `PartitionSpec` leaves.
  """

  def __init__(
      self,
      *,
      model: models_base.BaseModel,
      partitioner: partitioner_lib.BasePartitioner,
      restore_checkpoint_cfg: configs.RestoreCheckpointConfig,
      input_shapes: Mapping[str, tuple[int, ...]],
      input_types: Mapping[str, Any] | None = None,
      train_state_initializer_cls: Callable[
          ..., Any
      ] = initializer.TrainStateInitializer,
      fallback_init_rng: int | None = None,
  ):
    """Describes the state; nothing is read or allocated.

    Args:
      model: Makes the variables.
      partitioner: Lays them over the devices.
      restore_checkpoint_cfg: How checkpoints are read, and which.
      input_shapes: Shape of each feature of a global batch.
      input_types: dtype of each feature; None means int32 throughout.
      train_state_initializer_cls: Describes and makes states.
      fallback_init_rng: Seed of the arrays that a checkpoint lacks, where
        `restore_checkpoint_cfg.fallback_to_scratch` is set.

    Raises:
      ValueError: The features do not suit the model, or arrays may come from
        scratch and no seed says how.
    """
    cfg = restore_checkpoint_cfg
    if cfg.fallback_to_scratch and fallback_init_rng is None:
      raise ValueError(
          'RestoreCheckpointConfig.fallback_to_scratch is True and '
          f'fallback_init_rng is {fallback_init_rng}: expected a seed for what '
          'the checkpoint lacks. Set fallback_init_rng to a number, or '
          'fallback_to_scratch to False.'
      )
    self._cfg = cfg
    self._partitioner = partitioner
    self._seed = fallback_init_rng or 0
    self._initializer = train_state_initializer_cls(
        optimizer_def=None,
        init_fn=model.get_initial_variables,
        input_shapes=input_shapes,
        input_types=input_types,
        partitioner=partitioner,
    )
    self.global_train_state_shape = self._initializer.global_train_state_shape
    self.train_state_axes = self._initializer.train_state_axes

  def restore(self, checkpoint: str) -> train_state_lib.InferenceState:
    """Returns the state of one checkpoint folder; all processes call it.

    Raises:
      steps.NotACheckpointError: The path is none.
      transforms.DifferentModelError: It is of another model.
    """
    one = dataclasses.replace(
        self._cfg, path=checkpoint, mode='specific', restore_dataset=False
    )
    return initialize.initialize_train_state(
        checkpoint_cfg=configs.CheckpointConfig(restore=one),
        model_dir=None,
        partitioner=self._partitioner,
        train_state_shape=self.global_train_state_shape,
        train_state_axes=self.train_state_axes,
        init_fn=self._initializer.from_scratch,
        rng=jax.random.PRNGKey(self._seed),
    ).train_state


def find_checkpoints(cfg: configs.RestoreCheckpointConfig) -> list[str]:
  """Returns the checkpoints that a config names, alike on every process.

  Raises:
    steps.NotACheckpointError: It names none.
  """
  paths, error = [], None
  if distributed.process_index() == 0:
    try:
      paths = cfg.checkpoint_paths()
    except steps.NotACheckpointError as found:
      error = str(found)
  paths, error = distributed.meet('checkpoints', value=[paths, error])[0]
  if error is None and not paths:
    error = (
        f'RestoreCheckpointConfig.path is {cfg.path!r}: expected a checkpoint '
        'folder, or a run directory. Set CHECKPOINT_PATH.'
    )
  if error is not None:
    raise steps.NotACheckpointError(error)
  return paths


def checkpoint_of_step(run: str, step: int | None = None) -> str:
  """Returns the checkpoint of a step in a run directory; None is the newest.

  Raises:
    steps.NotACheckpointError: There is none; lists the steps there are.
  """
  saved = steps.all_steps(run)
  if not saved:
    raise steps.NotACheckpointError(
        f'{run} holds no complete checkpoint: expected the MODEL_DIR of a run '
        'that has saved one. Correct the path.'
    )
  if step is None:
    step = saved[-1]
  if step not in saved:
    raise steps.NotACheckpointError(
        f'{run} has no checkpoint of step {step}: expected one of {saved}. '
        'Choose one of these, or leave the step out for the newest.'
    )
  return steps.get_checkpoint_dir(run, step)


def identity_of(checkpoint: str) -> str:
  """Returns what tells a checkpoint from others, wherever it was moved.

  That is its name and when it was saved; a path for those that do not know.
  """
  file = epath.Path(checkpoint) / _METADATA
  try:
    saved = json.loads(file.read_text())['init_timestamp_nsecs']
    when = datetime.datetime.fromtimestamp(saved / 1e9, datetime.UTC)
  except (OSError, LookupError, TypeError, ValueError):
    return checkpoint
  return f'{file.parent.name} saved {when.isoformat()}'
