# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Watches one attempt: who ends, who gives no sign, and why it all ended."""

import signal
import time
from typing import Protocol

from t5wild import exit_codes
from t5wild.launch import bounds as bounds_lib
from t5wild.launch import failures
from t5wild.launch import local_group

_POLL_SECONDS = 0.05
_SIGNS_SECONDS = 0.5
_LAST_WORDS_SECONDS = 1.0
_LOST_PEER_TIMES = 5


class Overseer(Protocol):
  """What a watch asks and tells: the supervisor."""

  @property
  def stopping(self) -> bool:
    """Whether the processes have been told to stop."""

  def take_signal(self) -> int | None:
    """A signal to pass on to the processes now, once each."""

  def tell_alive(self, group: local_group.LocalGroup) -> None:
    """Tells, now and then, how far the run is."""

  def late(self, process: int, seconds: float, line: str) -> None:
    """Notes a process that gives no sign of life, and is not ended yet."""

  def peers_end(self) -> failures.Failure | None:
    """How the attempt ended on another host, if it did."""

  def wants_more(self) -> bool:
    """Whether hosts wait with which the run would be whole again."""

  def detected(self, failure: failures.Failure) -> None:
    """Notes the moment at which something was seen to be wrong."""


class Watch:
  """One attempt, from its start to the end of its last process."""

  def __init__(
      self,
      group: local_group.LocalGroup,
      overseer: Overseer,
      *,
      bounds: bounds_lib.Bounds,
  ):
    """Takes the processes, which run, and whom to ask and to tell."""
    self._group = group
    self._supervisor = overseer
    self._bounds = bounds
    self._deadline: float | None = None
    self._why: failures.Failure | None = None
    self._peers: failures.Failure | None = None
    self._asks_anew = False
    self._num_ended = 0
    self._looked_at = time.monotonic()

  def until_the_end(self) -> failures.Failure:
    """Returns why it ended, its root cause."""
    while self._group.running():
      self._pass_signals_on()
      self._note_ends()
      self._note_silence_and_peers()
      if self._deadline is not None and time.monotonic() > self._deadline:
        break
      time.sleep(_POLL_SECONDS)
    return self._conclude()

  def _pass_signals_on(self) -> None:
    number = self._supervisor.take_signal()
    if number is not None:
      self._group.signal(number)
      self._wait_at_most(self._bounds.stop)

  def _note_ends(self) -> None:
    ended = self._group.ended()
    for failure in ended[self._num_ended :]:
      self._wait_after(failure)
    self._num_ended = len(ended)

  def _wait_after(self, failure: failures.Failure) -> None:
    """Gives the others their time to leave, too."""
    if failure.kind is failures.DONE:
      self._wait_at_most(self._bounds.finish)
    elif failure.kind.is_failure:
      self._supervisor.detected(failure)
      # Told to stop, the others may be saving still.
      if not self._supervisor.stopping:
        self._wait_at_most(self._grace_after(failure))
    else:
      self._wait_at_most(self._bounds.stop)

  def _grace_after(self, failure: failures.Failure) -> float:
    """Who lost a peer may be the first to leave: the cause is still to come."""
    is_cause = failure.kind is not failures.LOST_PEER
    return self._bounds.grace * (1 if is_cause else _LOST_PEER_TIMES)

  def _note_silence_and_peers(self) -> None:
    now = time.monotonic()
    if self._why or now - self._looked_at < _SIGNS_SECONDS:
      return
    self._looked_at = now
    self._supervisor.tell_alive(self._group)
    self._note_silence()
    if self._peers is None:
      self._peers = self._supervisor.peers_end()
      if self._peers is not None:
        self._wait_after(self._peers)
      elif not self._asks_anew and self._supervisor.wants_more():
        # All save and leave, and start again with those that wait.
        self._asks_anew = True
        self._group.signal(signal.SIGTERM)
        self._wait_at_most(self._bounds.stop)

  def _note_silence(self) -> None:
    silent = self._group.silent(
        silent_seconds=self._bounds.silent, start_seconds=self._bounds.start,
        on_late=self._supervisor.late,
    )  # fmt: skip
    if silent is None:
      return
    index, line = silent
    self._why = failures.Failure(
        kind=failures.HANG, code=exit_codes.HUNG.code, process=index, line=line
    )
    self._supervisor.detected(self._why)
    self._group.abort()
    self._wait_at_most(_LAST_WORDS_SECONDS)

  def _wait_at_most(self, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    if self._deadline is None or deadline < self._deadline:
      self._deadline = deadline

  def _conclude(self) -> failures.Failure:
    if self._why is not None:
      return self._why
    running = self._group.running()
    self._note_ends()
    ended = self._group.ended()
    if running and self._peers is not None and self._peers.kind.is_failure:
      ended = [
          *ended,
          failures.Failure(
              kind=failures.LOST_PEER, code=exit_codes.LOST_PEER.code,
              process=running[0], line=self._peers.line,
          ),
      ]  # fmt: skip
    if running and not any(f.kind.is_failure for f in ended):
      return failures.Failure(
          kind=failures.HANG,
          code=exit_codes.HUNG.code,
          process=running[0],
          line='it did not leave in time when told to stop, or when the others '
          'were done',
      )
    return failures.root_cause(ended)
