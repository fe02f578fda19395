# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A process that stood still is told from one that is busy; clocks are given.
"""

import time

import pytest

from t5wild.vitals import goodput
from t5wild.vitals import records
from t5wild.vitals import run_clock
from t5wild.vitals import stalls as stalls_lib


class _Clocks:
  """The three clocks of `stalls`, set by hand."""

  def __init__(self, monkeypatch):
    self.ran = self.boot = self.cpu = 100.0
    monkeypatch.setattr(stalls_lib.time, 'monotonic', lambda: self.ran)
    monkeypatch.setattr(stalls_lib.time, 'clock_gettime', lambda _: self.boot)
    monkeypatch.setattr(stalls_lib.time, 'process_time', lambda: self.cpu)

  def pass_by(self, seconds, *, cpu=0.0, suspended=0.0):
    self.ran += seconds
    self.boot += seconds + suspended
    self.cpu += cpu


@pytest.fixture
def clocks(monkeypatch):
  return _Clocks(monkeypatch)


@pytest.fixture
def ledger(clocks):
  return goodput.Ledger(clock=lambda: clocks.ran)


def test_a_late_poll_of_an_idle_process_is_a_stall_of_what_was_open(
    clocks, ledger
):
  stalls = stalls_lib.Stalls(ledger)
  with ledger.span('step'):
    clocks.pass_by(2)
  assert stalls.poll() == (2, None)
  with ledger.span('data_wait'):
    clocks.pass_by(60)
  # Upon waking the loop may be first, and in its next span already.
  with ledger.span('step'):
    gap, stall = stalls.poll()
    assert gap == 60 and stall.seconds == 60 and stall.kind == 'data_wait'
    assert 'SIGSTOP' in str(stall)
    booked = stalls.corrected(ledger.look())
  assert booked['stalled'] == 60 and booked['data_wait'] == 0
  assert booked['step'] == 2 and sum(booked.values()) == 62


def test_a_long_call_that_computes_is_no_stall(clocks, ledger):
  stalls = stalls_lib.Stalls(ledger)
  with ledger.span('compile'):
    clocks.pass_by(60, cpu=50)
  assert stalls.poll() == (60, None)
  assert stalls_lib.goodput.STALLED not in stalls.corrected(ledger.look())


def test_a_suspended_machine_is_told_and_adds_to_the_wall_time(clocks, ledger):
  stalls = stalls_lib.Stalls(ledger)
  with ledger.span('step'):
    clocks.pass_by(1, suspended=600)
    gap, stall = stalls.poll()
  assert gap == 601 and 'its machine was suspended' in str(stall)
  booked = stalls.corrected(ledger.look())
  assert booked['stalled'] == 601 and sum(booked.values()) == 601


def test_a_process_that_got_no_processor_is_told_from_one_that_was_stopped(
    clocks, ledger, monkeypatch
):
  queued = {'self': 1.0, 'thread-self': 0.0}
  monkeypatch.setattr(stalls_lib, '_queued', queued.__getitem__)
  stalls = stalls_lib.Stalls(ledger)
  with ledger.span('step'):
    clocks.pass_by(20)
    queued['self'] += 18.0
    _, stall = stalls.poll()
    assert stall.queued_seconds == 18 and 'got no processor' in str(stall)
    clocks.pass_by(20)
    queued['self'] += 0.5
    _, stall = stalls.poll()
  assert 'stopped from outside' in str(stall)


def test_a_thread_that_waits_for_a_processor_is_counted_by_the_system():
  assert stalls_lib._queued('self') >= 0.0
  assert stalls_lib._queued('no-such-thread') == 0.0


def test_stalls_add_up(clocks, ledger):
  stalls = stalls_lib.Stalls(ledger)
  for _ in range(3):
    with ledger.span('step'):
      clocks.pass_by(10)
      assert stalls.poll()[1] is not None
      clocks.pass_by(1)
      assert stalls.poll()[1] is None
  booked = stalls.corrected(ledger.look())
  assert (booked['stalled'], booked['step']) == (30, 3)


def test_the_clock_counts_suspended_time_where_the_system_can():
  if hasattr(time, 'CLOCK_BOOTTIME'):
    assert run_clock.STEADY == time.CLOCK_BOOTTIME


def test_what_others_stood_still_is_counted_once_and_not_what_0_did_too():
  def event(host, start, end, name=stalls_lib.EVENT):
    return records.Record(1, end, host, name, end - start, 'seconds', 'why')

  found = stalls_lib.of_others([
      event(1, 10, 20), event(2, 15, 30), event(0, 25, 40), event(1, 25, 50),
      event(3, 60, 70, name='watchdog/hang'),
  ])  # fmt: skip
  assert found == [(10, 20), (20, 25), (40, 50)]
