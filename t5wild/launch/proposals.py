# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What one supervisor proposes to those of the other hosts. Pure."""

from collections.abc import Sequence
import dataclasses

from t5wild import exit_codes
from t5wild.launch import failures
from t5wild.launch import host_signs
from t5wild.launch import job as job_lib
from t5wild.launch import places as places_lib
from t5wild.launch import restarts
from t5wild.launch import rounds


class View:
  """What the signs say before the next round is agreed on.

  Attributes:
    newest: the round before; None: there was none.
    ready: signs of the hosts that wait for the next, in order of their turn to
      propose it.
    busy: names of hosts that must end theirs first.
  """

  def __init__(
      self,
      seen: Sequence[host_signs.Seen],
      *,
      newest: rounds.Round | None,
      silent_seconds: float,
  ):
    """Sorts the signs.

    Args:
      seen: signs of all hosts.
      newest: the newest round.
      silent_seconds: an older sign is of a host that is lost.
    """
    self.newest = newest
    number = newest.number if newest else 0
    left_out = newest.left_out if newest else ()
    alive = [
        one
        for one in seen
        if one.age <= silent_seconds and not one.sign.left
    ]
    self.busy = [
        one.sign.host
        for one in alive
        # A sign that nobody saw change may be of a run long gone: it is waited
        # for as if it was alive, and never counted on.
        if (one.sign.knows == number and number and not one.sign.waits)
        or (one.has_changed and one.sign.knows < number)
    ]
    ready = [
        one.sign
        for one in alive
        if one.has_changed
        and one.sign.waits
        and one.sign.knows == number
        and one.sign.host not in left_out
    ]
    members = [m.host for m in newest.members] if newest else []
    self.ready = sorted(
        ready, key=lambda sign: (sign.host not in members, sign.host)
    )
    self._signs = {one.sign.host: one.sign for one in seen}

  def turn_of(self, host: str) -> int | None:
    """When a host is to propose, from 0 on; None: it is not ready."""
    names = [sign.host for sign in self.ready]
    return names.index(host) if host in names else None

  def ends(self) -> list[restarts.Ended]:
    """How the newest round ended on each of its hosts, in order of time.

    Empty where no member tells: then this is the start of another run.
    """
    if self.newest is None:
      return []
    told: list[tuple[float, restarts.Ended]] = []
    lost: list[restarts.Ended] = []
    for index, member in enumerate(self.newest.members):
      sign = self._signs.get(member.host)
      is_same = sign is not None and sign.incarnation == member.incarnation
      if is_same and sign.ended is not None and (
          sign.knows == self.newest.number
      ):
        ended = rounds.ended_from_json(sign.ended)
        told.append((sign.ended_at, ended))
        continue
      why = (
          'has started anew'
          if sign is not None and not is_same
          else 'gave no sign of life any more'
      )
      lost.append(
          restarts.Ended(
              failure=failures.lost_host(
                  f'host {member.host} {why}',
                  process=index * self.newest.processes,
              )
          )
      )
    if not told:
      return []
    return lost + [ended for _, ended in sorted(told, key=lambda one: one[0])]


def propose(
    view: View,
    *,
    proposer: str,
    hosts: job_lib.Hosts,
    policy: restarts.Policy,
    in_a_row: int,
    last_attempt: int,
) -> rounds.Round:
  """The next round, or the end of the run.

  Args:
    view: of all hosts; none of them is busy.
    proposer: this host.
    hosts: how many there are to be.
    policy: whether to restart.
    in_a_row: failures in a row that speak against a host.
    last_attempt: number of the newest attempt of the run.
  """
  ends, seated_at, left_out = _history(view)
  common = {
      'number': view.newest.number + 1 if view.newest else 1,
      'attempt': 1 + max(
          last_attempt, view.newest.attempt if view.newest else 0
      ),
      'planned': hosts.planned,
      'proposer': proposer,
      'ends': ends,
  }
  decision = restarts.Decision(restart=True, verdict='All hosts are there.')
  if ends:
    decision = restarts.decide(policy, ends)
  if not decision.restart:
    return rounds.Round(
        **common, text=decision.verdict, code=ends[-1].failure.code
    )
  refused = _differ(view.ready)
  if refused:
    return rounds.Round(
        **common, text=refused, code=exit_codes.BAD_CONFIG.code
    )
  names = [sign.host for sign in view.ready]
  blamed = _blamed(view, ends[seated_at:], in_a_row=in_a_row)
  if blamed in names and len(names) > hosts.least:
    names.remove(blamed)
    left_out = (*left_out, blamed)
    decision = dataclasses.replace(decision, delay_seconds=0.0)
  before = _members(view) if ends else []
  seats = rounds.seats_for(names, before=before, planned=hosts.planned)
  if len(seats) < hosts.least:
    return rounds.Round(
        **common, text=_too_few(names, hosts),
        code=exit_codes.LOST_PEER.code,
    )  # fmt: skip
  signs = {sign.host: sign for sign in view.ready}
  return rounds.Round(
      **common,
      members=[
          rounds.Member(host=name, incarnation=signs[name].incarnation)
          for name in seats
      ],
      processes=signs[seats[0]].processes,
      coordinator=signs[seats[0]].coordinator,
      left_out=left_out,
      seated_at=seated_at if seats == before else len(ends),
      text=f'{decision.verdict}{_told(seats, before, hosts, left_out)}',
      delay_seconds=decision.delay_seconds,
  )


def _history(
    view: View,
) -> tuple[list[restarts.Ended], int, tuple[str, ...]]:
  """Ends of all rounds, how many are of other members, who is left out."""
  newest = view.ends()
  if not newest:
    return [], 0, ()
  cause = failures.root_cause([ended.failure for ended in newest])
  steps = [ended.step for ended in newest if ended.step is not None]
  kept = [ended.kept for ended in newest if ended.kept is not None]
  ended = restarts.Ended(
      failure=cause,
      step=max(steps, default=None),
      kept=max(kept, default=None),
  )
  before = view.newest
  return [*before.ends, ended], before.seated_at, tuple(before.left_out)


def _members(view: View) -> list[str]:
  return [member.host for member in view.newest.members]


def _differ(ready: Sequence[host_signs.HostSign]) -> str:
  """What hosts do not agree in, if anything: no order of mine mends it."""
  for field, flag in (('processes', '--processes'), ('planned', '--hosts')):
    told = {sign.host: getattr(sign, field) for sign in ready}
    if len(set(told.values())) > 1:
      rows = '\n'.join(f'  {host}: {flag}={n}' for host, n in told.items())
      return (
          f'REFUSED: the supervisors were given different {flag}:\n{rows}\n'
          '  Expected the same on all hosts: each batch is divided alike. '
          'Start them with one command.'
      )
  return ''


def _blamed(
    view: View, ends: Sequence[restarts.Ended], *, in_a_row: int
) -> str | None:
  """The host that the newest failures speak against, if any."""
  recent = restarts.without_progress(ends) if ends else []
  if not recent:
    return None
  before = view.newest
  index = places_lib.to_blame(
      [ended.failure for ended in recent],
      seating=places_lib.Seating(
          places=tuple(
              place
              for place in range(len(before.members))
              for _ in range(before.processes)
          ),
          fold=1,
      ),
      is_one_process=False,
      in_a_row=in_a_row,
  )
  return None if index is None else before.members[index].host


def _too_few(names: Sequence[str], hosts: job_lib.Hosts) -> str:
  return (
      f'TOO FEW HOSTS: {len(names)} of {hosts.planned} are there '
      f'({", ".join(names) or "none"}) after {hosts.gather_seconds:.0f} s, '
      f'--min_hosts is {hosts.least}.\n'
      '  Start supervisors on other hosts with the same command, or lower '
      '--min_hosts to a number that divides --hosts; the run then goes on from '
      'its newest checkpoint.'
  )


def _told(
    seats: Sequence[str],
    before: Sequence[str],
    hosts: job_lib.Hosts,
    left_out: Sequence[str],
) -> str:
  """What changes in who takes part, for a person."""
  text = ''
  gone = [host for host in before if host not in seats]
  new = [host for host in seats if host not in before]
  if gone and len(seats) == len(before):
    text += f'; {", ".join(new)} takes over from {", ".join(gone)}'
  elif len(seats) < hosts.planned:
    text += (
        f'; {len(seats)} of {hosts.planned} hosts go on '
        f'({", ".join(seats)}), with the same batches, each taken apart into '
        f'{hosts.planned // len(seats)} times as many microbatches'
    )
  if left_out:
    text += f'; left out: {", ".join(left_out)}'
  return text


def members_told(agreed: rounds.Round) -> str:
  """Who takes part, for a person."""
  names = ', '.join(member.host for member in agreed.members)
  return (
      f'round {agreed.number} of {names}: {agreed.processes} process(es) each, '
      f'process 0 at {agreed.coordinator}'
  )
