# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Saves a run's states in the background and keeps the ones worth keeping."""

from collections.abc import Callable, Mapping
import contextlib
import dataclasses
import functools
import os
import threading
import time
from typing import Any

from absl import logging
import jax

from t5wild.checkpoints import configs
from t5wild.checkpoints import restoring
from t5wild.checkpoints import shelf
from t5wild.checkpoints import staging
from t5wild.checkpoints import state_io
from t5wild.checkpoints import steps
from t5wild.checkpoints import transforms

PyTree = Any

_SAVE_TIMEOUT_SECONDS = 1200
_FIRST_RETRY_SECONDS = 30.0
_LAST_RETRY_SECONDS = 600.0
_SLOW_WAIT_SECONDS = 1.0


class StateNotSavedError(Exception):
  """A run ended and its last state could not be saved."""

  def __init__(self, step: int, *, directory: str, newest: int | None):
    """Says what is lost, and from where the same command goes on.

    Args:
      step: Step of the state that is lost.
      directory: Where it should have been saved.
      newest: Newest step with a complete checkpoint there, or None.
    """
    kept = 'no step is kept' if newest is None else f'step {newest} is kept'
    super().__init__(
        f'THE LAST STATE IS NOT SAVED: the run stopped after step {step}, its '
        f'save in {directory} failed, and {kept}. Expected a directory that '
        'can be written, with space for one more checkpoint. Free space or '
        'mend it; the same command then goes on from what is kept.'
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointEvent:
  """Something that happened to a checkpoint, for records and alerts.

  Attributes:
    kind: 'saved', 'save_failed' or 'removed'.
    step: Step of the checkpoint.
    seconds: From the call of `save` to the end; 0 for a removal.
    blocked_seconds: Part of it that the caller of `save` waited.
    num_bytes: Bytes of all arrays of the state.
    failures: Failed saves in a row, this one included.
    error: What failed, or ''.
  """

  kind: str
  step: int
  seconds: float = 0.0
  blocked_seconds: float = 0.0
  num_bytes: int = 0
  failures: int = 0
  error: str = ''

  def __str__(self) -> str:
    """One line of a log."""
    text = f'Checkpoint of step {self.step}: {self.kind.replace("_", " ")}'
    if self.kind != 'removed':
      text += f' after {self.seconds:.1f} s'
    if self.kind == 'saved':
      text += f', {self.num_bytes / 1e6:,.1f} MB'
    return f'{text}: {self.error}' if self.error else text


@dataclasses.dataclass(kw_only=True)
class _Save:
  """A save under way."""

  step: int
  num_bytes: int
  start: float
  blocked_seconds: float = 0.0

  def seconds(self) -> float:
    return time.perf_counter() - self.start


class _Caught(contextlib.AbstractContextManager):
  """Holds the error that ended its block: whatever it is, the run goes on."""

  def __init__(self):
    self.error: Exception | None = None

  def __exit__(self, kind, error, traceback) -> bool:
    self.error = error if isinstance(error, Exception) else None
    return self.error is not None


class CheckpointManager:
  """Writes `checkpoint_N/{state,dataset}`; every process calls it alike.

  A checkpoint appears whole or not at all, whenever the process is killed. A
  save that fails (a full disk) is reported and does not end the run: the next
  one is the next try. Use from one thread.
  """

  def __init__(
      self,
      directory: str | os.PathLike[str],
      *,
      config: configs.SaveCheckpointConfig,
      on_event: Callable[[CheckpointEvent], None] | None = None,
      timeout_seconds: int = _SAVE_TIMEOUT_SECONDS,
  ):
    """Opens a run directory to save to; clears what killed saves left there.

    Args:
      directory: MODEL_DIR; made if it is not there.
      config: What to save and keep.
      on_event: Called, usually from a background thread, with what happened.
      timeout_seconds: How long one save may take.

    Raises:
      steps.UnwritableError: Nothing could be saved there.
    """
    self._directory = steps.absolute_path(directory)
    steps.check_writable(self._directory, process=jax.process_index())
    if jax.process_index() == 0:
      steps.delete_leftovers(self._directory)
    self._config = config
    self._on_event = on_event
    self._shelf = self.shelf = shelf.Shelf(
        self._directory,
        policy=config.retention_policy(),
        keep_dataset_states=config.keep_dataset_checkpoints,
    )
    self._checkpointer = state_io.make_checkpointer(
        self._directory, timeout_seconds=timeout_seconds
    )
    self._staging = staging.HostStaging()
    self._thread = None
    self._failures = 0
    self._failed_at = 0.0

  def prepare(self, train_state: PyTree) -> None:
    """Takes the memory that saves will need (on CPU devices), ahead of time.

    The first save does it otherwise, and the loop waits for it there.
    """
    flat = _flat_state(train_state)
    for _ in range(2):  # The first takes the memory, the second reuses it.
      jax.block_until_ready(self._staging.copy(flat))

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

    Waits for the save before, if that is still under way. The state may be
    donated as soon as this returns.

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
    start = time.perf_counter()
    self._wait_for_last(step)
    if step in self._shelf.all_steps() and not force:
      logging.info('Step %d has a checkpoint already', step)
      return False
    flat = _flat_state(train_state)
    save = _Save(
        step=step,
        num_bytes=sum(getattr(leaf, 'nbytes', 0) for leaf in flat.values()),
        start=start,
    )
    self._shelf.add_metrics(step, metrics or {})
    caught = _Caught()
    with caught:
      begin = self._copy_off(step, flat, dataset_state)
      # The writer has its own copies on CPU devices, so it need not be waited
      # for. Elsewhere, and among processes, which begin together, it must.
      can_wait = staging.is_all_on_cpu(flat) and jax.process_count() == 1
      if not can_wait:
        begin()
        begin = None
    save.blocked_seconds = save.seconds()
    if caught.error is not None:
      self._failed(save, caught.error)
      return False
    self._thread = threading.Thread(
        target=self._finish, args=(save, begin), name=f'checkpoint_{step}'
    )
    self._thread.start()
    return True

  def _wait_for_last(self, step: int) -> None:
    start = time.perf_counter()
    self.wait()
    waited = time.perf_counter() - start
    if waited > _SLOW_WAIT_SECONDS:
      logging.warning(
          'Step %d waited %.1f s for the save before it, expected none: raise '
          'SaveCheckpointConfig.period', step, waited,
      )  # fmt: skip

  def _copy_off(self, step: int, flat, dataset_state) -> Callable[[], None]:
    """Returns what begins to write, from copies where those are needed."""
    flat = self._staging.copy(self._transform(flat))
    if self._failures and jax.process_index() == 0:  # in vain at the failure
      self._delete_unfinished(step)
    self._shelf.make_room(step)
    return functools.partial(
        self._checkpointer.save,
        self._shelf.path(step),
        args=state_io.make_save_args(
            flat,
            dtype=self._config.dtype,
            dataset_state=dataset_state if self._config.save_dataset else None,
        ),
    )

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

  def _finish(self, save: _Save, begin: Callable[[], None] | None) -> None:
    """Runs beside the loop: writes, waits for the end, removes old ones."""
    caught = _Caught()
    with caught:
      if begin is not None:
        begin()
      self._checkpointer.wait_until_finished()
    if caught.error is not None:
      self._failed(save, caught.error)
      return
    self._failures = 0
    self._report('saved', save)
    try:
      self._shelf.add(save.step)
      for step in self._shelf.remove_old():
        self._tell(CheckpointEvent(kind='removed', step=step))
    except OSError:
      logging.exception('Old checkpoints could not be removed; tried later')

  def _failed(self, save: _Save, error: Exception) -> None:
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
    if jax.process_index() == 0:
      self._delete_unfinished(save.step)
    self._report('save_failed', save, error=text)

  def _delete_unfinished(self, step: int) -> None:
    try:
      steps.delete_unfinished(self._shelf.path(step))
    except OSError:  # threads of the failed save may still be writing there
      logging.exception('What the failed save left could not be removed')

  def _report(self, kind: str, save: _Save, *, error: str = '') -> None:
    self._tell(
        CheckpointEvent(
            kind=kind,
            step=save.step,
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
    return self._thread is not None and self._thread.is_alive()

  def report_metrics(self, step: int, metrics: Mapping[str, float]) -> None:
    """Tells what is known of a saved state; counts from the next save on."""
    self._shelf.add_metrics(step, metrics)

  def wait(self) -> bool:
    """Waits for the save under way; returns whether the last one succeeded."""
    if self._thread is not None:
      self._thread.join()
      self._thread = None
    return self._failures == 0

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
      steps.NotACheckpointError: There is none of this step.
      transforms.DifferentModelError: It is of another model.
    """
    self.wait()
    path = self._shelf.path(step)
    request = restoring.Request(
        abstract_state=abstract_state,
        shardings=shardings,
        dtype=dtype,
        is_resuming=True,
    )
    return restoring.restore_state(path, request), state_io.read_dataset_state(
        path, process=jax.process_index(), count=jax.process_count()
    )

  def close(self) -> None:
    """Waits for the save under way and gives threads and memory back."""
    self.wait()
    try:
      self._checkpointer.close()
    except (OSError, ValueError):
      if not self._failures:
        raise
      logging.exception('Left over from the failed save, which was told')
    self._staging.clear()


def _flat_state(train_state: PyTree) -> dict[str, Any]:
  if hasattr(train_state, 'state_dict'):
    train_state = train_state.state_dict()
  return transforms.flatten(train_state)
