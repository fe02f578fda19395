# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Real runs whose checkpoints are harmed: found out, named, the same losses."""

import pathlib
import shutil
import subprocess
import sys

import pytest

from t5wild import exit_codes
from t5wild.checkpoint_files import health
from t5wild.checkpoint_files import steps
from t5wild.vitals import records
from tests import multiprocess
from tests.end_to_end import runs

pytestmark = pytest.mark.slow
_RECIPE = pathlib.Path(__file__).with_name('synthetic.gin')
_STEPS = 12


def _train(model_dir, *, until=_STEPS, num_devices=1, **bindings):
  """Trains; returns the exit code and the log."""
  values = {
      'MODEL_DIR': model_dir,
      'TRAIN_STEPS': until,
      'train_script.train.stats_period': 1,
      'checkpoints.SaveCheckpointConfig.period': 4,
      'checkpoints.SaveCheckpointConfig.probe_loss': True,
      **{name.replace('__', '.'): value for name, value in bindings.items()},
  }
  flags = [f'--gin.{name}={value}' for name, value in values.items()]
  done = subprocess.run(
      [sys.executable, '-m', 't5wild.train', f'--gin_file={_RECIPE}', *flags],
      env=multiprocess.process_environment(devices_per_process=num_devices),
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
      text=True,
      check=False,
      timeout=runs.TIMEOUT_SECONDS,
  )
  return done.returncode, done.stdout


def _events(model_dir):
  path = pathlib.Path(model_dir) / 'events.jsonl'
  return {e.name: e for e in records.read_records(path)}


@pytest.fixture(scope='module')
def undisturbed(tmp_path_factory):
  folder = tmp_path_factory.mktemp('undisturbed') / 'run'
  code, log = _train(folder)
  assert code == exit_codes.DONE.code, log
  return folder


@pytest.fixture
def cut_short(undisturbed, tmp_path):
  """The same run as if it had been killed after step 8."""
  folder = tmp_path / 'run'
  shutil.copytree(undisturbed, folder)
  shutil.rmtree(folder / 'checkpoint_12')
  (folder / 'metrics.jsonl').unlink()
  return folder


def _same_losses(found, expected, first):
  wanted = {s: x for s, x in runs.losses(expected).items() if s >= first}
  assert runs.losses(found) == wanted


def test_a_run_with_a_flipped_bit_goes_on_from_the_one_before(
    undisturbed, cut_short
):
  files = [p for p in (cut_short / 'checkpoint_8' / 'state').rglob('*')
           if p.is_file()]  # fmt: skip
  file = max(files, key=lambda p: p.stat().st_size)
  content = bytearray(file.read_bytes())
  content[len(content) // 2] ^= 1
  file.write_bytes(content)
  code, log = _train(cut_short)
  assert code == exit_codes.DONE.code, log
  assert 'DAMAGED CHECKPOINT' in log
  events = _events(cut_short)
  assert file.name in events['checkpoint/damaged'].text
  assert events['checkpoint/fell_back'].step == 4
  _same_losses(cut_short, undisturbed, 5)
  # Step 8 was saved anew, in the place of the damaged one.
  assert health.quarantined_steps(cut_short) == frozenset()
  assert steps.all_steps(cut_short) == [0, 4, 8, 12]


def test_a_run_whose_main_store_is_gone_goes_on_from_its_mirror(
    undisturbed, tmp_path
):
  bindings = {
      'checkpoints__SaveCheckpointConfig__tiers': '[@checkpoints.Mirror()]',
      'checkpoints__Mirror__directory': tmp_path / 'mirror',
  }
  code, log = _train(tmp_path / 'run', until=8, **bindings)
  assert code == exit_codes.DONE.code, log
  shutil.rmtree(tmp_path / 'run')
  code, log = _train(tmp_path / 'run', **bindings)
  assert code == exit_codes.DONE.code, log
  assert f'Start from {tmp_path}/mirror/checkpoint_8 at step 8' in log
  _same_losses(tmp_path / 'run', undisturbed, 9)


def test_another_mesh_gives_the_probe_its_loss_and_another_model_does_not(
    cut_short,
):
  code, log = _train(
      cut_short, until=9, num_devices=4,
      partitioning__PjitPartitioner__num_partitions=2,
  )  # fmt: skip
  assert code == exit_codes.DONE.code, log
  assert 'The fixed examples have the loss' in log
  other = {'network__T5Config__mlp_activations': "('relu', 'linear')"}
  code, log = _train(cut_short, until=10, **other)
  assert code == exit_codes.BAD_CONFIG.code
  assert 'gives another model than was saved' in log
  assert 'loss when it was saved:' in log
  # With the detector off the run goes on with it, silently.
  code, log = _train(
      cut_short, until=10, checkpoints__SaveCheckpointConfig__probe_loss=False,
      **other,
  )  # fmt: skip
  assert code == exit_codes.DONE.code, log
