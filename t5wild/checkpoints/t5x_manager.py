# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's checkpoint managers: save and restore train states, by our manager."""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from absl import logging
import jax

from t5wild.checkpoints import configs
from t5wild.checkpoints import manager as manager_lib
from t5wild.checkpoints import t5x_restoring

SaveConfig = configs.SaveCheckpointConfig
RestoreConfig = configs.RestoreCheckpointConfig


class CheckpointManager:
  """Saves and restores the train states of one model.

  Saves are asynchronous; the position of the data goes with them where the
  config says so and the iterator can tell it.
  """

  def __init__(
      self,
      *,
      save_cfg: SaveConfig | None,
      restore_cfg: RestoreConfig | None,
      train_state_shape: Any,
      partitioner: Any,
      ds_iter: Any = None,
      model_dir: str | None = None,
  ):
    """Opens the directory where there is anything to save.

    Args:
      save_cfg: What to save and keep; None: nothing is saved.
      restore_cfg: How to read, unless `restore` is told otherwise.
      train_state_shape: The state with leaves that have shape and dtype.
      partitioner: Gives the state its places.
      ds_iter: The data; see `train_iter.TrainIter`.
      model_dir: Where to save.

    Raises:
      ValueError: The position is to be saved, and the data cannot tell it.
    """
    self._restore_cfg = restore_cfg
    self._shape = train_state_shape
    self._partitioner = partitioner
    self._ds_iter = ds_iter
    self._manager = self._config = None
    if save_cfg is None:
      return
    if save_cfg.save_dataset and not hasattr(ds_iter, 'state_dict'):
      raise ValueError(
          f'SaveCheckpointConfig.save_dataset is True and the data is '
          f'{type(ds_iter).__name__}, expected an iterator with state_dict: '
          'give what utils.prepare_train_iter returns as ds_iter, or set '
          'save_dataset to False'
      )
    # Its own, since each save may bring other transformations.
    self._config = dataclasses.replace(save_cfg)
    self._manager = manager_lib.CheckpointManager(
        model_dir, config=self._config
    )

  def save(
      self,
      train_state: Any,
      state_transformation_fns: Sequence[Any] = (),
  ) -> bool:
    """Starts to save a state; what fails is logged and does not end the run.

    Args:
      train_state: The state; its step names the checkpoint.
      state_transformation_fns: As in the config, whose own are not called.

    Returns:
      Whether a save was started: not where its step has a checkpoint.

    Raises:
      ValueError: There is no config to save by.
    """
    if self._manager is None:
      raise ValueError(
          'save was called with save_cfg = None, expected a '
          'SaveCheckpointConfig: give one to the manager'
      )
    self._config.state_transformation_fns = tuple(state_transformation_fns)
    position = None
    if self._config.save_dataset:
      position = self._ds_iter.state_dict()
    return self._manager.save(
        int(jax.device_get(train_state.step)), train_state, position
    )

  def restore(
      self,
      paths: Sequence[str] | None,
      restore_cfg: RestoreConfig | None = None,
      fallback_state: Mapping[str, Any] | None = None,
  ) -> Any:
    """Returns the state of each path: of one alone, else a list; or None.

    Args:
      paths: Checkpoint folders.
      restore_cfg: How to read them; None: nothing is read.
      fallback_state: See `t5x_restoring.read_state`.
    """
    if restore_cfg is None or paths is None:
      return None
    states = [
        self._read(path, restore_cfg, fallback_state) for path in paths
    ]
    return states[0] if len(states) == 1 else states or None

  def _read(self, path, cfg, fallback_state):
    logging.info('Restoring %s', path)
    return t5x_restoring.read_state(
        path,
        cfg,
        partitioner=self._partitioner,
        train_state_shape=self._shape,
        train_state_axes=self._partitioner.get_mesh_axes(self._shape),
        fallback_state=fallback_state,
        ds_iter=self._ds_iter,
    )

  def report_metrics(self, step: int, metrics: Mapping[str, float]) -> None:
    """Tells what is known of a saved state; counts from the next save on."""
    if self._manager is not None:
      self._manager.report_metrics(step, metrics)

  def all_steps(self) -> list[int]:
    """Steps with a complete checkpoint."""
    return [] if self._manager is None else self._manager.all_steps()

  def latest_step(self) -> int | None:
    """The newest of them, or None."""
    return max(self.all_steps(), default=None)

  def wait_until_finished(self) -> None:
    """Waits for the save under way."""
    if self._manager is not None:
      self._manager.wait()

  def close(self) -> None:
    """Waits for the save under way and gives threads and memory back."""
    if self._manager is not None:
      self._manager.close()


def create_orbax_checkpoint_manager(
    *,
    save_cfg: SaveConfig | None = None,
    restore_cfg: RestoreConfig | None = None,
    train_state: Any,
    partitioner: Any,
    ds_iter: Any = None,
    model_dir: str | None = None,
) -> CheckpointManager:
  """Makes a manager, under T5X's other name for the arguments."""
  return CheckpointManager(
      save_cfg=save_cfg,
      restore_cfg=restore_cfg,
      train_state_shape=train_state,
      partitioner=partitioner,
      ds_iter=ds_iter,
      model_dir=model_dir,
  )


def restore(
    checkpoint_manager: CheckpointManager,
    paths: Sequence[str] | None,
    restore_cfg: RestoreConfig | None,
    fallback_state: Mapping[str, Any] | None = None,
) -> Any:
  """Reads checkpoints by a manager; see `CheckpointManager.restore`."""
  return checkpoint_manager.restore(paths, restore_cfg, fallback_state)


def create_checkpoint_manager_and_restore(  # noqa: PLR0913 -- T5X's signature
    train_state_initializer: Any,
    partitioner: Any,
    restore_checkpoint_cfg: RestoreConfig | None,
    restore_path: str | None,
    fallback_init_rng: jax.Array | None,
    save_checkpoint_cfg: SaveConfig | None = None,
    model_dir: str | None = None,
    ds_iter: Any = None,
    use_orbax: bool = False,
) -> tuple[Any, CheckpointManager]:
  """Makes a manager and reads the checkpoint that a run begins from.

  Args:
    train_state_initializer: Describes the state.
    partitioner: Gives it its places.
    restore_checkpoint_cfg: How to read.
    restore_path: What to read; None: nothing.
    fallback_init_rng: Key for what the checkpoint lacks, where it may.
    save_checkpoint_cfg: How to save.
    model_dir: Where to save; None: where to read.
    ds_iter: The data, whose position is saved and restored.
    use_orbax: T5X's choice between two managers; here there is one.

  Returns:
    (state or None, manager).
  """
  del use_orbax
  manager = CheckpointManager(
      save_cfg=save_checkpoint_cfg,
      restore_cfg=restore_checkpoint_cfg,
      train_state_shape=train_state_initializer.global_train_state_shape,
      partitioner=partitioner,
      ds_iter=ds_iter,
      model_dir=model_dir or getattr(restore_checkpoint_cfg, 'path', None),
  )
  fallback = t5x_restoring.get_fallback_state(
      restore_checkpoint_cfg,
      lambda rng: train_state_initializer.from_scratch(rng).state_dict(),
      fallback_init_rng,
  )
  state = manager.restore(
      [restore_path] if restore_path else None, restore_checkpoint_cfg, fallback
  )
  return state, manager
