# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A run whose disk is full goes on, says at its end what is lost, resumes."""

import pytest

from t5wild import exit_codes
from tests import small_disk
from tests.end_to_end import runs


@pytest.fixture
def disk(tmp_path):
  with small_disk.mounted(tmp_path / 'disk', megabytes=3) as folder:
    yield folder


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
  small_disk.grow(disk, megabytes=300)
  assert train() == exit_codes.DONE.code, log.read_text()
  assert (run / 'checkpoint_12').is_dir()
  assert max(runs.losses(run)) == 12
