# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The time ledger: every second is booked once."""

import threading

from hypothesis import given
from hypothesis import strategies as st
import pytest

from t5wild.vitals import goodput


class _Clock:
  def __init__(self):
    self.now = 100.0

  def __call__(self):
    return self.now


def test_an_inner_span_is_not_booked_to_the_outer_one():
  clock = _Clock()
  ledger = goodput.Ledger(clock=clock)
  clock.now += 1
  with ledger.span('evaluate'):
    clock.now += 10
    with ledger.span('compile'):
      clock.now += 100
    clock.now += 1000
  seconds = ledger.seconds()
  assert seconds['other'] == 1
  assert seconds['evaluate'] == 1010
  assert seconds['compile'] == 100


@given(
    st.lists(
        st.tuples(st.sampled_from(goodput.KINDS), st.integers(0, 1000)),
        max_size=20,
    ),
    st.integers(0, 1000),
)
def test_the_kinds_add_up_to_the_wall_time(spans, gap):
  clock = _Clock()
  ledger = goodput.Ledger(clock=clock)
  for kind, length in spans:
    with ledger.span(kind):
      clock.now += length
    clock.now += gap
  assert sum(ledger.seconds().values()) == clock.now - 100


def test_a_span_is_closed_by_an_error():
  clock = _Clock()
  ledger = goodput.Ledger(clock=clock)
  with pytest.raises(KeyError), ledger.span('save'):
    clock.now += 3
    raise KeyError
  clock.now += 4
  assert ledger.seconds()['save'] == 3
  assert ledger.seconds()['other'] == 4


def test_take_gives_each_second_once():
  clock = _Clock()
  ledger = goodput.Ledger(clock=clock)
  with ledger.span('step'):
    clock.now += 5
  assert ledger.take()['step'] == 5
  with ledger.span('step'):
    clock.now += 7
  assert ledger.take()['step'] == 7
  assert ledger.seconds()['step'] == 12


def test_goodput_is_the_share_of_steps():
  clock = _Clock()
  ledger = goodput.Ledger(clock=clock, start=90.0)
  with ledger.span('step'):
    clock.now += 30
  assert ledger.goodput() == pytest.approx(0.75)
  names = {r.name for r in ledger.records(step=1, host=0, now=0.0)}
  assert {'goodput/fraction', 'goodput/step_seconds'} <= names


def test_seconds_known_from_elsewhere_are_moved_not_added():
  clock = _Clock()
  ledger = goodput.Ledger(clock=clock)
  clock.now += 10
  ledger.add('compile', 4.0)
  assert ledger.seconds()['compile'] == 4
  assert ledger.seconds()['other'] == 6


def test_a_misspelt_kind_is_refused_with_the_near_one():
  ledger = goodput.Ledger()
  wrong = pytest.raises(ValueError, match="'data_wiat'.*mean 'data_wait'")
  with wrong, ledger.span('data_wiat'):
    pass


def test_a_span_on_another_thread_is_refused():
  ledger = goodput.Ledger()
  errors = []

  def work():
    try:
      with ledger.span('step'):
        pass
    except RuntimeError as error:
      errors.append(str(error))

  thread = threading.Thread(target=work)
  thread.start()
  thread.join()
  assert len(errors) == 1 and 'ledger of its own' in errors[0]
