# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The number of processes is a number: the same losses for each."""

import pytest

from tests import multiprocess
from tests.end_to_end import runs

pytestmark = [pytest.mark.slow, pytest.mark.multiprocess]


@pytest.fixture(scope='module')
def one_process_losses(tmp_path_factory):
  folder = tmp_path_factory.mktemp('one_process') / 'run'
  assert runs.train(folder, num_devices=4) == 0
  return runs.losses(folder)


@pytest.mark.parametrize('num_processes', [2, 4])
def test_losses_are_those_of_one_process(
    num_processes, one_process_losses, tmp_path
):
  folder = tmp_path / 'run'
  multiprocess.run_processes(
      runs.arguments(folder),
      num_processes=num_processes,
      devices_per_process=4 // num_processes,
      timeout=runs.TIMEOUT_SECONDS,
  )
  assert runs.losses(folder) == pytest.approx(one_process_losses, rel=1e-5)


def test_two_processes_resume_what_one_began(one_process_losses, tmp_path):
  folder = tmp_path / 'run'
  assert runs.train(folder, num_devices=4, TRAIN_STEPS=6) == 0
  multiprocess.run_processes(
      runs.arguments(folder),
      num_processes=2,
      devices_per_process=2,
      timeout=runs.TIMEOUT_SECONDS,
  )
  assert runs.losses(folder) == pytest.approx(one_process_losses, rel=1e-5)
