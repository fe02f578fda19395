# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A drill on a supervised process of a few lines."""

import random
import subprocess
import sys
import time

import pytest

from t5wild import run_dir as run_dir_lib
from t5wild.launch import drill
from t5wild.vitals import heartbeats

# Counts steps of 10 ms and leaves signs of life, as training does.
_TRAINING = """
import sys, time
from t5wild import run_dir
from t5wild.vitals import goodput, watchdog
watchdog._SIGN_SECONDS = 0.05
ledger = goodput.Ledger()
with watchdog.Watchdog(run_dir.RunDir('/nowhere'), ledger=ledger) as dog:
  for step in range(1, 3000):
    with ledger.span('step'):
      time.sleep(0.01)
    dog.beat(step)
"""


@pytest.fixture
def run_dir(tmp_path):
  """A supervised run; ended with the test."""
  found = run_dir_lib.RunDir(str(tmp_path / 'run'))
  supervisor = subprocess.Popen(
      [
          sys.executable, '-m', 't5wild.cli', 'supervise', '--stop_seconds=1',
          '--grace_seconds=0.1', f'--node_ledger={tmp_path / "nodes"}',
          f'--run_dir={found.path}', '--', sys.executable, '-c', _TRAINING,
      ],
      stderr=subprocess.DEVNULL,
  )  # fmt: skip
  deadline = time.monotonic() + 30
  while not any(s.step > 3 for s in heartbeats.read_all(found)):
    assert time.monotonic() < deadline
    time.sleep(0.02)
  yield found
  supervisor.terminate()
  supervisor.wait(20)


def test_a_kill_is_seen_and_the_run_goes_on(run_dir):
  result = drill.harm(
      run_dir, 'kill', rng=random.Random(0), timeout_seconds=30
  )
  assert 0 <= result.detected_seconds < 2
  assert result.detected_seconds < result.next_step_seconds < 20
  # This one saves nothing, so it loses all.
  assert result.lost_steps >= result.step > 0


def test_a_run_that_does_not_recover_is_told(run_dir):
  with pytest.raises(TimeoutError, match='kill of process 0.*expected'):
    drill.harm(
        run_dir, 'kill', rng=random.Random(0), timeout_seconds=0.3,
        send=lambda pid, number: None,
    )  # fmt: skip


def test_where_nothing_runs_there_is_nothing_to_harm(tmp_path):
  with pytest.raises(drill.NoRunError, match='expected a run under'):
    drill.living(run_dir_lib.RunDir(str(tmp_path)))
