# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""One training at a time in a MODEL_DIR."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from t5wild import folder_lock
from t5wild import run_dir as run_dir_lib
from t5wild import training_claim
from t5wild import training_plan
from t5wild.vitals import supervised

_HOLD = """
import sys, time
from t5wild import folder_lock
with folder_lock.held(sys.argv[1], wait_seconds=0, say=print):
  print('held', flush=True)
  time.sleep(600)
"""


@pytest.fixture
def run_dir(tmp_path):
  return run_dir_lib.RunDir(str(tmp_path / 'run'))


@pytest.fixture
def other(run_dir):
  """Another process that trains there."""
  os.makedirs(run_dir.path)
  process = subprocess.Popen(
      [sys.executable, '-c', _HOLD, run_dir.training_lock],
      stdout=subprocess.PIPE, text=True,
  )  # fmt: skip
  assert process.stdout.readline() == 'held\n'
  yield process
  process.kill()
  process.wait()
  process.stdout.close()


def test_a_second_training_in_a_folder_is_refused_and_told_the_first(
    run_dir, other, monkeypatch
):
  monkeypatch.setattr(training_claim, '_WAIT_SECONDS', 0.2)
  with (
      pytest.raises(training_plan.BadPlanError, match='one training') as told,
      training_claim.held(run_dir),
  ):
    raise AssertionError('both train')
  assert f'pid {other.pid} on ' in str(told.value)
  assert 'MODEL_DIR' in str(told.value)


def test_under_a_supervisor_the_same_may_be_tried_again(
    run_dir, other, monkeypatch
):
  told = supervised.Supervised(
      attempt=2, start=0.0, supervisor=1, host='a', label='a', folder='x'
  )
  monkeypatch.setenv(*next(iter(told.to_environment().items())))
  monkeypatch.setattr(training_claim, '_WAIT_SECONDS', 0.2)
  with pytest.raises(folder_lock.TakenError), training_claim.held(run_dir):
    raise AssertionError('both train')


def test_it_waits_for_the_first_to_leave_however_that_ends(run_dir, other):
  killer = threading.Timer(0.5, other.send_signal, [signal.SIGKILL])
  killer.start()
  with training_claim.held(run_dir):
    assert other.wait() == -signal.SIGKILL
  killer.join()


def test_a_run_is_free_after_its_training_and_each_has_its_own(tmp_path):
  one, two = (run_dir_lib.RunDir(f'{tmp_path}/{name}') for name in 'ab')
  with training_claim.held(one), training_claim.held(two):
    pass
  with training_claim.held(one):
    pass


def test_a_mount_without_locks_is_told_and_no_reason_to_end(
    run_dir, monkeypatch
):
  def refuse(*unused):
    raise OSError(38, 'Function not implemented')

  monkeypatch.setattr(folder_lock.fcntl, 'flock', refuse)
  told = []
  os.makedirs(run_dir.path)
  with folder_lock.held(
      run_dir.training_lock, wait_seconds=0, say=told.append
  ):
    pass
  assert 'cannot be locked' in told[0] and 'not implemented' in told[0]


def test_a_bucket_is_trained_in_without_a_lock(monkeypatch):
  monkeypatch.setattr(folder_lock, 'held', None)
  with training_claim.held(run_dir_lib.RunDir('gs://bucket/run')):
    pass
