# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A run that is killed, stopped or hindered goes on as if it never was."""

import json
import signal

import pytest

from t5wild import exit_codes
from tests.end_to_end import runs

pytestmark = pytest.mark.slow
_STEPS = 12


@pytest.fixture(scope='module')
def undisturbed(tmp_path_factory):
  folder = tmp_path_factory.mktemp('undisturbed') / 'run'
  assert runs.train(folder) == 0
  return folder


def test_a_run_leaves_what_a_user_looks_for(undisturbed):
  for name in (
      'config.gin', 'operative_config.gin', 'model-info.txt', 'metrics.jsonl'
  ):
    assert (undisturbed / name).stat().st_size, name
  assert (undisturbed / f'checkpoint_{_STEPS}').is_dir()
  assert list((undisturbed / 'train').glob('events.out.tfevents*'))
  names = {
      json.loads(line)['name']
      for line in (undisturbed / 'metrics.jsonl').open()
  }
  for name in (
      'train/loss', 'train/z_loss', 'train/accuracy', 'train/learning_rate',
      'train/loss_per_nonpadding_target_token', 'train/timing/step_seconds',
      'train/timing/data_wait_seconds', 'train/timing/device_seconds',
      'train/timing/other_seconds', 'train/timing/mfu',
      'train/timing/nonpadding_tokens_per_second',
      'train/timing/examples_per_second', 'train/timing/compile_seconds',
      'train/timing/init_or_restore_seconds',
      'train/timing/model_flops_per_second', 'train/weight_gradient_norm',
  ):
    assert name in names, name


@pytest.mark.parametrize('step', [3, 6, 9])
def test_losses_after_kill_9_are_the_same_bits(step, undisturbed, tmp_path):
  folder = tmp_path / 'run'
  with (tmp_path / 'killed.log').open('wb') as log:
    process = runs.start(folder, log=log)
    runs.wait_for_step(folder, step, process)
    process.kill()
    assert process.wait() == -signal.SIGKILL
  assert runs.train(folder) == 0
  assert runs.losses(folder) == runs.losses(undisturbed)


def test_sigterm_saves_and_says_restart_me(undisturbed, tmp_path):
  folder = tmp_path / 'run'
  with (tmp_path / 'stopped.log').open('wb') as log:
    process = runs.start(folder, log=log)
    runs.wait_for_step(folder, 5, process)
    process.terminate()
    assert process.wait(runs.TIMEOUT_SECONDS) == exit_codes.PREEMPTED.code
  assert exit_codes.PREEMPTED.restart
  stopped_at = max(runs.losses(folder))
  assert (folder / f'checkpoint_{stopped_at}').is_dir()
  assert runs.train(folder) == 0
  assert runs.losses(folder) == runs.losses(undisturbed)


def test_a_finished_run_started_again_trains_nothing(undisturbed):
  before = runs.losses(undisturbed)
  assert runs.train(undisturbed) == 0
  assert runs.losses(undisturbed) == before


def test_a_run_goes_on_when_another_mesh_takes_over(undisturbed, tmp_path):
  folder = tmp_path / 'run'
  # The last step of the first part is always saved.
  assert runs.train(folder, TRAIN_STEPS=6) == 0
  code = runs.train(
      folder,
      num_devices=4,
      partitioning__PjitPartitioner__num_partitions=2,
  )
  assert code == 0
  expected = runs.losses(undisturbed)
  assert runs.losses(folder) == pytest.approx(expected, rel=1e-5)
