# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What is started again, and what is not."""

import pytest

from t5wild.launch import failures
from t5wild.launch import restarts

_POLICY = restarts.Policy()


def _ended(kind=failures.UNKNOWN, *, step=5, kept=None, line='it broke'):
  failure = failures.Failure(kind=kind, code=1, line=line)
  return restarts.Ended(failure=failure, step=step, kept=kept)


@pytest.mark.parametrize('kind', failures.KINDS, ids=lambda kind: kind.name)
def test_a_first_end_is_restarted_as_its_kind_says(kind):
  decision = restarts.decide(_POLICY, [_ended(kind)])
  assert decision.restart == kind.restart
  assert decision.delay_seconds == 0


def test_a_users_mistake_is_not_restarted_and_its_line_is_told():
  decision = restarts.decide(_POLICY, [_ended(failures.USER_ERROR, line='x=1')])
  assert not decision.restart
  assert 'NOT RESTARTED' in decision.verdict and 'x=1' in decision.verdict


def test_the_same_error_at_the_same_step_ends_the_third_time():
  ends = [_ended(line=f'no {n}') for n in range(3)]
  assert restarts.decide(_POLICY, ends[:2]).restart
  decision = restarts.decide(_POLICY, ends)
  assert not decision.restart
  assert decision.verdict.startswith('CRASH LOOP: 3 times')
  assert 'at step 5' in decision.verdict and 'no 2' in decision.verdict


@pytest.mark.parametrize(
    'other', [_ended(step=6), _ended(line='else'), _ended(failures.DEVICE)]
)
def test_another_step_or_error_between_is_no_crash_loop(other):
  assert restarts.decide(_POLICY, [_ended(), other, _ended(), _ended()]).restart


def test_who_waits_for_a_lost_peer_is_in_no_crash_loop_but_not_for_ever():
  ends = [_ended(failures.LOST_PEER, step=None)] * 9
  assert restarts.decide(_POLICY, ends).restart
  assert not restarts.decide(_POLICY, ends + ends[:1]).restart


def test_with_the_detector_off_the_same_crash_goes_on():
  policy = restarts.Policy(crash_loop=1000, max_without_progress=1000)
  assert restarts.decide(policy, [_ended()] * 500).restart


def test_failures_of_all_kinds_without_a_newer_checkpoint_end_it():
  ends = [_ended(step=step, kept=40) for step in range(40, 50)]
  assert restarts.decide(_POLICY, ends[:9]).restart
  decision = restarts.decide(_POLICY, ends)
  assert not decision.restart
  assert 'NO PROGRESS: 10' in decision.verdict and 'step 40' in decision.verdict


def test_a_run_that_gains_a_checkpoint_each_time_goes_on_for_ever():
  ends = [_ended(step=step, kept=step) for step in range(0, 1000, 10)]
  decision = restarts.decide(_POLICY, ends)
  assert decision.restart
  assert decision.delay_seconds == 0


def test_delays_double_until_a_checkpoint_is_gained():
  policy = restarts.Policy(first_delay_seconds=1, max_delay_seconds=5)
  delays = []
  ends = []
  for step in range(6):
    ends.append(_ended(step=step))
    delays.append(restarts.decide(policy, ends).delay_seconds)
  assert delays == [0, 1, 2, 4, 5, 5]
  ends.append(_ended(step=9, kept=8))
  assert restarts.decide(policy, ends).delay_seconds == 0


def test_no_more_restarts_than_allowed():
  policy = restarts.Policy(max_restarts=1)
  assert restarts.decide(policy, [_ended()]).restart
  assert not restarts.decide(policy, [_ended(), _ended(step=6)]).restart


@pytest.mark.parametrize(
    ('argument', 'value'),
    [
        ('crash_loop', 1), ('max_without_progress', 0), ('max_restarts', -1),
        ('first_delay_seconds', -1.0), ('max_delay_seconds', 0.5),
    ],
)  # fmt: skip
def test_a_policy_that_makes_no_sense_is_refused_by_its_flag(argument, value):
  with pytest.raises(ValueError, match=f'--{argument}.*{value}.*expected'):
    restarts.Policy(**{argument: value})
