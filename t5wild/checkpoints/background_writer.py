# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes one checkpoint at a time beside the loop; leaves overdue ones behind.

A thread that waits for a file system cannot be ended. One that is overdue
keeps what it has, its copy of the state and its Orbax, and the next save gets
new ones. If it comes to its end after all, its checkpoint counts.
"""

from collections.abc import Callable, Iterator, Mapping
import contextlib
import dataclasses
import threading
import time
from typing import Any
import zlib

from absl import logging
import jax

from t5wild.checkpoint_files import file_hashes
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import save_events
from t5wild.checkpoints import staging as staging_lib
from t5wild.checkpoints import state_io
from t5wild.partitioning import distributed

# Orbax numbers its saves by one counter of the process, and reads it again as
# it begins one: of two that begin at once, one waits for ever.
_ONE_BEGINS = threading.Lock()
_BEGIN_SECONDS = 30.0  # one that hangs must not keep the others
# Each one left behind holds a copy of the state in memory.
MOST_LEFT_BEHIND = 2


@dataclasses.dataclass(kw_only=True)
class Save:
  """A save under way.

  Attributes:
    step: Step of the state.
    path: Folder of the checkpoint.
    start: When it was asked for, by `time.perf_counter`.
    num_bytes: Bytes of all arrays.
    blocked_seconds: How long who asked waited.
    error: What ended it, or None.
    has_ended: Whether nothing of it goes on.
    is_left_behind: Whether nobody waits for it any more.
  """

  step: int
  path: str
  start: float
  num_bytes: int = 0
  blocked_seconds: float = 0.0
  error: BaseException | None = None
  has_ended: bool = False
  is_left_behind: bool = False

  def seconds(self) -> float:
    """Seconds since it was asked for."""
    return time.perf_counter() - self.start


class _Caught(contextlib.AbstractContextManager):
  """Holds the error that ended its block: whatever it is, the run goes on."""

  def __init__(self):
    self.error: Exception | None = None

  def __exit__(self, kind, error, traceback) -> bool:
    self.error = error if isinstance(error, Exception) else None
    return self.error is not None


def caught() -> _Caught:
  """Returns a context whose `error` is what ended its block."""
  return _Caught()


class _Means:
  """What saves are written with, one at a time: Orbax, and kept memory."""

  def __init__(self, directory: str, *, timeout_seconds: int, number: int):
    self.checkpointer = state_io.make_checkpointer(
        directory,
        timeout_seconds=timeout_seconds,
        name=f'_{zlib.crc32(directory.encode()):08x}_{number}',
    )
    self.staging = staging_lib.HostStaging()
    self.save: Save | None = None
    self.thread: threading.Thread | None = None

  def is_busy(self) -> bool:
    return self.thread is not None and self.thread.is_alive()

  def close(self) -> None:
    self.checkpointer.close()
    self.staging.clear()


class BackgroundWriter:
  """Writes checkpoints by Orbax, in threads; use it from one thread."""

  def __init__(
      self,
      directory: str,
      *,
      timeout_seconds: int,
      deadline_seconds: float,
      on_end: Callable[[Save], None],
  ):
    """Writes nothing yet.

    Args:
      directory: Where checkpoints go.
      timeout_seconds: How long processes wait for each other.
      deadline_seconds: How long a save may take.
      on_end: Called from a thread when a save has ended, well or with an
        error, or is left behind; then once more if that one ends.
    """
    self._directory = directory
    self._timeout_seconds = timeout_seconds
    self._deadline_seconds = deadline_seconds
    self._on_end = on_end
    self._lock = threading.Lock()
    self._left_behind: list[_Means] = []
    self._number = 0
    self._means = self._make_means()

  def _make_means(self) -> _Means:
    self._number += 1
    return _Means(
        self._directory,
        timeout_seconds=self._timeout_seconds,
        number=self._number,
    )

  def prepare(self, flat: Mapping[str, Any]) -> None:
    """Takes the memory that copies of the state will need, ahead of time."""
    for _ in range(2):  # The first takes the memory, the second reuses it.
      jax.block_until_ready(self._means.staging.copy(flat))

  def is_writing(self) -> bool:
    """Whether a save is under way that somebody waits for."""
    save = self._means.save
    return self._means.is_busy() and not save.is_left_behind

  def wait(self) -> bool:
    """Waits for the save under way, not beyond its deadline.

    Returns:
      Whether it has ended.
    """
    save, thread = self._means.save, self._means.thread
    if thread is not None:
      thread.join(max(0.0, self._deadline_seconds - save.seconds()))
      if thread.is_alive():
        self._leave_behind(save)
        return False
    return True

  def make_ready(self) -> None:
    """Waits like `wait`; a save that is overdue is in nobody's way after it.

    Every process calls it alike, and all do the same: saves have barriers.

    Raises:
      save_events.OverdueError: Too many saves hang already.
    """
    has_ended = self.wait()
    if self._means.save is not None and jax.process_count() > 1:
      answers = distributed.meet(
          'save before this one',
          value=has_ended,
          timeout_seconds=self._deadline_seconds
          + distributed.DEFAULT_BARRIER_SECONDS,
      )
      has_ended = all(answers)
    if not has_ended:
      self._left_behind.append(self._means)
      self._means = self._make_means()
    self._left_behind = [m for m in self._left_behind if m.is_busy()]
    if len(self._left_behind) > MOST_LEFT_BEHIND:
      raise save_events.OverdueError(
          f'{len(self._left_behind)} saves in {self._directory} hang, expected '
          f'at most {MOST_LEFT_BEHIND}, as each holds a copy of the state: '
          'mend the file system; saves go on once one of them has ended'
      )

  def copy(self, flat: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the state with copies of its CPU arrays, kept until it is saved.

    Call `make_ready` before.
    """
    return self._means.staging.copy(flat)

  def write(
      self, save: Save, args: Any, *, make_room: Callable[[], None], wait: bool
  ) -> None:
    """Starts to write.

    Args:
      save: What is written.
      args: As `state_io.make_save_args` gives them.
      make_room: Called first of all, in the thread.
      wait: Whether to wait until the state is copied off the devices.
    """
    means = self._means
    begun = threading.Event()
    means.save = save
    if not wait:
      save.blocked_seconds = save.seconds()
    means.thread = threading.Thread(
        target=self._write,
        args=(means, save, args, make_room, begun),
        name=f'checkpoint_{save.step}',
        daemon=True,  # one that hangs must not keep the process
    )
    means.thread.start()
    if wait and not begun.wait(
        max(0.0, self._deadline_seconds - save.seconds())
    ):
      self._leave_behind(save)

  def _write(self, means, save, args, make_room, begun) -> None:
    """Runs beside the loop, from the first file to the last."""
    timer = threading.Timer(
        self._deadline_seconds - save.seconds(), self._leave_behind, [save]
    )
    timer.daemon = True
    timer.start()
    attempt = caught()
    with attempt:
      make_room()
      with _beginning():
        means.checkpointer.save(save.path, args=args)
      save.blocked_seconds = save.blocked_seconds or save.seconds()
      begun.set()
      means.checkpointer.wait_until_finished()
      _hash_files(save.path)
    timer.cancel()
    with self._lock:
      save.error = attempt.error
      save.has_ended = True
    save.blocked_seconds = save.blocked_seconds or save.seconds()
    self._on_end(save)
    begun.set()

  def _leave_behind(self, save: Save) -> None:
    with self._lock:
      if save.is_left_behind or save.has_ended:
        return
      save.is_left_behind = True
      save.error = save_events.OverdueError(
          f'it takes longer than {self._deadline_seconds:.0f} s, expected an '
          'end by then: mend the file system, or raise '
          'SaveCheckpointConfig.deadline_seconds'
      )
    self._on_end(save)

  def close(self, *, is_failing: bool) -> None:
    """Waits for the save under way and gives threads and memory back.

    Args:
      is_failing: Whether saves failed last, and what else fails now is of
        them.
    """
    if not self.wait():
      logging.error('A save in %s hangs and is left so', self._directory)
      return
    try:
      self._means.close()
    except (OSError, ValueError):
      if not is_failing:
        raise
      logging.exception('Left over from the failed save, which was told')


@contextlib.contextmanager
def _beginning() -> Iterator[None]:
  is_mine = _ONE_BEGINS.acquire(timeout=_BEGIN_SECONDS)
  try:
    yield
  finally:
    if is_mine:
      _ONE_BEGINS.release()


def _hash_files(path: str) -> None:
  """Writes checksums of the files; a checkpoint is complete without them."""
  if steps.is_bucket(path):
    return
  try:
    file_hashes.write(
        path, process=jax.process_index(), count=jax.process_count()
    )
  except OSError:
    logging.exception('%s gets no checksums of its files', path)
