# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A run whose MODEL_DIR is on a server of S3, which may go away for a while."""

import contextlib
import json
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from t5wild import exit_codes
from t5wild.checkpoint_files import steps as steps_lib
from tests import multiprocess
from tests import s3_server
from tests.end_to_end import binaries

s3_server.skip_without_its_packages()
pytestmark = pytest.mark.slow
_RECIPE = pathlib.Path(__file__).with_name('synthetic.gin')
_TIMEOUT_SECONDS = 240
_STEPS = 8
_BUCKET = s3_server.BUCKET


@pytest.fixture(scope='module')
def server():
  with s3_server.running() as served:
    yield served


def _losses(server, run: str) -> dict[int, float]:
  lines = server.read(f'{run}/metrics.jsonl').splitlines()
  records = map(json.loads, lines)
  return {r['step']: r['value'] for r in records if r['name'] == 'train/loss'}


@contextlib.contextmanager
def _started(model_dir: str, *, log: pathlib.Path, **bindings):
  """A training run in its own process, killed if it is still there after."""
  values = {
      'MODEL_DIR': model_dir,
      'TRAIN_STEPS': _STEPS,
      'train_script.train.stats_period': 1,
      'checkpoints.SaveCheckpointConfig.period': 2,
      **{name.replace('__', '.'): value for name, value in bindings.items()},
  }
  flags = [f'--gin.{name}={value}' for name, value in values.items()]
  with log.open('ab') as file:
    process = subprocess.Popen(
        [sys.executable, '-m', 't5wild.train', f'--gin_file={_RECIPE}', *flags],
        env=multiprocess.process_environment(devices_per_process=1),
        stdout=file,
        stderr=subprocess.STDOUT,
    )
    try:
      yield process
    finally:
      process.kill()
      process.wait()


def _train(model_dir: str, *, log: pathlib.Path, **bindings) -> int:
  with _started(model_dir, log=log, **bindings) as process:
    return process.wait(_TIMEOUT_SECONDS)


def _wait_until(is_so, process) -> None:
  deadline = time.monotonic() + _TIMEOUT_SECONDS
  while time.monotonic() < deadline and process.poll() is None:
    if is_so():
      return
    time.sleep(0.02)
  raise AssertionError(f'it never came, the process says {process.poll()}')


@pytest.fixture(scope='module')
def undisturbed(server, tmp_path_factory):
  log = tmp_path_factory.mktemp('undisturbed') / 'log'
  code = _train(
      f's3://{_BUCKET}/undisturbed', log=log,
      checkpoints__SaveCheckpointConfig__keep=2,
  )  # fmt: skip
  assert code == exit_codes.DONE.code, log.read_text()
  return 'undisturbed'


def test_a_run_leaves_in_its_bucket_what_it_leaves_in_a_folder(
    undisturbed, server
):
  for name in (
      'config.gin', 'operative_config.gin', 'model-info.txt', 'metrics.jsonl',
      'train/events.out.tfevents',
  ):
    assert server.names(f'{undisturbed}/{name}'), name
  assert sorted(_losses(server, undisturbed)) == list(range(1, _STEPS + 1))
  kept = steps_lib.all_steps(f's3://{_BUCKET}/{undisturbed}')
  assert kept == [_STEPS - 2, _STEPS]
  assert not server.names(f'{undisturbed}/checkpoint_2')


def test_a_save_in_a_bucket_killed_half_way_is_resumed_with_the_same_losses(
    undisturbed, server, tmp_path
):
  log = tmp_path / 'log'
  run = 'killed'

  def is_half_saved():
    names = server.names(f'{run}/checkpoint_4/')
    return names and not any(steps_lib.COMMIT_MARKER in n for n in names)

  with _started(f's3://{_BUCKET}/{run}', log=log) as process:
    _wait_until(is_half_saved, process)
    process.kill()
    assert process.wait() == -signal.SIGKILL
  assert is_half_saved()
  assert _train(f's3://{_BUCKET}/{run}', log=log) == 0, log.read_text()
  assert f'Start from s3://{_BUCKET}/{run}/checkpoint_2' in log.read_text()
  expected = _losses(server, undisturbed)
  found = _losses(server, run)
  assert {s: found[s] for s in range(3, _STEPS + 1)} == {
      s: expected[s] for s in range(3, _STEPS + 1)
  }
  assert _STEPS in steps_lib.all_steps(f's3://{_BUCKET}/{run}')


def test_a_run_starts_from_a_checkpoint_in_a_bucket(
    undisturbed, server, tmp_path
):
  log = tmp_path / 'log'
  code = _train(
      tmp_path / 'run',
      log=log,
      TRAIN_STEPS=_STEPS + 1,
      checkpoints__CheckpointConfig__restore=(
          '@checkpoints.RestoreCheckpointConfig()'
      ),
      checkpoints__RestoreCheckpointConfig__path=(
          f's3://{_BUCKET}/{undisturbed}/checkpoint_{_STEPS}'
      ),
      checkpoints__RestoreCheckpointConfig__mode='specific',
  )
  assert code == 0, log.read_text()
  assert f'undisturbed/checkpoint_{_STEPS} at step {_STEPS}' in log.read_text()


def test_infer_reads_a_run_in_a_bucket(undisturbed, server, tmp_path, capfd):
  prompts = tmp_path / 'prompts.txt'
  prompts.write_text('some\nwords\n')
  code = binaries.run(
      'infer',
      f'--run=s3://{_BUCKET}/{undisturbed}',
      f'--input={prompts}',
      f'--output={tmp_path}/out.jsonl',
  )
  assert code == 0, capfd.readouterr()
  assert len((tmp_path / 'out.jsonl').read_text().splitlines()) == 2


def test_a_server_gone_for_a_time_costs_saves_and_not_the_run(
    server, tmp_path
):
  log = tmp_path / 'log'
  run = 'outage'
  with _started(
      f's3://{_BUCKET}/{run}', log=log, TRAIN_STEPS=600,
      checkpoints__SaveCheckpointConfig__period=100,
      train_script__train__stats_period=100,
  ) as process:  # fmt: skip
    first = f'{run}/checkpoint_0/{steps_lib.COMMIT_MARKER}'
    _wait_until(lambda: server.names(first), process)
    server.gate.shut()
    try:
      _wait_until(lambda: 'CHECKPOINT NOT SAVED' in log.read_text(), process)
    finally:
      server.gate.open()
    code = process.wait(_TIMEOUT_SECONDS)
  assert code == 0, log.read_text()
  assert 600 in steps_lib.all_steps(f's3://{_BUCKET}/{run}')
  assert sorted(_losses(server, run)) == [100, 200, 300, 400, 500, 600]


@pytest.mark.parametrize(
    'model_dir, change, told',
    [
        ('s3://absent/run', {}, ('s3://absent/run', 'bucket')),
        (
            f's3://{_BUCKET}/run',
            {'AWS_ENDPOINT_URL': 'http://127.0.0.1:9'},
            ('127.0.0.1:9',),
        ),
    ],
    ids=['no such bucket', 'no server'],
)
def test_a_bucket_that_cannot_be_written_is_refused_before_training(
    model_dir, change, told, server, tmp_path, monkeypatch
):
  for name, value in change.items():
    monkeypatch.setenv(name, value)
  log = tmp_path / 'log'
  assert _train(model_dir, log=log) == exit_codes.BAD_CONFIG.code
  text = log.read_text()
  assert 'Traceback' not in text
  assert 'set MODEL_DIR to' in text
  for part in told:
    assert part in text
