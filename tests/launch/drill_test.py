# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A drill on a supervised process of a few lines."""

import dataclasses
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


@pytest.mark.parametrize('fault', ['flip', 'truncate'])
def test_the_newest_checkpoints_largest_file_is_harmed(fault, tmp_path):
  run_dir = run_dir_lib.RunDir(str(tmp_path))
  whole = bytes(range(200))
  for step in (2, 10):
    folder = tmp_path / f'checkpoint_{step}' / 'state'
    folder.mkdir(parents=True)
    (folder / 'small').write_bytes(b'x')
    (folder / 'arrays').write_bytes(whole)
  path = drill.largest_file(run_dir)
  assert path == str(tmp_path / 'checkpoint_10' / 'state' / 'arrays')
  drill.harm_file(path, fault, rng=random.Random(0))
  with open(path, 'rb') as file:
    harmed = file.read()
  if fault == 'truncate':
    assert harmed == whole[:100]
  else:
    changed = [a ^ b for a, b in zip(harmed, whole, strict=True) if a != b]
    assert len(changed) == 1 and changed[0].bit_count() == 1


def test_without_a_checkpoint_there_is_none_to_harm(tmp_path):
  with pytest.raises(drill.NoRunError, match='has no checkpoint.*expected'):
    drill.largest_file(run_dir_lib.RunDir(str(tmp_path)))


def test_the_table_has_a_row_for_each_fault():
  one = drill.Result(
      fault='term', process=1, step=7, detected_seconds=None,
      next_step_seconds=3.21, lost_steps=0,
  )  # fmt: skip
  told = drill.table([one, dataclasses.replace(one, detected_seconds=0.5)])
  assert told.splitlines()[2:] == [
      '| term | 1 | 7 | - | 3.2 s | 0 |',
      '| term | 1 | 7 | 0.5 s | 3.2 s | 0 |',
  ]
