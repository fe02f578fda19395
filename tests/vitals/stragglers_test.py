# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A rank is called slow when it is, by name, once."""

from t5wild.vitals import stragglers


def _told(series, **arguments):
  judge = stragglers.Stragglers(**arguments)
  return [[one.rank for one in judge.add(times)] for times in series]


def test_the_slow_rank_is_named_once_it_stays_slow():
  slow = {'a': 0.010, 'b': 0.011, 'c': 0.030}
  assert _told([slow] * 5) == [[], [], ['c'], [], []]


def test_the_slowest_comes_first():
  times = {'a': 0.01, 'b': 0.02, 'c': 0.01, 'd': 0.05, 'e': 0.01}
  assert _told([times] * 3)[-1] == ['d', 'b']


def test_of_two_ranks_the_slower_is_told_from_the_other():
  assert _told([{'a': 0.01, 'b': 0.02}] * 3)[-1] == ['b']


def test_a_rank_that_is_slow_now_and_then_is_no_straggler():
  slow, even = {'a': 0.01, 'b': 0.03}, {'a': 0.01, 'b': 0.01}
  assert not any(_told([slow, slow, even] * 5))


def test_one_that_recovers_and_lags_again_is_told_again():
  slow, even = {'a': 0.01, 'b': 0.03}, {'a': 0.01, 'b': 0.01}
  assert sum(map(len, _told([*[slow] * 4, even, *[slow] * 4]))) == 2


def test_ranks_alike_and_differences_of_nothing_are_no_stragglers():
  assert not any(_told([{'a': 0.010, 'b': 0.012}] * 9))
  assert not any(_told([{'a': 1e-5, 'b': 9e-5}] * 9))  # below a millisecond
  assert not any(_told([{'a': 0.5}] * 9))


def test_with_the_detector_off_the_slow_rank_goes_unnoticed():
  assert not any(_told([{'a': 0.01, 'b': 0.03}] * 9, least_ratio=1e9))
