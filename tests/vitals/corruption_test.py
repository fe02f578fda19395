# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Who differs from a majority is named; where there is none, all suspects."""

import pytest

from t5wild.vitals import corruption

_DEVICES = [
    corruption.Device(name=f'cpu:{i}', process=i // 2, local=i % 2, host='h')
    for i in range(4)
]


def _sums(*bits):
  return {'w': [(b, float(b)) for b in bits]}


def _compare(*bits, groups=((0, 1, 2, 3),), **arguments):
  return corruption.compare(
      _sums(*bits), {'w': groups}, what='replicas', **arguments
  )


def test_replicas_alike_are_no_finding():
  assert _compare(7, 7, 7, 7) is None
  assert _compare(1, 2, 1, 2, groups=[(0, 2), (1, 3)]) is None


@pytest.mark.parametrize('row', range(4))
def test_one_that_differs_from_a_majority_is_named(row):
  bits = [7] * 4
  bits[row] = 8
  assert _compare(*bits).wrong == (row,)


def test_without_a_majority_all_of_the_group_are_suspects():
  finding = _compare(1, 5, 1, 2, groups=[(0, 2), (1, 3)])
  assert (finding.wrong, finding.suspects) == ((), (1, 3))
  assert _compare(1, 1, 2, 2).suspects == (0, 1, 2, 3)


def test_three_that_differ_in_three_ways_are_all_suspects():
  assert _compare(1, 2, 3, 0, groups=[(0, 1, 2)]).suspects == (0, 1, 2)


def test_parts_without_replicas_are_never_a_finding():
  groups = [(0,), (1,), (2,), (3,)]
  assert _compare(1, 2, 3, 4, groups=groups) is None
  assert corruption.num_with_replicas({'w': groups, 'v': [(0, 1)]}) == 1


def test_a_tolerance_lets_rounding_pass_and_not_more():
  sums = {'w': [(1, 1.0), (2, 1.0001), (3, 1.0)]}
  groups = {'w': [(0, 1, 2)]}
  assert corruption.compare(sums, groups, what='', tolerance=1e-3) is None
  finding = corruption.compare(sums, groups, what='', tolerance=1e-5)
  assert finding.wrong == (1,)


def test_a_device_that_differs_from_itself_is_named():
  finding = corruption.compare_runs(
      _sums(1, 2, 3, 4), _sums(1, 2, 9, 4), what='runs'
  )
  assert finding.wrong == (2,)
  assert not corruption.compare_runs(_sums(1, 2), _sums(1, 2), what='runs')


def test_the_message_begins_with_the_device_and_its_process():
  finding = corruption.Finding(what='replicas', wrong=(3,), arrays=('a', 'b'))
  told = corruption.message(
      finding, _DEVICES, step=40, agreed_step=30, quarantined=[35]
  )
  first = told.splitlines()[0]
  assert first.startswith('SILENT CORRUPTION after step 40')
  assert 'device 1 of process 1 on h (cpu:3)' in first
  assert 'agreed after step 30' in told and '[35]' in told
  assert 'Expected' in told


def test_suspects_are_not_called_wrong():
  finding = corruption.Finding(what='x', suspects=(0, 1), arrays=('a',))
  told = corruption.message(
      finding, _DEVICES, step=1, agreed_step=0, quarantined=[]
  )
  assert 'one of device 0' in told and 'no majority' in told


@pytest.mark.parametrize(
    ('check', 'step', 'budget', 'period'),
    [(0.1, 1.0, 1.0, 10), (0.1, 1.0, 10.0, 1), (0.0, 1.0, 1.0, 1),
     (0.25, 0.1, 1.0, 250)],
)  # fmt: skip
def test_the_period_keeps_the_budget(check, step, budget, period):
  found = corruption.period_of(
      check_seconds=check, step_seconds=step, budget_percent=budget
  )
  assert found == period
  assert check <= budget / 100 * step * found * (1 + 1e-9)


def test_serials_are_found_by_index_and_by_uuid():
  table = '0, 1654922006536, GPU-aa\n1, [N/A], GPU-bb\n'
  names = ['GPU-aa', '1', 'GPU-bb', '7']
  assert corruption.serials_in(table, names) == [
      '1654922006536', 'GPU-bb', 'GPU-bb', '',
  ]  # fmt: skip
