# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's checkpointers: one object for a directory, that saves and restores.

As the value of a config's `checkpointer_cls` they say which checkpoints stay
and are made without arguments; code of the user's own gives them all.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.checkpoints import load
from t5wild.checkpoints import retention
from t5wild.checkpoints import t5x_manager
from t5wild.checkpoints import t5x_restoring


class Checkpointer:
  """Saves train states into a directory and restores them.

  Attributes:
    checkpoints_dir: The directory.
    keep: Number of newest checkpoints to keep, or None for all.
  """

  def __init__(
      self,
      train_state: Any = None,
      partitioner: Any = None,
      checkpoints_dir: str | None = None,
      dataset_iterator: Any = None,
      *,
      keep: int | None = None,
      save_dtype: Any = np.float32,
      restore_dtype: Any = None,
      keep_dataset_checkpoints: int | None = None,
  ):
    """Keeps what it is told; the directory is opened by the first save.

    Args:
      train_state: A state, or its shapes.
      partitioner: Gives states their places.
      checkpoints_dir: The directory.
      dataset_iterator: The data whose position goes along; see `train_iter`.
      keep: Number of newest checkpoints to keep, or None for all.
      save_dtype: dtype that parameters are saved in; None: theirs.
      restore_dtype: dtype that they get; None: that they were saved in.
      keep_dataset_checkpoints: Number of newest positions in the data to keep.
    """
    self._train_state = train_state
    self._partitioner = partitioner
    self.checkpoints_dir = checkpoints_dir
    self._dataset_iterator = dataset_iterator
    self.keep = keep
    self._save_dtype = _name_of(save_dtype)
    self._restore_dtype = _name_of(restore_dtype)
    self._keep_dataset_checkpoints = keep_dataset_checkpoints
    self._manager: t5x_manager.CheckpointManager | None = None

  def policy(self, keep: int | None) -> retention.Policy:
    """Returns which checkpoints stay where a config keeps so many."""
    return retention.Policy(keep=keep)

  def save(
      self,
      train_state: Any,
      state_transformation_fns: Sequence[Any] = (),
      *,
      concurrent_gb: int = 128,
  ) -> None:
    """Saves a state, and waits until it is saved; not a second time.

    Args:
      train_state: The state; its step names the checkpoint.
      state_transformation_fns: See `SaveCheckpointConfig`.
      concurrent_gb: T5X's bound of its memory; Orbax has its own.
    """
    del concurrent_gb
    manager = self._open_manager()
    manager.save(train_state, state_transformation_fns)
    manager.wait_until_finished()

  def restore(
      self,
      path: str | None = None,
      step: int | None = None,
      fallback_state: Mapping[str, Any] | None = None,
      state_transformation_fns: Sequence[Any] = (),
      lazy_parameters: bool = False,
  ) -> Any:
    """Returns a state, on the devices.

    Args:
      path: A checkpoint folder, or a directory around some; None: its own.
      step: Which of a directory; None: the newest.
      fallback_state: See `t5x_restoring.read_state`.
      state_transformation_fns: See `RestoreCheckpointConfig`.
      lazy_parameters: T5X's way to leave parameters on the disk; refused here.

    Raises:
      steps.NotACheckpointError: There is none.
      transforms.DifferentModelError: It is of another model.
    """
    self._check_has_all()
    if lazy_parameters:
      raise ValueError(
          'Checkpointer.restore was called with lazy_parameters=True, expected '
          'False: to leave arrays on the disk call '
          'checkpoints.load_t5x_checkpoint(path, lazy_parameters=True)'
      )
    return t5x_restoring.read_state(
        load.find_checkpoint(path or self.checkpoints_dir, step),
        configs.RestoreCheckpointConfig(
            dtype=self._restore_dtype,
            restore_dataset=self._dataset_iterator is not None,
            state_transformation_fns=state_transformation_fns,
        ),
        partitioner=self._partitioner,
        train_state_shape=self._train_state,
        train_state_axes=self._partitioner.get_mesh_axes(self._train_state),
        fallback_state=fallback_state,
        ds_iter=self._dataset_iterator,
    )

  def restore_from_tf_checkpoint(
      self, path_or_dir: str, strict: bool = True
  ) -> Any:
    """Returns the state of a Mesh-TensorFlow checkpoint.

    Args:
      path_or_dir: Its path without ending, or a directory around some.
      strict: Whether arrays that the model lacks are an error.
    """
    self._check_has_all()
    return t5x_restoring.read_state(
        load.find_checkpoint(path_or_dir),
        configs.RestoreCheckpointConfig(
            dtype=self._restore_dtype, strict=strict
        ),
        partitioner=self._partitioner,
        train_state_shape=self._train_state,
        train_state_axes=self._partitioner.get_mesh_axes(self._train_state),
    )

  def convert_from_tf_checkpoint(
      self,
      path_or_dir: str,
      *,
      state_transformation_fns: Sequence[Any] = (),
      concurrent_gb: int = 16,
  ) -> None:
    """Saves the state of a Mesh-TensorFlow checkpoint into the directory."""
    self.save(
        self.restore_from_tf_checkpoint(path_or_dir),
        state_transformation_fns,
        concurrent_gb=concurrent_gb,
    )

  def all_steps(self) -> list[int]:
    """Steps with a complete checkpoint."""
    return steps.all_steps(steps.absolute_path(self.checkpoints_dir))

  def latest_step(self) -> int | None:
    """The newest of them, or None."""
    return max(self.all_steps(), default=None)

  def _open_manager(self) -> t5x_manager.CheckpointManager:
    self._check_has_all()
    if self._manager is None:
      self._manager = t5x_manager.CheckpointManager(
          save_cfg=configs.SaveCheckpointConfig(
              dtype=self._save_dtype,
              keep=self.keep,
              keep_dataset_checkpoints=self._keep_dataset_checkpoints,
              save_dataset=self._dataset_iterator is not None,
              checkpointer_cls=lambda: self,
          ),
          restore_cfg=None,
          train_state_shape=self._train_state,
          partitioner=self._partitioner,
          ds_iter=self._dataset_iterator,
          model_dir=self.checkpoints_dir,
      )
    return self._manager

  def _check_has_all(self) -> None:
    given = {
        'train_state': self._train_state,
        'partitioner': self._partitioner,
        'checkpoints_dir': self.checkpoints_dir,
    }
    lacking = [name for name, value in given.items() if value is None]
    if lacking:
      raise ValueError(
          f'this {type(self).__name__} was made without {", ".join(lacking)}, '
          'expected all of them to save and restore: give them, or leave both '
          'to the run that it configures'
      )


class SaveBestCheckpointer(Checkpointer):
  """Keeps the best checkpoints by a metric, and the newest one."""

  def __init__(  # noqa: PLR0913 -- T5X's signature
      self,
      train_state: Any = None,
      partitioner: Any = None,
      checkpoints_dir: str | None = None,
      dataset_iterator: Any = None,
      *,
      keep: int | None = None,
      save_dtype: Any = np.float32,
      restore_dtype: Any = None,
      keep_dataset_checkpoints: int | None = None,
      metric_name_to_monitor: str = 'train/accuracy',
      metric_mode: str = 'max',
      keep_checkpoints_without_metrics: bool = True,
      force_keep_period: int | None = None,
  ):
    """Keeps what it is told.

    Args: `Checkpointer`'s, and
      metric_name_to_monitor: Name as in the run's metrics, such as
        'training_eval/my_task/accuracy'.
      metric_mode: 'max' or 'min': which value is the best.
      keep_checkpoints_without_metrics: Whether those without a value stay.
      force_keep_period: Checkpoints at its multiples stay for ever.
    """
    super().__init__(
        train_state,
        partitioner,
        checkpoints_dir,
        dataset_iterator,
        keep=keep,
        save_dtype=save_dtype,
        restore_dtype=restore_dtype,
        keep_dataset_checkpoints=keep_dataset_checkpoints,
    )
    self._metric_name_to_monitor = metric_name_to_monitor
    self._metric_mode = metric_mode
    self._keep_checkpoints_without_metrics = keep_checkpoints_without_metrics
    self._force_keep_period = force_keep_period

  def policy(self, keep: int | None) -> retention.Policy:
    """Returns which checkpoints stay; all of them if `keep` is None."""
    return retention.Policy(
        keep=None if keep is None else 1,
        keep_best=keep,
        best_metric=self._metric_name_to_monitor,
        best_mode=self._metric_mode,
        keep_without_metric=self._keep_checkpoints_without_metrics,
        keep_period=self._force_keep_period,
    )

  def report_metrics(self, step: int, metrics: Mapping[str, float]) -> None:
    """Tells what is known of a saved state; counts from the next save on.

    T5X looked into the TensorBoard events of its directory.
    """
    self._open_manager().report_metrics(step, metrics)


def _name_of(dtype: Any) -> str | None:
  return None if dtype is None else jnp.dtype(dtype).name
