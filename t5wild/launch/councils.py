# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Who decides what follows an attempt: here, a supervisor that is alone."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
from typing import Protocol

from t5wild.launch import events as events_lib
from t5wild.launch import failures
from t5wild.launch import job as job_lib
from t5wild.launch import local_group
from t5wild.launch import places as places_lib
from t5wild.launch import restarts


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seats:
  """The processes of one attempt, as far as they are on this host.

  Attributes:
    attempt: its number.
    environments: of this host's processes, in order.
    coordinator: `host:port` of process 0; None: the command finds it itself.
    first: index of the first of them among all of the run.
    count: of all processes of the run.
    fold: how many planned places each of them stands for.
  """

  attempt: int
  environments: Sequence[Mapping[str, str]]
  coordinator: str | None = None
  first: int = 0
  count: int
  fold: int = 1


class Council(Protocol):
  """Decides for a supervisor, alone or with those of other hosts."""

  exit_event: str

  def first(self, asked: Callable[[], bool]) -> restarts.Decision | None:
    """Whether to start; None: it was asked to stop while it waited."""

  def after(
      self, ended: restarts.Ended, asked: Callable[[], bool]
  ) -> restarts.Decision | None:
    """What follows an attempt; None: it was asked to stop meanwhile."""

  def seats(self) -> Seats:
    """Of the next attempt."""

  def peers_end(self) -> failures.Failure | None:
    """How the attempt ended elsewhere, if it did."""

  def wants_more(self) -> bool:
    """Whether hosts wait with which the run would be whole again."""

  def leave(self, ended: restarts.Ended | None) -> None:
    """Tells the others, if there are any, that this supervisor leaves."""

  def close(self) -> None:
    """Ends what it has started."""


class Alone:
  """A supervisor that asks nobody."""

  exit_event = 'exit'

  def __init__(
      self,
      job: job_lib.Job,
      *,
      policy: restarts.Policy,
      events: events_lib.Events,
  ):
    """Takes what to run, whether to restart, and where to put it on record."""
    self._job = job
    self._policy = policy
    self._events = events
    self._attempt = events_lib.last_attempt(job.run_dir)
    self._history: list[restarts.Ended] = []
    self._in_places = 0  # ends of the history before the seating changed
    self._places = places_lib.Places(
        planned=job.num_places - job.spares,
        spares=job.spares,
        left_out=job.left_out,
    )

  def first(self, asked: Callable[[], bool]) -> restarts.Decision:
    """Starts at once."""
    del asked
    return restarts.Decision(restart=True, verdict='')

  def after(
      self, ended: restarts.Ended, asked: Callable[[], bool]
  ) -> restarts.Decision:
    """Decides by all that has befallen this supervisor's attempts."""
    del asked
    self._history.append(ended)
    return self._without_places() or restarts.decide(
        self._policy, self._history
    )

  def seats(self) -> Seats:
    """Of the next attempt, on a fresh port."""
    self._attempt += 1
    seating = self._places.seating()
    environments = places_lib.environments(
        self._job.environment, seating, devices=self._job.devices,
        num_processes=self._job.num_processes, total=self._job.num_places,
    )  # fmt: skip
    coordinator = None
    if len(environments) > 1:
      is_first = not self._history
      port = (is_first and self._job.coordinator_port) or (
          local_group.free_port()
      )
      coordinator = f'127.0.0.1:{port}'
    return Seats(
        attempt=self._attempt, environments=environments,
        coordinator=coordinator, count=len(environments), fold=seating.fold,
    )  # fmt: skip

  def peers_end(self) -> None:
    """There are none."""

  def wants_more(self) -> bool:
    """There are none."""
    return False

  def leave(self, ended: restarts.Ended | None) -> None:
    """Tells nobody."""

  def close(self) -> None:
    """Has started nothing."""

  def _without_places(self) -> restarts.Decision | None:
    """Leaves out a place that failures speak against; None: there is none."""
    limit = self._policy.max_restarts
    if limit is not None and len(self._history) > limit:
      return None
    recent = restarts.without_progress(self._history[self._in_places :])
    blamed = places_lib.to_blame(
        [ended.failure for ended in recent],
        seating=self._places.seating(),
        is_one_process=self._job.num_processes == 1,
        in_a_row=self._job.leave_out_after,
    )
    what = '' if blamed is None else self._places.leave_out(blamed)
    if not what:
      return None
    self._in_places = len(self._history)
    self._events.add('left_out', blamed, unit='place', text=what,
                     step=recent[-1].step)  # fmt: skip
    return restarts.Decision(
        restart=True,
        verdict=f'{recent[-1].failure.kind.name}: {what}; starting again',
    )
