# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Copies a run's checkpoints to another store, in a thread of its own."""

from collections.abc import Callable
import threading

from absl import logging

from t5wild.checkpoint_files import copying
from t5wild.checkpoint_files import health
from t5wild.checkpoint_files import pins
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import tiers

_LAST_WAIT_SECONDS = 600.0


class Mirroring:
  """The copying of one run to one mirror; of process 0 alone.

  Only the newest waits while one is copied: a slow mirror has fewer, and the
  run never waits for it but for the last, at its end.
  """

  def __init__(
      self,
      directory: str,
      config: tiers.Mirror,
      *,
      tell: Callable[[str, int, str], None],
  ):
    """Looks at what the mirror has, and starts the thread.

    Args:
      directory: Where the run saves.
      config: Where copies go, and which.
      tell: Called with an event's name, a step and a text.
    """
    self._source = directory
    self._target = steps.absolute_path(config.directory)
    self._config = config
    self._tell = tell
    self._changed = threading.Condition()
    self._next: int | None = None
    self._held: set[int] = set()
    self._is_closed = False
    self._newest: int | None = None
    self._thread = threading.Thread(
        target=self._run, name='checkpoint_mirror', daemon=True
    )
    self._thread.start()

  def holds(self, step: int) -> bool:
    """Whether the source of a step must stay where it is."""
    with self._changed:
      return step in self._held

  def offer(self, step: int) -> None:
    """Has a checkpoint copied if it is due; returns at once."""
    with self._changed:
      newest = self._newest
      period = self._config.period
      if period and newest is not None and newest <= step < newest + period:
        return
      if self._next is not None:
        self._held.discard(self._next)
      self._next = step
      self._held.add(step)
      self._changed.notify_all()

  def quarantine(self, first: int, *, reason: str) -> None:
    """Takes the copies of a step and all later ones out of use."""
    try:
      found = [s for s in steps.all_steps(self._target) if s >= first]
      book = health.Book(self._target, is_writer=True)
      book.quarantine(found, reason=reason)
    except OSError:
      logging.exception('Copies in %s are not in quarantine', self._target)
    with self._changed:
      if self._newest is not None and self._newest >= first:
        self._newest = None  # the next one is due, whichever it is

  def close(self) -> None:
    """Copies what waits, and ends; not beyond ten minutes."""
    with self._changed:
      self._is_closed = True
      self._changed.notify_all()
    self._thread.join(_LAST_WAIT_SECONDS)
    if self._thread.is_alive():
      logging.error('The mirror %s is too slow, and is left so', self._target)

  def _run(self) -> None:
    self._open()
    while (step := self._take()) is not None:
      self._copy(step)
      self._let_go(step)

  def _take(self) -> int | None:
    """Waits for the next; None: there is no other."""
    with self._changed:
      self._changed.wait_for(lambda: self._next is not None or self._is_closed)
      step, self._next = self._next, None
      return step

  def _let_go(self, step: int) -> None:
    with self._changed:
      if self._next != step:
        self._held.discard(step)

  def _open(self) -> None:
    try:
      steps.delete_leftovers(self._target)
      # What could not be told to the mirror before.
      self._carry_health()
      newest = steps.latest_step(self._target)
    except Exception as error:  # noqa: BLE001 -- whatever a store raises
      self._tell('mirror_failed', 0, f'{self._target}: {error}')
      return
    with self._changed:
      self._newest = newest

  def _copy(self, step: int) -> None:
    target = steps.get_checkpoint_dir(self._target, step)
    try:
      known = health.read(self._source).get(step, health.Health())
      if known.state == health.QUARANTINED:
        return  # by a fault that came while it waited
      book = health.Book(self._target, is_writer=True)
      if book.of(step).state == health.QUARANTINED:
        steps.delete_checkpoint(target)
        book.forget(step)
      source = steps.get_checkpoint_dir(self._source, step)
      copying.copy(source, target, replace=True)
      self._carry_health()  # a fault may have come meanwhile
      self._remove_old()
    except Exception as error:  # noqa: BLE001 -- the run goes on without it
      logging.exception('Step %d is not mirrored', step)
      name = 'mirror_failed'
      if isinstance(error, copying.DamagedSourceError):
        name = 'damaged'
      self._tell(name, step, f'not copied to {target}: {error}')
      return
    with self._changed:
      self._newest = step
    self._tell('mirrored', step, f'copied to {target}')

  def _carry_health(self) -> None:
    health.carry(
        self._source, self._target, there=steps.complete_steps(self._target)
    )

  def _remove_old(self) -> None:
    """Removes what is too much; what was found healthy last stays.

    What is in quarantine goes once the run has left the fault behind.
    """
    if self._config.keep is None:
      return
    there = steps.all_steps(self._target)
    healthy = health.Book(self._source, is_writer=False).in_state(
        health.HEALTHY, there
    )
    book = health.Book(self._target, is_writer=True)
    gone = set(there[: -self._config.keep]) - set(healthy[-1:])
    gone |= {s for s in book.quarantined() if healthy and s < healthy[-1]}
    for step in sorted(gone):
      path = steps.get_checkpoint_dir(self._target, step)
      if not pins.is_pinned(path):
        steps.delete_checkpoint(path)
        book.forget(step)
