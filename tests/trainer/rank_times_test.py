# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Times of ranks travel with the signs of life; process 0 names the slow."""

import dataclasses
import time

import pytest

from t5wild import run_dir as run_dir_lib
from t5wild.trainer import loop
from t5wild.trainer import rank_times
from t5wild.vitals import heartbeats
from t5wild.vitals import records

_SIGN = heartbeats.Heartbeat(
    process=0, host='here', pid=1, attempt=0, supervisor=0, count=1,
    seconds=0.0, first_step=0, step=5, phase='step', phase_seconds=0.1,
)  # fmt: skip


def _interval(seconds=1.0, device_wait=0.8):
  return loop.Interval(
      metrics={}, num_steps=2, seconds=seconds, data_wait_seconds=0.0,
      device_wait_seconds=device_wait, dispatch_seconds=0.1,
      off_loop_seconds=0.0,
  )  # fmt: skip


@pytest.fixture
def opened(tmp_path, monkeypatch):
  monkeypatch.setattr(rank_times, '_JUDGE_PERIOD_SECONDS', 0.0)
  told, events = [], []
  times = rank_times.RankTimes(
      run_dir_lib.RunDir(str(tmp_path)),
      tell=lambda *pair: told.append(pair),
      add_event=lambda name, **fields: events.append((name, fields)),
  )
  return times, told, events


def test_a_process_tells_how_long_its_loop_was_busy_a_step(opened, tmp_path):
  times, told, _ = opened
  times.log(2, _interval())
  times.close()
  assert told[0][0] == pytest.approx(0.1)
  found = list(records.read_records(tmp_path / 'metrics.jsonl'))
  assert [(one.step, one.name) for one in found] == [
      (2, 'train/timing/host_seconds')
  ]


def test_the_same_work_is_timed_on_the_devices_now_and_then(
    opened, monkeypatch
):
  times, told, _ = opened
  monkeypatch.setattr(rank_times, '_PROBE_PERIOD_SECONDS', 0.0)
  times.log(2, _interval())
  times.log(4, _interval())
  times.close()
  assert told[0][1] is None  # the first one only loads it
  assert told[1][1] > 0


@pytest.mark.parametrize('kind', ['host_seconds', 'device_seconds'])
def test_the_slow_process_is_named(kind, opened, tmp_path):
  times, _, events = opened
  run_dir = run_dir_lib.RunDir(str(tmp_path))
  for count in range(4):
    for process, seconds in enumerate((0.010, 0.011, 0.090)):
      heartbeats.write(
          run_dir,
          dataclasses.replace(
              _SIGN, process=process, seconds=time.time(),
              **{kind: seconds + 1e-6 * count},
          ),
      )  # fmt: skip
    times._judge_ranks(2 * count)
  times.close()
  ((name, fields),) = events
  assert name == 'straggler'
  assert 'process 2 on here takes 90.0 ms' in fields['text']


def test_signs_of_processes_that_are_gone_are_not_judged(opened, tmp_path):
  times, _, events = opened
  run_dir = run_dir_lib.RunDir(str(tmp_path))
  for process, seconds in enumerate((0.01, 0.09)):
    heartbeats.write(
        run_dir,
        dataclasses.replace(
            _SIGN, process=process, host_seconds=seconds,
            seconds=time.time() - 1000 * process,
        ),
    )  # fmt: skip
  for step in range(6):
    times._told.clear()
    times._judge_ranks(step)
  times.close()
  assert not events


def test_steps_that_take_longer_are_told(opened):
  times, _, events = opened
  for step in range(1, 20):
    times.log(step, _interval())
  times.log(20, _interval(seconds=9.0, device_wait=8.8))
  times.close()
  ((name, fields),) = events
  assert (name, fields['step']) == ('slow_steps', 20)
  assert 'usual 500.0 ms' in fields['text']
