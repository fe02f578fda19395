# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether MODEL_DIR is still what it was when the training began.

Moved, deleted or replaced under a run, it would be made anew by the next save,
and the run would lie in two places. The path is the truth: what is there must
be the folder that the training holds. Process 0 looks, for all.
"""

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import os
import threading
import time

from absl import logging

from t5wild import folder_lock
from t5wild import run_dir as run_dir_lib
from t5wild.checkpoint_files import steps
from t5wild.partitioning import distributed
from t5wild.vitals import records
from t5wild.vitals import run_clock

_POLL_SECONDS = 2.0
_AGAIN_SECONDS = 0.5  # a rename and its way back are two moments
_LOOK_SECONDS = 5.0  # a mount that stalls must not keep the loop
_GONE = ' (deleted)'  # as Linux names what an open file was


class PlaceLostError(Exception):
  """A run whose MODEL_DIR was moved, deleted or taken under it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Loss:
  """What has become of MODEL_DIR.

  Attributes:
    what: For a person.
    rescue: Folder that may take the last state: where MODEL_DIR was moved to,
      or its path, where it was deleted; None where neither is sure.
  """

  what: str
  rescue: str | None


class Place:
  """MODEL_DIR of a training, as process 0 knows it; others know nothing."""

  def __init__(
      self, run_dir: run_dir_lib.RunDir, *, descriptor: int | None = None
  ):
    """Looks at the folder.

    Args:
      run_dir: The run's.
      descriptor: Of the lock that this process holds there; None: nothing is
        looked at (a bucket, another process).
    """
    self._run_dir = run_dir
    self._descriptor = descriptor
    self._identity = None
    if descriptor is not None:
      self._identity = _identity(os.stat(run_dir.path))
    self._owner = folder_lock.owner()
    self._looker: threading.Thread | None = None

  def loss(self) -> Loss | None:
    """What has become of it, told alike on all processes; None: it is there."""
    found = self._look_in_time()
    if found is not None:
      time.sleep(_AGAIN_SECONDS)
      found = self._look_in_time()
    value = None if found is None else dataclasses.asdict(found)
    value = distributed.meet('place of the run', value=value)[0]
    return None if value is None else Loss(**value)

  def _look_in_time(self) -> Loss | None:
    """The same as far as can be told; a mount that stalls is no loss."""
    if self._identity is None or (
        self._looker is not None and self._looker.is_alive()
    ):
      return None
    found = []
    self._looker = threading.Thread(
        target=lambda: found.append(self._look()), name='place', daemon=True
    )
    self._looker.start()
    self._looker.join(_LOOK_SECONDS)
    if not found:
      logging.warning(
          '%s has not answered in %.0f s: nobody knows whether it is still '
          'what it was; the run goes on', self._run_dir.path, _LOOK_SECONDS,
      )  # fmt: skip
    return found[0] if found else None

  def _look(self) -> Loss | None:
    if self._identity is None:
      return None
    path = self._run_dir.path
    try:
      is_same = _identity(os.stat(path)) == self._identity
      is_there = True
    except (FileNotFoundError, NotADirectoryError):
      is_same = is_there = False
    except OSError:  # a store that is away: saves tell
      return None
    owner = self._owner_there()
    if owner not in ('', self._owner):
      return Loss(what=f'{path} is held by another one, {owner}', rescue=None)
    # Some mounts number folders anew: there the owner tells.
    if is_there and (is_same or owner):
      return None
    moved_to = self._moved_to()
    what = f'another folder is at {path}' if is_there else f'{path} is gone'
    if moved_to is None:
      what += ': it was deleted' if self._is_deleted() else ''
      is_free = self._is_deleted() and not steps.complete_steps(path)
      return Loss(what=what, rescue=path if is_free else None)
    return Loss(what=f'{what}: it was moved to {moved_to}', rescue=moved_to)

  def _owner_there(self) -> str:
    try:
      with open(self._run_dir.training_lock, encoding='utf-8') as file:
        return file.read().strip()
    except (OSError, ValueError):
      return ''

  def _name_of_lock(self) -> str:
    """The path that the lock has now; '' where the system does not tell."""
    try:
      return os.readlink(f'/proc/self/fd/{self._descriptor}')
    except OSError:
      return ''

  def _is_deleted(self) -> bool:
    return self._name_of_lock().endswith(_GONE)

  def _moved_to(self) -> str | None:
    folder = os.path.dirname(self._name_of_lock())
    try:
      is_it = _identity(os.stat(folder)) == self._identity
    except OSError:
      return None
    return folder if is_it and folder != self._run_dir.path else None

  @contextlib.contextmanager
  def watched(self, on_loss: Callable[[], None]) -> Iterator[None]:
    """Looks every other second beside the block; calls once it is lost.

    Args:
      on_loss: Must ask all processes to stop; the save that follows tells.
    """
    end = threading.Event()

    def watch():
      while not end.wait(_POLL_SECONDS):
        found = self._look()
        if found is not None and not end.wait(_AGAIN_SECONDS) and self._look():
          logging.error('MODEL_DIR: %s. The run stops.', found.what)
          on_loss()
          return

    thread = threading.Thread(target=watch, name='place', daemon=True)
    if self._identity is not None:
      thread.start()
    try:
      yield
    finally:
      end.set()

  def error(self, loss: Loss, *, step: int, is_saved: bool) -> PlaceLostError:
    """Returns the error that ends the run, and leaves it on record.

    Args:
      loss: What `loss` gave.
      step: Of the last state.
      is_saved: Whether that is saved in `loss.rescue`.
    """
    path = self._run_dir.path
    kept = f'the state of step {step} is lost: nobody knows where to save it'
    mend = f'bring the right folder to {path}'
    if is_saved:
      kept = f'the state of step {step} is saved in {loss.rescue}'
      mend = 'nothing has to be brought back'
      if loss.rescue != path:
        mend = f'mv {loss.rescue} {path}'
        if os.path.lexists(path):  # what was under way may have made it anew
          mend = f'take away what is at {path}, {mend}'
    elif loss.rescue is not None:
      kept = f'the state of step {step} could not be saved in {loss.rescue}'
    text = (
        f'MODEL_DIR was moved, deleted or taken while the run wrote to it: '
        f'{loss.what}.\nExpected the folder that was there when the training '
        f'began, since a run that lies in two places is none; {kept}.\nTo go '
        f'on: {mend}; then start the same command again.'
    )
    if is_saved and distributed.process_index() == 0:
      _record(loss.rescue, step=step, text=text)
    return PlaceLostError(text)


def _record(folder: str, *, step: int, text: str) -> None:
  with contextlib.suppress(OSError):
    events = run_dir_lib.RunDir(folder).events_jsonl
    with contextlib.closing(records.RecordWriter(events)) as writer:
      writer.write([
          records.Record(
              step, run_clock.now(), 0, 'run/place_lost', 1.0, '', text
          )
      ])


def _identity(found: os.stat_result) -> tuple[int, int]:
  return found.st_dev, found.st_ino
