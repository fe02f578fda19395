# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Decides together with the supervisors of a run's other hosts.

They meet in the run directory and nowhere else: each gives signs of life there,
and each attempt is a round that one of them proposes and all then read. Who is
missing is waited for, a spare takes its seat, or the run goes on with fewer.
"""

from collections.abc import Callable
import time

from t5wild.launch import councils
from t5wild.launch import events as events_lib
from t5wild.launch import failures
from t5wild.launch import host_signs
from t5wild.launch import job as job_lib
from t5wild.launch import local_group
from t5wild.launch import places as places_lib
from t5wild.launch import proposals
from t5wild.launch import restarts
from t5wild.launch import rounds

_POLL_SECONDS = 0.2


class Together:
  """One of several supervisors."""

  exit_event = 'host_exit'  # the run's own is told once, by who proposes

  def __init__(
      self,
      job: job_lib.Job,
      *,
      policy: restarts.Policy,
      events: events_lib.Events,
      say: Callable[[str], None],
  ):
    """Gives the first sign.

    Args:
      job: what to run; its `hosts` are set.
      policy: whether to restart; that of whoever proposes is decisive.
      events: where it is put on record.
      say: tells a person at the terminal.

    Raises:
      OSError: the run directory cannot be written.
    """
    self._job = job
    self._hosts = job.hosts
    self._policy = policy
    self._events = events
    self._say = say
    self._newest = rounds.newest(job.run_dir)
    self._round: rounds.Round | None = None  # that this host takes part in
    self._onlooker = host_signs.Onlooker(job.run_dir)
    self._beacon = host_signs.Beacon(
        job.run_dir,
        host_signs.HostSign(
            host=job.label,
            planned=self._hosts.planned,
            processes=job.num_processes,
            coordinator=self._offer(),
            knows=self._number,
        ),
    )
    self._is_due_since: float | None = None

  @property
  def _number(self) -> int:
    return self._newest.number if self._newest else 0

  def _offer(self) -> str:
    port = self._job.coordinator_port or local_group.free_port()
    return f'{self._hosts.address}:{port}'

  def first(self, asked: Callable[[], bool]) -> restarts.Decision | None:
    """Waits for a round that this host takes part in, or for the end."""
    return self._meet(asked)

  def after(
      self, ended: restarts.Ended, asked: Callable[[], bool]
  ) -> restarts.Decision | None:
    """Tells the others how it ended here, and waits for what is agreed."""
    self._beacon.tell(
        waits=True, ended=rounds.ended_to_json(ended), ended_at=time.time(),
        coordinator=self._offer(),
    )  # fmt: skip
    return self._meet(asked)

  def seats(self) -> councils.Seats:
    """Of the round that was agreed on."""
    agreed = self._round
    number = self._job.num_processes
    index = self._index_in(agreed)
    return councils.Seats(
        attempt=agreed.attempt,
        environments=places_lib.environments(
            self._job.environment,
            places_lib.Seating(places=tuple(range(number)), fold=1),
            devices=self._job.devices, num_processes=number,
            total=self._job.num_places,
        ),
        coordinator=agreed.coordinator,
        first=index * number,
        count=len(agreed.members) * number,
        fold=agreed.fold,
    )  # fmt: skip

  def _index_in(self, agreed: rounds.Round) -> int | None:
    sign = self._beacon.sign
    return agreed.index_of(sign.host, sign.incarnation)

  def peers_end(self) -> failures.Failure | None:
    """The first of the other hosts of whose end one can see."""
    agreed = self._round
    if rounds.read(self._job.run_dir, agreed.number + 1) is not None:
      return failures.lost_host(
          'the other hosts have gone on without this one', process=0
      )
    seen = {one.sign.host: one for one in self._onlooker.look()}
    for index, member in enumerate(agreed.members):
      process = index * agreed.processes
      one = seen.get(member.host)
      if one is None or member.host == self._beacon.sign.host:
        continue
      if one.sign.incarnation != member.incarnation:
        return failures.lost_host(
            f'host {member.host} has started anew', process=process
        )
      if one.sign.ended is not None and one.sign.knows == agreed.number:
        return rounds.ended_from_json(one.sign.ended).failure
      if one.age > self._hosts.silent_seconds:
        return failures.lost_host(
            f'host {member.host} gave no sign of life for {one.age:.0f} s',
            process=process,
        )
    return None

  def wants_more(self) -> bool:
    """Whether, with the spares that wait, more hosts could take part."""
    agreed = self._round
    if agreed.fold == 1 or self._index_in(agreed) != 0:
      return False  # one asks for all
    waiting = [sign.host for sign in self._view().ready]
    members = [member.host for member in agreed.members]
    seats = rounds.seats_for(
        [*members, *waiting], before=members, planned=agreed.planned
    )
    return len(seats) > len(members)

  def _view(self) -> proposals.View:
    return proposals.View(
        self._onlooker.look(),
        newest=self._newest,
        silent_seconds=self._hosts.silent_seconds,
    )

  def leave(self, ended: restarts.Ended | None) -> None:
    """Tells the others that it is gone, and how its processes ended."""
    if ended is not None and self._beacon.sign.ended is None:
      self._beacon.tell(
          ended=rounds.ended_to_json(ended), ended_at=time.time()
      )
    self._beacon.tell(waits=False, left=True)

  def close(self) -> None:
    """Gives no more signs."""
    self._beacon.close()

  def _meet(self, asked: Callable[[], bool]) -> restarts.Decision | None:
    """Waits until a round is agreed on that this host is to heed."""
    self._is_due_since = None
    self._missing_since = time.monotonic()
    self._say(f'Waiting for the other hosts ({self._hosts.planned} planned).')
    while not asked():
      told = rounds.read(self._job.run_dir, self._number + 1)
      if told is None:
        self._propose_if_due()
      else:
        decision = self._heed(told)
        if decision is not None:
          return decision
      time.sleep(_POLL_SECONDS)
    return None

  def _heed(self, agreed: rounds.Round) -> restarts.Decision | None:
    """Does what a round says; None: this host has no part in it."""
    self._newest = agreed
    is_own = agreed.proposer == self._beacon.sign.host
    if agreed.code is not None:
      self._beacon.tell(knows=agreed.number)
      return restarts.Decision(
          restart=False, verdict=agreed.text, code=agreed.code, tells=is_own
      )
    if self._index_in(agreed) is None:
      self._missing_since = time.monotonic()
      self._beacon.tell(
          knows=agreed.number, ended=None, coordinator=self._offer()
      )
      self._say(
          f'Round {agreed.number} has {len(agreed.members)} hosts, and this '
          'one is spare: it takes the place of one that is lost.'
      )
      return None
    self._round = agreed
    self._beacon.tell(knows=agreed.number, waits=False, ended=None)
    return restarts.Decision(
        restart=True, verdict=agreed.text, tells=is_own,
        delay_seconds=agreed.delay_seconds,
    )  # fmt: skip

  def _propose_if_due(self) -> None:
    """Proposes the next round, where it is this host's turn."""
    now = time.monotonic()
    view = self._view()
    if view.busy:
      self._missing_since = now
    is_due = not view.busy and (
        len(view.ready) >= self._hosts.planned
        or now - self._missing_since > self._hosts.gather_seconds
    )
    if not is_due:
      self._is_due_since = None
      return
    if self._is_due_since is None:
      self._is_due_since = now
    # Whose turn it is may hang: the next one waits for it, and then proposes.
    turn = view.turn_of(self._beacon.sign.host)
    if turn is None or (
        now - self._is_due_since < turn * self._hosts.silent_seconds
    ):
      return
    proposed = proposals.propose(
        view,
        proposer=self._beacon.sign.host,
        hosts=self._hosts,
        policy=self._policy,
        in_a_row=self._job.leave_out_after,
        last_attempt=events_lib.last_attempt(self._job.run_dir),
    )
    agreed = rounds.agree(self._job.run_dir, proposed)
    if agreed is not None and agreed.proposer == proposed.proposer:
      self._record(agreed)

  def _record(self, agreed: rounds.Round) -> None:
    """Puts on record, once for all hosts, how the last round ended."""
    before = [] if self._newest is None else self._newest.ends
    if len(agreed.ends) > len(before):
      ended = agreed.ends[-1]
      self._events.add(
          f'exit/{ended.failure.kind.name}', ended.failure.code,
          unit='exit_code', step=ended.step, text=ended.failure.line,
          process=ended.failure.process,
      )  # fmt: skip
    if agreed.code is None:
      self._events.add(
          'hosts', len(agreed.members), unit='hosts',
          text=proposals.members_told(agreed),
      )  # fmt: skip
