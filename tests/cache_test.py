# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild cache`: killed and started again it writes the same; errors are told.

Real processes: a worker is killed in the middle of a shard.
"""

import contextlib
import os
import pathlib
import re
import sys
import time

import pytest

from t5wild import cache
from t5wild import exit_codes
from t5wild.data import beam_shards
from t5wild.data import record_cache
from t5wild.inferring import output_lock
from tests import cache_commands
from tests import small_disk
from tests.data import caches

_TIMEOUT_SECONDS = 300
_ORPHAN_SECONDS = 60


@pytest.fixture(scope='module')
def project(tmp_path_factory):
  return cache_commands.make_project(tmp_path_factory.mktemp('project'))


def _fingerprints(root) -> dict[str, str]:
  return {
      os.path.relpath(folder, root): record_cache.read_manifest(
          folder
      ).fingerprint
      for folder in record_cache.folders_of(str(root))
  }


@pytest.mark.slow
def test_killed_in_the_middle_it_goes_on_and_is_the_same(
    project, tmp_path, monkeypatch
):
  whole, killed = tmp_path / 'whole', tmp_path / 'killed'
  cache_commands.write_here(project, whole, monkeypatch)
  process = cache_commands.start(
      project, '--task=one', f'--out={killed}', '--num_processes=2',
      seconds=1.0,
  )  # fmt: skip
  deadline = time.monotonic() + _TIMEOUT_SECONDS
  while len(_done(killed)) < 3 and time.monotonic() < deadline:
    time.sleep(0.05)
  process.kill()
  # Its workers hold the pipe, and end with it.
  process.communicate(timeout=_ORPHAN_SECONDS)
  done = _done(killed)
  assert 3 <= len(done) < len(_done(whole))
  with pytest.raises(record_cache.BadCacheError, match='shards are done'):
    caches.reader(caches.config(killed))
  before = {path: path.stat().st_mtime_ns for path in done}
  code, output = cache_commands.run(
      project, '--task=one', f'--out={killed}', '--num_processes=1'
  )
  assert code == exit_codes.DONE.code, output
  assert {path: path.stat().st_mtime_ns for path in done} == before
  assert _fingerprints(killed) == _fingerprints(whole)
  assert _fingerprints(whole).keys() == {'one/train', 'one/validation'}
  assert cache.main([f'--verify={killed}']) == exit_codes.DONE.code
  for left, right in zip(
      caches.batches(caches.reader(caches.config(whole)), 3),
      caches.batches(caches.reader(caches.config(killed)), 3),
      strict=True,
  ):
    caches.assert_equal(left, right)


def _done(root: pathlib.Path) -> list[pathlib.Path]:
  return sorted(root.rglob('data.array_record-*.json'))


@pytest.mark.slow
def test_a_full_disk_is_told_and_the_same_command_goes_on(project, tmp_path):
  with small_disk.mounted(tmp_path / 'disk', megabytes=1) as disk:
    # All but some kilobytes are taken.
    filling = disk / 'filling'
    filling.write_bytes(b'x' * (1000 << 10))
    command = (
        '--task=one', f'--out={disk / "cache"}', '--num_processes=1',
        '--num_shards=2', '--splits=train',
    )  # fmt: skip
    code, output = cache_commands.run(project, *command)
    assert code == exit_codes.DISK_FULL.code, output
    assert 'the same command goes on' in output
    filling.unlink()
    code, output = cache_commands.run(project, *command)
    assert code == exit_codes.DONE.code, output
    record_cache.RecordCache(disk / 'cache' / 'one' / 'train').verify()


@pytest.mark.parametrize(
    ('arguments', 'named'),
    [
        (['--task=one'], '--out is missing'),
        (['--out=there'], '--task is None'),
        (['--task=nobody_knows', '--out=there'], 'nobody_knows'),
        (['--verify=nowhere'], 'no cache in'),
    ],
)
def test_a_command_of_no_use_is_refused(
    arguments, named, tmp_path, monkeypatch, capsys
):
  monkeypatch.chdir(tmp_path)
  assert cache.main(arguments) == exit_codes.BAD_CONFIG.code
  assert named in capsys.readouterr().err
  assert list(tmp_path.iterdir()) == []


def _copy_task(name: str) -> str:
  """Registers a small task of pairs."""
  seqio = pytest.importorskip('seqio')
  from tests.end_to_end import copy_task

  task = copy_task.copy_task()
  if name not in seqio.TaskRegistry.names():
    seqio.TaskRegistry.add(
        name,
        source=task.source,
        preprocessors=task.preprocessors,
        output_features=task.output_features,
    )
  return name


def test_a_second_command_on_one_folder_is_refused(tmp_path, capsys):
  command = [f'--task={_copy_task("cached_once")}', f'--out={tmp_path}']
  lock = output_lock.OutputLock(str(tmp_path / 'writing.lock'))
  with contextlib.closing(lock):
    assert cache.main(command) == exit_codes.BAD_CONFIG.code
  assert 'another `t5wild cache`' in capsys.readouterr().err
  assert [path.name for path in tmp_path.iterdir()] == ['writing.lock']


def test_the_folder_of_another_task_is_refused_with_both_names(
    tmp_path, capsys
):
  caches.write(tmp_path, caches.texts(5))
  command = [f'--task={_copy_task("cached_twice")}', f'--out={tmp_path}']
  assert cache.main(command) == exit_codes.BAD_CONFIG.code
  told = capsys.readouterr().err
  assert "'letters'" in told and "'cached_twice'" in told


@pytest.mark.slow
@pytest.mark.parametrize('mode', ['in_memory', 'multi_processing'])
def test_beam_writes_the_same_bytes_and_goes_on(mode, project, tmp_path):
  pytest.importorskip(
      'apache_beam', reason="needs Apache Beam: pip install -e '.[beam]'"
  )
  command = ('--task=one', '--splits=train')
  whole, beam = tmp_path / 'whole', tmp_path / 'beam'
  code, output = cache_commands.run(project, *command, f'--out={whole}')
  assert code == exit_codes.DONE.code, output
  options = (
      f'--pipeline_options=runner=DirectRunner,direct_running_mode={mode},'
      'direct_num_workers=2'
  )
  for _ in range(2):
    code, output = cache_commands.run(
        project, *command, f'--out={beam}', options
    )
    assert code == exit_codes.DONE.code, output
    assert _bytes_of(beam) == _bytes_of(whole)
    # A part is lost before the second time.
    _done(beam)[1].unlink()


def _bytes_of(root: pathlib.Path) -> dict[str, bytes]:
  return {
      str(path.relative_to(root)): path.read_bytes()
      for path in root.rglob('*')
      if path.is_file()
  }


def test_without_beam_its_flag_says_what_to_install(
    tmp_path, monkeypatch, capsys
):
  monkeypatch.setitem(sys.modules, 'apache_beam', None)
  command = [
      f'--task={_copy_task("cached_once")}', f'--out={tmp_path}',
      '--pipeline_options=runner=DirectRunner',
  ]  # fmt: skip
  assert cache.main(command) == exit_codes.BAD_CONFIG.code
  assert 't5wild[beam]' in capsys.readouterr().err
  assert not list(tmp_path.iterdir())


def test_options_of_a_pipeline_are_written_as_seqio_or_as_tfds_has_them():
  parse = beam_shards.parse_options
  expected = ['--runner=DirectRunner', '--direct_num_workers=2']
  assert parse('--runner=DirectRunner, --direct_num_workers=2') == expected
  assert parse('runner=DirectRunner,direct_num_workers=2') == expected


def test_verify_names_the_shard_that_was_altered(tmp_path, capsys):
  folder = pathlib.Path(caches.write(tmp_path, caches.texts(30)))
  assert cache.main([f'--verify={tmp_path}']) == exit_codes.DONE.code
  assert 'as they were written' in capsys.readouterr().out
  path = folder / 'data.array_record-00002-of-00003'
  content = bytearray(path.read_bytes())
  content[len(content) // 2] ^= 1
  path.write_bytes(content)
  assert cache.main([f'--verify={tmp_path}']) == exit_codes.BAD_CONFIG.code
  assert '00002' in capsys.readouterr().err


def test_a_second_command_says_that_it_read_no_byte_of_what_was_there(
    tmp_path, capsys
):
  command = [
      f'--task={_copy_task("cached_again")}', f'--out={tmp_path}',
      '--splits=train', '--num_processes=1',
  ]  # fmt: skip
  assert cache.main(command) == exit_codes.DONE.code
  told = capsys.readouterr().out
  assert 'is complete' in told and 'already' not in told
  (path,) = tmp_path.rglob('data.array_record-00000-of-*[0-9]')
  content = bytearray(path.read_bytes())
  content[len(content) // 2] ^= 1
  path.write_bytes(content)
  assert cache.main(command) == exit_codes.DONE.code
  assert re.search(
      r'(\d+) of \1 shards were there .* bytes were not read again: '
      f'`t5wild cache --verify={tmp_path}`',
      capsys.readouterr().out,
  )
  assert cache.main([f'--verify={tmp_path}']) == exit_codes.BAD_CONFIG.code
