# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Saves a run's states in the background and keeps the ones worth keeping."""

from collections.abc import Callable, Mapping
import os
import time
from typing import Any

from absl import logging
import jax

from t5wild.checkpoint_files import run_ids
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import background_writer
from t5wild.checkpoints import configs
from t5wild.checkpoints import positions
from t5wild.checkpoints import restoring
from t5wild.checkpoints import save_events
from t5wild.checkpoints import shelf
from t5wild.checkpoints import staging
from t5wild.checkpoints import state_io
from t5wild.checkpoints import transforms

PyTree = Any
StateNotSavedError = save_events.StateNotSavedError
CheckpointEvent = save_events.CheckpointEvent

_SAVE_TIMEOUT_SECONDS = 1200
_FIRST_RETRY_SECONDS = 30.0
_LAST_RETRY_SECONDS = 600.0
_SLOW_WAIT_SECONDS = 1.0


class CheckpointManager:
  """Writes `checkpoint_N/{state,dataset}`; every process calls it alike.

  A checkpoint appears whole or not at all, whenever the process is killed. A
  save that fails (a full disk), or takes longer than it may, is reported and
  does not end the run: the next one is the next try. Use from one thread.
  """

  def __init__(
      self,
      directory: str | os.PathLike[str],
      *,
      config: configs.SaveCheckpointConfig,
      on_event: Callable[[CheckpointEvent], None] | None = None,
      timeout_seconds: int = _SAVE_TIMEOUT_SECONDS,
      is_held: Callable[[int], bool] = lambda step: False,
      run_id: str | None = None,
  ):
    """Opens a run directory to save to; clears what killed saves left there.

    Args:
      directory: MODEL_DIR; made if it is not there.
      config: What to save and keep.
      on_event: Called, usually from a background thread, with what happened.
      timeout_seconds: How long processes wait for each other in a save.
      is_held: Whether a step's checkpoint is being copied and must stay.
      run_id: Is written into each; None: that of the directory, if it has one.

    Raises:
      steps.UnwritableError: Nothing could be saved there.
    """
    self._directory = self.directory = steps.absolute_path(directory)
    steps.check_writable(self._directory, process=jax.process_index())
    if jax.process_index() == 0:
      steps.delete_leftovers(self._directory)
    if run_id is None:
      run_id = run_ids.of_directory(self._directory)
    self._run_id = run_id
    self._config = config
    self._on_event = on_event
    self._shelf = self.shelf = shelf.Shelf(
        self._directory,
        policy=config.retention_policy(),
        keep_dataset_states=config.keep_dataset_checkpoints,
        is_held=is_held,
    )
    self._writer = background_writer.BackgroundWriter(
        self._directory,
        timeout_seconds=timeout_seconds,
        deadline_seconds=config.deadline_seconds,
        on_end=self._ended,
    )
    self._failures = 0
    self._failed_at = 0.0

  def prepare(self, train_state: PyTree) -> None:
    """Takes the memory that saves will need (on CPU devices), ahead of time.

    The first save does it otherwise, and the loop waits for it there.
    """
    self._writer.prepare(_flat_state(train_state))

  def save(
      self,
      step: int,
      train_state: PyTree,
      dataset_state: Mapping[str, Any] | None = None,
      *,
      metrics: Mapping[str, float] | None = None,
      force: bool = False,
  ) -> bool:
    """Starts to save a state; returns once it is copied off the device.

    Waits for the save before, if that is still under way, until its deadline.
    The state may be donated as soon as this returns.

    Args:
      step: Number of finished updates in the state.
      train_state: A train state, or nested dicts of arrays.
      dataset_state: This process's position in the data after those updates.
      metrics: Values known of this state, for `keep_best`.
      force: Whether a complete checkpoint of the same step is replaced; else
        it stays and nothing is saved.

    Returns:
      Whether a save was started; a failure is reported, not raised.
    """
    save = background_writer.Save(
        step=step, path=self._shelf.path(step), start=time.perf_counter()
    )
    ready = background_writer.caught()
    with ready:
      self._writer.make_ready()
    _tell_of_wait(save)
    if step in self._shelf.all_steps() and not force:
      logging.info('Step %d has a checkpoint already', step)
      return False
    flat = _flat_state(train_state)
    save.num_bytes = sum(getattr(leaf, 'nbytes', 0) for leaf in flat.values())
    self._shelf.add_metrics(step, metrics or {})
    attempt = background_writer.caught()
    with attempt:
      if ready.error is not None:
        raise ready.error
      # The writer has its own copies on CPU devices, so it need not be waited
      # for. Elsewhere, and among processes, which begin together, it must.
      can_wait = staging.is_all_on_cpu(flat) and jax.process_count() == 1
      self._writer.write(
          save,
          self._copy_off(flat, dataset_state),
          make_room=lambda: self._make_room(step),
          wait=not can_wait,
      )
    if attempt.error is not None:
      save.blocked_seconds = save.seconds()
      self._failed(save, attempt.error, save_events.FAILED)
    return attempt.error is None and save.error is None

  def _copy_off(self, flat: dict[str, Any], dataset_state) -> Any:
    """Returns what to write, with copies of what must be copied."""
    return state_io.make_save_args(
        self._writer.copy(self._transform(flat)),
        dtype=self._config.dtype,
        dataset_state=dataset_state if self._config.save_dataset else None,
        run_id=self._run_id,
    )

  def _make_room(self, step: int) -> None:
    if self._failures and jax.process_index() == 0:  # in vain at the failure
      self._delete_unfinished(step)
    self._shelf.make_room(step)

  def _transform(self, flat: dict[str, Any]) -> dict[str, Any]:
    for transform in self._config.state_transformation_fns:
      infos = {
          key: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
          for key, leaf in flat.items()
      }
      state, _ = transform(
          transforms.unflatten(flat), transforms.unflatten(infos)
      )
      flat = transforms.flatten(state)
    return flat

  def _ended(self, save: background_writer.Save) -> None:
    """Runs beside the loop: tells how a save ended, removes old ones."""
    if not save.has_ended:
      self._failed(save, save.error, save_events.ABANDONED)
      return
    if save.error is not None:
      if save.is_left_behind:
        logging.error('%s, left behind, has failed: %s', save.path, save.error)
      else:
        self._failed(save, save.error, save_events.FAILED)
      return
    if save.is_left_behind:
      self._report(save_events.SAVED_LATE, save)
    else:
      self._failures = 0
      self._report(save_events.SAVED, save)
    try:
      self._shelf.add(save.step)
      for step in self._shelf.remove_old():
        self._tell(
            CheckpointEvent(
                kind=save_events.REMOVED, step=step, directory=self._directory
            )
        )
    except OSError:
      logging.exception('Old checkpoints could not be removed; tried later')

  def _failed(
      self, save: background_writer.Save, error: BaseException, kind: str
  ) -> None:
    self._failures += 1
    self._failed_at = time.monotonic()
    text = f'{type(error).__name__}: {error}'.strip().rstrip('.')
    logging.error(
        'CHECKPOINT NOT SAVED: step %d in %s: %s. Failed saves in a row: %d; '
        'newest complete checkpoint: %s. The run goes on and tries again; free '
        'space or mend the directory meanwhile.',
        save.step, self._directory, text, self._failures, self.latest_step(),
        exc_info=error,
    )  # fmt: skip
    # Who hangs would make its own removal hang, too.
    if jax.process_index() == 0 and kind == save_events.FAILED:
      self._delete_unfinished(save.step)
    self._report(kind, save, error=text)

  def _delete_unfinished(self, step: int) -> None:
    try:
      steps.delete_unfinished(self._shelf.path(step))
    except OSError:  # threads of the failed save may still be writing there
      logging.exception('What the failed save left could not be removed')

  def _report(
      self, kind: str, save: background_writer.Save, *, error: str = ''
  ) -> None:
    self._tell(
        CheckpointEvent(
            kind=kind,
            step=save.step,
            directory=self._directory,
            seconds=save.seconds(),
            blocked_seconds=save.blocked_seconds,
            num_bytes=save.num_bytes,
            failures=self._failures,
            error=error,
        )
    )

  def _tell(self, event: CheckpointEvent) -> None:
    logging.info('%s', event)
    if self._on_event is not None:
      self._on_event(event)

  def retry_is_due(self) -> bool:
    """Whether the last save failed and it is time to try again; cheap.

    Always False with several processes, which must agree on when to save: they
    try again when the next save is due.
    """
    if not self._failures or jax.process_count() > 1 or self.is_saving():
      return False
    pause = min(
        _FIRST_RETRY_SECONDS * 2 ** (self._failures - 1), _LAST_RETRY_SECONDS
    )
    return time.monotonic() - self._failed_at >= pause

  def is_saving(self) -> bool:
    """Whether a save is under way."""
    return self._writer.is_writing()

  def report_metrics(self, step: int, metrics: Mapping[str, float]) -> None:
    """Tells what is known of a saved state; counts from the next save on."""
    self._shelf.add_metrics(step, metrics)

  def wait(self) -> bool:
    """Waits for the save under way; returns whether the last one succeeded."""
    return self._writer.wait() and self._failures == 0

  def all_steps(self) -> list[int]:
    """Returns the steps with a complete checkpoint, in order."""
    return self._shelf.all_steps()

  def latest_step(self) -> int | None:
    """Returns the newest step with a complete checkpoint, or None."""
    return max(self.all_steps(), default=None)

  def restore(
      self,
      step: int,
      *,
      abstract_state: Mapping[str, Any],
      shardings: Mapping[str, Any],
      dtype: str | None = None,
  ) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Returns the state dict of a step and this process's data position.

    Args:
      step: A step with a complete checkpoint.
      abstract_state: Nested state dict; leaves have shape and dtype.
      shardings: Nested dict of the shardings to restore to, on any mesh.
      dtype: dtype of the parameters; None for that in `abstract_state`.

    Raises:
      steps.NotACheckpointError: There is none of this step, or another run's.
      transforms.DifferentModelError: It is of another model.
    """
    self.wait()
    path = self._shelf.path(step)
    run_ids.check(path, self._run_id)
    request = restoring.Request(
        abstract_state=abstract_state,
        shardings=shardings,
        dtype=dtype,
        is_resuming=True,
    )
    return restoring.restore_state(path, request), positions.read_position(
        path, process=jax.process_index(), count=jax.process_count()
    )

  def close(self) -> None:
    """Waits for the save under way and gives threads and memory back."""
    self._writer.close(is_failing=self._failures > 0)


def _flat_state(train_state: PyTree) -> dict[str, Any]:
  if hasattr(train_state, 'state_dict'):
    train_state = train_state.state_dict()
  return transforms.flatten(train_state)


def _tell_of_wait(save: background_writer.Save) -> None:
  waited = save.seconds()
  if waited > _SLOW_WAIT_SECONDS:
    logging.warning(
        'Step %d waited %.1f s for the save before it, expected none: raise '
        'SaveCheckpointConfig.period', save.step, waited,
    )  # fmt: skip
