# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A run's records are in the order of time, whatever the machine's clock says.
"""

import os
import socket
import time

import pytest

from t5wild import run_dir as run_dir_lib
from t5wild import training_claim
from t5wild.vitals import heartbeats
from t5wild.vitals import records
from t5wild.vitals import run_clock
from t5wild.vitals import supervised

_HOUR = 3600.0


@pytest.fixture(name='run_dir')
def _run_dir(tmp_path):
  return run_dir_lib.RunDir(str(tmp_path))


def _machine_is(monkeypatch, seconds):
  """Sets this machine's clock, for this process."""
  real = time.time
  monkeypatch.setattr(time, 'time', lambda: real() + seconds)


def _write(path, seconds):
  writer = records.RecordWriter(path)
  writer.write([
      records.Record(step, dated, 0, 'train/loss', 1.0)
      for step, dated in enumerate(seconds)
  ])
  writer.close()


@pytest.mark.parametrize('seconds', [-_HOUR, _HOUR])
def test_a_clock_that_is_set_under_a_run_changes_no_date(
    seconds, run_dir, monkeypatch
):
  run_clock.start(run_dir)
  before = run_clock.now()
  _machine_is(monkeypatch, seconds)
  assert before <= run_clock.now() < before + 60


def test_a_run_resumed_with_the_clock_behind_goes_on_after_its_records(
    run_dir, monkeypatch
):
  now = time.time()
  _write(run_dir.metrics_jsonl, [now - 10, now - 5])
  _write(run_dir.events_jsonl, [now - 3, float('nan')])
  _machine_is(monkeypatch, -_HOUR)
  with training_claim.held(run_dir):
    assert now - 3 <= run_clock.now() < now + 60
  _machine_is(monkeypatch, 3 * _HOUR)  # and ahead of them it is believed
  with training_claim.held(run_dir):
    assert now + _HOUR < run_clock.now()


def _supervised(**changes):
  fields = {
      'attempt': 1, 'start': time.time() - 5, 'supervisor': os.getpid(),
      'host': socket.gethostname(), 'label': 'h', 'folder': '/nowhere',
      'steady': run_clock.steady() - 5, 'ahead': run_clock.ahead(),
  }  # fmt: skip
  return supervised.Supervised(**fields | changes)


def test_a_clock_set_between_supervisor_and_process_changes_neither(
    run_dir, monkeypatch
):
  told = _supervised()
  before = run_clock.now()
  _machine_is(monkeypatch, 5 * _HOUR)
  environment = told.to_environment()
  assert supervised.take_age(environment) == pytest.approx(5, abs=4)
  assert supervised.take_age(environment) is None
  run_clock.start(run_dir, ahead=told.clock_ahead)
  assert before <= run_clock.now() < before + 60


def test_another_machines_steady_clock_is_not_asked():
  told = _supervised(host='elsewhere', steady=1.0)
  assert told.clock_ahead is None
  assert supervised.take_age(told.to_environment()) == pytest.approx(5, abs=4)


@pytest.mark.parametrize('ahead', [-_HOUR, _HOUR])
def test_what_a_run_would_record_now_is_told_by_its_signs_of_life(
    ahead, run_dir
):
  now = time.time()
  assert heartbeats.runs_now(run_dir, now=now) == now
  sign = heartbeats.Heartbeat(
      process=0, host='h', pid=1, attempt=0, supervisor=0, count=1,
      seconds=now - 7, first_step=0, step=3, phase='step', phase_seconds=0.0,
      dated=now - 7 + ahead,
  )  # fmt: skip
  heartbeats.write(run_dir, sign)
  assert heartbeats.runs_now(run_dir, now=now) == pytest.approx(now + ahead)


@pytest.fixture(autouse=True)
def _clock_as_before():
  yield
  run_clock._clock.start()
