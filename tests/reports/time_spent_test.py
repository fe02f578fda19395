# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A run's wall time, booked over all its restarts."""

import pytest

from t5wild.reports import history as history_lib
from t5wild.reports import time_spent
from tests.reports import made_runs


def _spent(path, **kwargs):
  made_runs.make_run(path, **kwargs)
  return time_spent.time_spent(history_lib.read_history(str(path)))


def test_a_process_that_ended_in_order_is_booked_by_its_ledger(tmp_path):
  spent = _spent(tmp_path)
  assert not spent.is_estimate
  assert spent.seconds['step'] == 400
  assert spent.total_seconds == 500
  assert spent.productive_share == 0.8


def test_a_process_that_was_killed_is_booked_by_its_records(tmp_path):
  spent = _spent(tmp_path, faults=made_runs.Faults(is_cut=True))
  assert spent.is_estimate
  # 1000 steps of 0.5 to 0.52 s beside the 0.02 s that they wait for data.
  assert spent.seconds['data_wait'] == pytest.approx(20)
  assert 490 <= spent.seconds['step'] <= 510
  assert spent.seconds['compile'] == 12
  assert spent.seconds['evaluate'] == 40
  assert spent.seconds['save'] == pytest.approx(3)


def test_what_a_restart_costs_is_booked_as_down_and_done_again(tmp_path):
  faults = made_runs.Faults(
      killed_steps=(500,), resumed_steps=(300,), is_cut=True
  )
  spent = _spent(tmp_path, faults=faults)
  # An hour, less compiling and restoring, which are booked as such.
  assert spent.seconds[time_spent.DOWN] == pytest.approx(3600 - 15)
  assert spent.seconds[time_spent.AGAIN] == pytest.approx(200 * 0.53, rel=0.05)
  assert 480 <= spent.seconds['step'] <= 520


def test_a_run_that_tells_no_times_has_none(tmp_path):
  path = tmp_path / 'metrics.jsonl'
  path.write_text(
      '{"step":1,"seconds":2,"host":0,"name":"train/loss","value":2,"unit":""}'
      '\n'
  )
  history = history_lib.read_history(str(tmp_path))
  assert time_spent.time_spent(history) is None
