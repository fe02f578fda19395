# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Laws of the schedule of saves, evaluations and logs."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st
import pytest

from t5wild.trainer import cadence as cadence_lib

_PERIODS = st.none() | st.integers(1, 40)


@st.composite
def _cadences(draw):
  return cadence_lib.Cadence(
      total_steps=draw(st.integers(0, 200)),
      eval_period=draw(_PERIODS),
      stats_period=draw(_PERIODS),
      save_period=draw(_PERIODS),
      checkpoint_steps=draw(st.lists(st.integers(1, 200), max_size=4)),
  )


def _anything(due):
  return any(dataclasses.astuple(due))


@given(_cadences(), st.integers(1, 199))
def test_periods_do_not_need_each_other(cadence, step):
  due = cadence.due(step)
  if step >= cadence.total_steps:
    return
  for period, asked in (
      (cadence.eval_period, due.evaluate),
      (cadence.stats_period, due.log),
  ):
    assert asked == (period is not None and step % period == 0)
  assert due.save == (
      step in cadence.checkpoint_steps
      or (cadence.save_period is not None and step % cadence.save_period == 0)
  )


@given(_cadences())
def test_a_run_stops_exactly_at_its_total(cadence):
  stops = [s for s in range(1, 202) if cadence.due(s).stop]
  assert stops[0] == max(1, cadence.total_steps)


@given(_cadences())
def test_the_last_step_does_whatever_the_run_does(cadence):
  due = cadence.due(cadence.total_steps)
  assert due.log
  assert due.evaluate == (cadence.eval_period is not None)
  assert due.save == (
      cadence.save_period is not None or bool(cadence.checkpoint_steps)
  )


@given(_cadences(), st.integers(0, 199))
def test_next_due_skips_nothing_and_waits_for_nothing(cadence, step):
  upcoming = cadence.next_due(step)
  assert upcoming > step
  assert not any(_anything(cadence.due(s)) for s in range(step + 1, upcoming))
  assert _anything(cadence.due(upcoming))


@given(_cadences(), st.integers(0, 200))
def test_a_longer_run_has_the_same_schedule_before_the_end(cadence, more):
  longer = dataclasses.replace(
      cadence, total_steps=cadence.total_steps + more
  )
  for step in range(1, cadence.total_steps):
    assert longer.due(step) == cadence.due(step)


@pytest.mark.parametrize(
    'field', ['eval_period', 'stats_period', 'save_period']
)
def test_impossible_periods_are_refused(field):
  with pytest.raises(ValueError, match=f'{field} is 0, expected None'):
    cadence_lib.Cadence(total_steps=1, **{field: 0})


def test_negative_totals_are_refused():
  with pytest.raises(ValueError, match='total_steps is -1'):
    cadence_lib.Cadence(total_steps=-1)
