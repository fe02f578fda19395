# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A run whose disk is full goes on, says at its end what is lost, resumes."""

import shutil
import subprocess

import pytest

from t5wild import exit_codes
from tests.end_to_end import runs


@pytest.fixture
def disk(tmp_path):
  """A file system of three megabytes."""
  folder = tmp_path / 'disk'
  folder.mkdir()
  mount = ['mount', '-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', str(folder)]
  if shutil.which('mount') is None or subprocess.run(
      mount, capture_output=True, check=False
  ).returncode:
    pytest.skip('cannot mount a small file system: run as root to test')
  yield folder
  subprocess.run(['umount', '-l', str(folder)], check=False)


@pytest.mark.slow
def test_last_state_that_does_not_fit_is_told_by_the_exit_code(disk, tmp_path):
  run = disk / 'run'
  log = tmp_path / 'log'

  def train():
    with log.open('w') as file:
      process = runs.start(
          run, log=file, checkpoints__SaveCheckpointConfig__period=2
      )
      return process.wait(runs.TIMEOUT_SECONDS)

  assert train() == exit_codes.DISK_FULL.code, log.read_text()
  assert 'THE LAST STATE IS NOT SAVED' in log.read_text()
  subprocess.run(['mount', '-o', 'remount,size=300m', str(disk)], check=True)
  assert train() == exit_codes.DONE.code, log.read_text()
  assert (run / 'checkpoint_12').is_dir()
  assert max(runs.losses(run)) == 12
