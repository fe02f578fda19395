# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What supervisors of several hosts agree on, without any."""

import dataclasses
import threading

import pytest

from t5wild import run_dir as run_dir_lib
from t5wild.launch import failures
from t5wild.launch import host_signs
from t5wild.launch import job as job_lib
from t5wild.launch import proposals
from t5wild.launch import restarts
from t5wild.launch import rounds

_SILENT = 10.0


def _sign(host, **changes) -> host_signs.HostSign:
  return host_signs.HostSign(
      host=host, incarnation=f'{host}1',
      **{'planned': 2, 'processes': 1, 'coordinator': f'{host}:1', **changes},
  )  # fmt: skip


def _seen(sign, *, age=0.0, has_changed=True) -> host_signs.Seen:
  return host_signs.Seen(sign=sign, age=age, has_changed=has_changed)


def _ended(kind=failures.KILLED, line='', **changes):
  ended = restarts.Ended(
      failure=failures.Failure(kind=kind, code=1, line=line), step=7, kept=5
  )
  return dataclasses.replace(ended, **changes)


def _told(host, kind=failures.LOST_PEER, *, at=1.0, number=1, line=''):
  """A host that has ended a round and waits for the next."""
  return _seen(
      _sign(
          host, knows=number, ended_at=at,
          ended=rounds.ended_to_json(_ended(kind, line)),
      )  # fmt: skip
  )


def _round(*hosts, number=1, **changes) -> rounds.Round:
  return rounds.Round(
      number=number, attempt=number, proposer=hosts[0],
      members=[rounds.Member(host=h, incarnation=f'{h}1') for h in hosts],
      **{'planned': 2, **changes},
  )  # fmt: skip


def _view(*seen, newest=None) -> proposals.View:
  return proposals.View(seen, newest=newest, silent_seconds=_SILENT)


def _propose(view, *, policy=None, **hosts) -> rounds.Round:
  return proposals.propose(
      view,
      proposer='a',
      hosts=job_lib.Hosts(
          **{'planned': 2, 'address': 'x', 'gather_seconds': 1.0, **hosts}
      ),
      policy=policy or restarts.Policy(),
      in_a_row=3,
      last_attempt=4,
  )


def _members(proposed) -> list[str]:
  return [member.host for member in proposed.members]


def test_the_first_round_seats_hosts_by_name_and_the_rest_are_spares():
  view = _view(*(_seen(_sign(host)) for host in 'cba'))
  proposed = _propose(view)
  assert _members(proposed) == ['a', 'b'] and proposed.coordinator == 'a:1'
  assert (proposed.number, proposed.attempt, proposed.fold) == (1, 5, 1)


@pytest.mark.parametrize(
    ('ready', 'before', 'planned', 'seats'),
    [
        ('acd', 'abc', 3, 'adc'),  # whoever had a seat keeps it
        ('acd', 'abcd', 4, 'ac'),  # three do not divide four
        ('cd', 'ac', 4, 'dc'),  # the idle one takes over
        ('abcd', 'ac', 4, 'acbd'),  # whole again
        ('b', 'ab', 2, 'b'),
        ('', 'ab', 2, ''),
    ],
)
def test_seats_are_kept_then_filled_and_divide_the_planned_number(
    ready, before, planned, seats
):
  found = rounds.seats_for(list(ready), before=list(before), planned=planned)
  assert ''.join(found) == seats


def test_no_round_is_due_while_a_host_still_runs_the_last():
  runs = _seen(_sign('b', knows=1, waits=False))
  assert _view(_told('a'), runs, newest=_round('a', 'b')).busy == ['b']
  silent = dataclasses.replace(runs, age=_SILENT + 1)
  assert not _view(_told('a'), silent, newest=_round('a', 'b')).busy


def test_a_file_that_nobody_saw_change_is_waited_for_and_not_counted_on():
  stale = _seen(_sign('b'), has_changed=False)
  assert [s.host for s in _view(_seen(_sign('a')), stale).ready] == ['a']
  runs = _seen(_sign('b', knows=1, waits=False), has_changed=False)
  assert _view(_told('a'), runs, newest=_round('a', 'b')).busy == ['b']


def test_members_of_the_last_round_propose_before_spares():
  view = _view(
      _seen(_sign('a', knows=1)), _told('b'), newest=_round('b', 'c')
  )
  assert (view.turn_of('b'), view.turn_of('a')) == (0, 1)
  assert view.turn_of('c') is None


def test_of_several_hosts_the_one_that_did_not_lose_a_peer_is_the_cause():
  view = _view(
      _told('a', failures.LOST_PEER, at=1.0),
      _told('b', failures.DATA, at=2.0, line='bad shard'),
      newest=_round('a', 'b'),
  )
  (ended,) = _propose(view).ends
  assert ended.failure.kind is failures.DATA and ended.kept == 5


def test_a_host_without_a_sign_or_with_another_supervisor_is_the_cause():
  alone = _view(_told('a'), newest=_round('a', 'b'))
  (ended,) = _propose(alone).ends
  assert ended.failure.kind is failures.LOST_HOST
  assert 'host b gave no sign' in ended.failure.line
  again = dataclasses.replace(_sign('b'), incarnation='b2', knows=1)
  proposed = _propose(_view(_told('a'), _seen(again), newest=_round('a', 'b')))
  assert 'host b has started anew' in proposed.ends[0].failure.line
  assert _members(proposed) == ['a', 'b'] and proposed.fold == 1


def test_a_users_mistake_on_one_host_ends_the_run_on_all():
  view = _view(
      _told('a'), _told('b', failures.USER_ERROR), newest=_round('a', 'b')
  )
  proposed = _propose(view)
  assert proposed.code == 1 and not proposed.members
  assert 'NOT RESTARTED' in proposed.text


def test_all_done_is_done():
  view = _view(
      *(_told(host, failures.DONE) for host in 'ab'), newest=_round('a', 'b')
  )
  proposed = _propose(view)
  assert proposed.text == 'The run is done.' and not proposed.members


def test_a_host_that_fails_each_time_is_left_out_for_a_spare():
  line = 'x differ on device 0 of process 1 on b'
  view = _view(
      _told('a'), _told('b', failures.DEVICE, line=line),
      _seen(_sign('c', knows=1)), newest=_round('a', 'b'),
  )  # fmt: skip
  proposed = _propose(view)
  assert _members(proposed) == ['a', 'c'] and proposed.left_out == ('b',)
  assert 'c takes over from b' in proposed.text
  # Nobody else is there: it is kept.
  assert _propose(view, least=2).left_out == ('b',)
  both = _view(
      _told('a'), _told('b', failures.DEVICE, line=line),
      newest=_round('a', 'b'),
  )  # fmt: skip
  assert _members(_propose(both, least=2)) == ['a', 'b']


def test_a_left_out_host_is_not_ready():
  view = _view(
      _told('a'), _seen(_sign('b', knows=1)),
      newest=_round('a', left_out=('b',)),
  )  # fmt: skip
  assert [sign.host for sign in view.ready] == ['a']


def test_hosts_that_come_and_go_are_no_crash_loop():
  newest = _round('a', 'b', ends=[_ended(failures.LOST_HOST, 'host b')] * 3)
  proposed = _propose(_view(_told('a'), newest=newest))
  assert proposed.code is None and len(proposed.ends) == 4


def test_a_new_start_of_all_hosts_begins_a_new_history():
  newest = _round('x', 'y', ends=[_ended()] * 2, left_out=('a',))
  new = _view(*(_seen(_sign(h, knows=1)) for h in 'bc'), newest=newest)
  proposed = _propose(new)
  assert not proposed.ends and not proposed.left_out
  assert proposed.number == 2 and _members(proposed) == ['b', 'c']


def test_rounds_come_back_from_their_file_and_only_one_of_two_wins(tmp_path):
  run_dir = run_dir_lib.RunDir(str(tmp_path))
  assert rounds.newest(run_dir) is None
  told = []
  first = _round('a', 'b', ends=[_ended()], seated_at=1, left_out=('c',))
  others = [dataclasses.replace(first, proposer=f'p{i}') for i in range(8)]
  threads = [
      threading.Thread(
          target=lambda one=one: told.append(rounds.agree(run_dir, one))
      )
      for one in others
  ]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert len({one.proposer for one in told}) == 1
  found = rounds.newest(run_dir)
  assert found == told[0]
  assert dataclasses.replace(found, proposer='a', left_out=('c',)) == first
  assert [p.name for p in (tmp_path / 'hosts' / 'rounds').iterdir()] == [
      'round_1.json'
  ]


def test_a_sign_ages_until_it_changes_and_not_while_nobody_looked(tmp_path):
  run_dir = run_dir_lib.RunDir(str(tmp_path))
  beacon = host_signs.Beacon(run_dir, _sign('a'))
  beacon.close()
  now = [0.0]
  onlooker = host_signs.Onlooker(run_dir, clock=lambda: now[0])
  (one,) = onlooker.look()
  assert (one.age, one.has_changed) == (0.0, False)
  now[0] = 3.0
  assert onlooker.look()[0].age == 3.0
  now[0] = 200.0  # this supervisor was stopped meanwhile
  assert onlooker.look()[0].age == 3.0
  beacon.tell(waits=False)
  now[0] = 201.0
  (one,) = onlooker.look()
  assert (one.age, one.has_changed, one.sign.waits) == (0.0, True, False)
