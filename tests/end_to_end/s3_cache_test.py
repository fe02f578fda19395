# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A cache on a server of S3: written, killed, gone on with, and trained from.

Real processes, a real server, which goes away for a while.
"""

import pathlib
import time

import pytest

from t5wild import cache
from t5wild import exit_codes
from t5wild.data import node_cache
from t5wild.data import record_cache
from tests import cache_commands
from tests import s3_server
from tests.data import caches
from tests.end_to_end import runs

s3_server.skip_without_its_packages()
pytestmark = pytest.mark.slow
_ROOT = f's3://{s3_server.BUCKET}'
_TIMEOUT_SECONDS = 300
_RECIPE = runs.RECIPE.with_name('cached.gin')


@pytest.fixture(scope='module')
def server():
  with s3_server.running() as served:
    yield served


@pytest.fixture(autouse=True)
def node(tmp_path, monkeypatch):
  """New folders for what is fetched, and for what is to be sent."""
  monkeypatch.setenv(node_cache.FOLDER, str(tmp_path / 'node'))
  return tmp_path / 'node'


@pytest.fixture(scope='module')
def project(tmp_path_factory):
  return cache_commands.make_project(tmp_path_factory.mktemp('project'))


def _summaries(server, root: str) -> dict[str, object]:
  """When each shard that is done was written."""
  found = server.client().list_objects_v2(
      Bucket=s3_server.BUCKET, Prefix=root
  )
  return {
      entry['Key']: entry['LastModified']
      for entry in found.get('Contents', ())
      if 'data.' in entry['Key'] and entry['Key'].endswith('.json')
  }


def test_killed_in_the_middle_a_cache_in_a_bucket_goes_on_and_is_the_same(
    server, project, tmp_path, monkeypatch
):
  whole, killed = tmp_path / 'whole', f'{_ROOT}/killed'
  cache_commands.write_here(project, whole, monkeypatch)
  command = ('--task=one', '--splits=train')
  process = cache_commands.start(
      project, *command, f'--out={killed}', '--num_processes=2', seconds=1.0
  )
  deadline = time.monotonic() + _TIMEOUT_SECONDS
  while not _summaries(server, 'killed') and time.monotonic() < deadline:
    time.sleep(0.05)
  process.kill()
  process.communicate()  # its workers end with it
  done = _summaries(server, 'killed')
  assert done
  with pytest.raises(record_cache.BadCacheError, match='shards are done'):
    caches.reader(caches.config(killed))
  code, output = cache_commands.run(
      project, *command, f'--out={killed}', '--num_processes=1'
  )
  assert code == exit_codes.DONE.code, output
  again = _summaries(server, 'killed')
  assert len(again) > len(done)
  assert {name: again[name] for name in done} == done
  fingerprints = [
      record_cache.read_manifest(record_cache.folders_of(str(root))[0])
      for root in (whole, killed)
  ]
  assert fingerprints[0] == fingerprints[1]
  assert cache.main([f'--verify={killed}']) == exit_codes.DONE.code


def test_a_server_that_goes_away_while_caching_is_told_and_it_goes_on(
    server, project
):
  root = f'{_ROOT}/outage'
  command = ('--task=one', '--splits=train', f'--out={root}')
  process = cache_commands.start(
      project, *command, '--num_processes=1', seconds=0.5
  )
  deadline = time.monotonic() + _TIMEOUT_SECONDS
  while not _summaries(server, 'outage') and time.monotonic() < deadline:
    time.sleep(0.05)
  server.gate.shut()
  try:
    output, _ = process.communicate(timeout=_TIMEOUT_SECONDS)
  finally:
    server.gate.open()
  assert process.returncode == exit_codes.BAD_CONFIG.code, output
  assert 'the same command goes on' in output
  assert 'Traceback' not in output
  code, output = cache_commands.run(project, *command, '--num_processes=1')
  assert code == exit_codes.DONE.code, output


def test_a_server_that_is_not_there_is_told_before_anything_is_written(
    server, project, monkeypatch
):
  root = f'{_ROOT}/nowhere'
  with monkeypatch.context() as patch:
    patch.setenv('AWS_ENDPOINT_URL', 'http://127.0.0.1:9')
    patch.setenv('AWS_MAX_ATTEMPTS', '1')
    code, output = cache_commands.run(
        project, '--task=one', f'--out={root}', '--num_processes=1'
    )
  assert code == exit_codes.BAD_CONFIG.code, output
  assert 'Traceback' not in output
  assert root in output and '127.0.0.1:9' in output
  assert not server.names('nowhere')


def test_a_bucket_that_is_not_there_is_told(
    server, project, monkeypatch, capsys
):
  monkeypatch.syspath_prepend(str(project))
  monkeypatch.setenv('TEST_CACHE_TEXT', str(project / 'text'))
  code = cache.main([
      '--module=cache_test_tasks', '--task=one', '--out=s3://absent/cache',
      '--num_processes=1',
  ])  # fmt: skip
  assert code == exit_codes.BAD_CONFIG.code
  assert 's3://absent/cache' in capsys.readouterr().err


def test_a_run_from_a_cache_in_a_bucket_has_the_losses_of_one_in_a_folder(
    server, tmp_path
):
  documents = caches.texts(200)
  caches.write(tmp_path / 'cache', documents)
  caches.write(f'{_ROOT}/cache', documents)
  losses = []
  for name, root in (('here', tmp_path / 'cache'), ('s3', f'{_ROOT}/cache')):
    run = tmp_path / name
    assert runs.train(run, recipe=_RECIPE, TEXT=root, num_devices=2) == 0
    losses.append(runs.losses(run))
  assert losses[0] and losses[0] == losses[1]
  assert len(list(pathlib.Path(tmp_path / 'node').glob('*.shard'))) == 3
