# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What is passed over, and only that, is left out of what a reader gives."""

import json

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from t5wild.data import passing_over
from tests.data import caches

_WINDOWS = st.lists(
    st.tuples(st.integers(1, 30), st.integers(0, 6)).map(
        lambda pair: (pair[0], pair[0] + pair[1])
    ),
    max_size=5,
)


class _Numbers:
  """Batches that say their number."""

  element_spec = {'n': ((1,), np.dtype(np.int64))}
  promise = ''
  is_exact = True

  def __init__(self):
    self._batches = 0

  def __next__(self):
    self._batches += 1
    return {'n': np.array([self._batches])}

  def state_dict(self):
    return {'kind': 'numbers', 'batches': self._batches}

  def load_state_dict(self, state):
    self._batches = state['batches']


def _take(reader, count):
  return [int(next(reader)['n'][0]) for _ in range(count)]


def _expected(windows, count):
  out = [
      n for n in range(1, 400) if not any(a <= n <= b for a, b in windows)
  ]
  return out[:count]


@hypothesis.given(_WINDOWS)
def test_batches_of_windows_are_left_out_and_no_others(windows):
  reader = passing_over.PassingReader(_Numbers(), windows)
  assert _take(reader, 50) == _expected(windows, 50)
  told = {
      n for one in reader.passed for n in range(one.first, one.last + 1)
  }
  assert told == {
      n for a, b in windows for n in range(a, b + 1) if n < _expected(
          windows, 50)[-1]
  }  # fmt: skip


@hypothesis.given(_WINDOWS, st.integers(0, 40))
def test_resumed_at_any_batch_the_rest_is_the_same(windows, cut):
  first = passing_over.PassingReader(_Numbers(), windows)
  found = _take(first, cut)
  second = passing_over.PassingReader(_Numbers(), windows)
  second.load_state_dict(json.loads(json.dumps(first.state_dict())))
  assert found + _take(second, 45 - cut) == _expected(windows, 45)


@hypothesis.given(_WINDOWS, st.integers(0, 40), st.integers(1, 20))
def test_number_of_a_batch_is_that_of_the_reader(windows, after, trained_on):
  merged = passing_over.merged(windows)
  reader = passing_over.PassingReader(_Numbers(), windows)
  reader.load_state_dict({'batches': after})
  assert (
      passing_over.number_of(merged, after=after, trained_on=trained_on)
      == _take(reader, trained_on)[-1]
  )


def test_a_window_added_later_is_passed_over_from_the_next_batch_on():
  reader = passing_over.PassingReader(_Numbers())
  assert _take(reader, 3) == [1, 2, 3]
  reader.load_state_dict({'batches': 1})
  reader.add_window(3, 4)
  assert _take(reader, 3) == [2, 5, 6]
  assert [(p.first, p.last) for p in reader.passed] == [(3, 4)]
  assert reader.passed[0].before['batches'] == 2
  assert reader.passed[0].after['batches'] == 4


@pytest.fixture(scope='module')
def cache(tmp_path_factory):
  root = tmp_path_factory.mktemp('cache')
  caches.write(root, caches.texts(60))
  return root


def test_cached_batches_after_a_window_are_those_of_the_whole(cache):
  whole = caches.batches(caches.reader(caches.config(cache)), 8)
  reader = passing_over.PassingReader(
      caches.reader(caches.config(cache)), [(3, 5)]
  )
  found = caches.batches(reader, 5)
  caches.assert_equal(
      caches.joined(found), caches.joined([*whole[:2], *whole[5:]])
  )
  assert reader.passed[0].after['batches'] == 5


def test_what_is_passed_over_is_no_step_of_the_run():
  class Stepping(_Numbers):
    steps = []

    def start_at(self, step):
      self.steps.append((self._batches, step))

  reader = passing_over.PassingReader(Stepping(), [(3, 5)], step=10)
  _take(reader, 4)
  assert Stepping.steps == [(5, 12)]  # two steps were trained since 10
  reader.load_state_dict({'batches': 2})
  reader.go_to(step=40)
  _take(reader, 1)
  assert Stepping.steps[1:] == [(5, 40)]


def test_messages_name_the_source_that_is_read():
  reader = _Numbers()
  assert passing_over.PassingReader(reader).source == '_Numbers'
  reader.source = 'the cache of letters'
  assert passing_over.PassingReader(reader).source == 'the cache of letters'
