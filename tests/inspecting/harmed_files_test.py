# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Caches that are not whole and damaged files are told by our message alone."""

import json
import pathlib

import pytest

from t5wild import cache
from t5wild import exit_codes
from tests.data import caches
from tests.data import tables_test


def test_an_unfinished_or_damaged_cache_is_refused(inspect, tmp_path):
  folder = pathlib.Path(caches.write(tmp_path, caches.texts(9)))
  shard = next(iter(sorted(folder.glob('*.array_record'))), None) or next(
      path for path in sorted(folder.iterdir()) if 'json' not in path.name
  )
  data = shard.read_bytes()
  shard.write_bytes(data[:-9])
  code, text = inspect(tmp_path)
  assert code == exit_codes.BAD_CONFIG.code and 'truncated' in text
  shard.write_bytes(data)
  (folder / 'manifest.json').unlink()
  code, text = inspect(tmp_path)
  assert code == exit_codes.BAD_CONFIG.code and 'still being written' in text


def _unfinished(folder: pathlib.Path) -> str:
  """As `t5wild cache` leaves it when it is killed; returns what is expected."""
  split = pathlib.Path(caches.write(folder, caches.texts(9)))
  (split / 'manifest.json').unlink()
  (folder / 'cache.json').unlink()
  next(iter(sorted(split.glob('data.*.json')))).unlink()
  return '2 of 3 shards are done'


def _just_begun(folder: pathlib.Path) -> str:
  (folder / 'writing.lock').touch()
  return 'no shard of it is done'


def _manifest_cut(folder: pathlib.Path) -> str:
  path = pathlib.Path(caches.write(folder, caches.texts(9)), 'manifest.json')
  path.write_text(path.read_text()[:90])
  return f'{path} is damaged'


def _plan_cut(folder: pathlib.Path) -> str:
  split = pathlib.Path(caches.write(folder, caches.texts(9)))
  (split / 'manifest.json').unlink()
  (split / 'plan.json').write_text('{"num')
  return 'the plan of `t5wild cache`'


@pytest.mark.parametrize(
    'harm', [_unfinished, _just_begun, _manifest_cut, _plan_cut]
)
@pytest.mark.parametrize('below', ['.', 'letters', 'letters/train'])
def test_what_a_cache_lacks_is_told_by_its_own_message_alone(
    harm, below, inspect, tmp_path, capsys
):
  words = harm(tmp_path)
  path = tmp_path / below
  path = path if path.exists() else tmp_path
  verified = cache.main([f'--verify={path}'])
  told = capsys.readouterr().err
  for code, text in (inspect(path), (verified, told)):
    assert code == exit_codes.BAD_CONFIG.code
    assert words in text and 't5wild cache' in text
    assert 'Traceback' not in text


@pytest.mark.parametrize('name', ['a.parquet', 'a.arrow', 'a.jsonl.gz'])
def test_a_truncated_file_is_told_by_its_own_message_alone(
    name, inspect, tmp_path
):
  path = pathlib.Path(tables_test.write(tmp_path / name))
  path.write_bytes(path.read_bytes()[:-30])
  code, text = inspect(path, '--text_field=text')
  if code != exit_codes.DONE.code:  # rows before the end of a .gz are shown
    assert str(path) in text
  assert (code == exit_codes.DONE.code) == name.endswith('.gz')
  assert 'Traceback' not in text


def test_a_corrupt_line_is_told_once(inspect, tmp_path, caplog):
  path = tmp_path / 'a.jsonl'
  lines = [json.dumps({'text': f'text {n}'}) for n in range(20)]
  path.write_text('\n'.join([*lines[:5], 'nonsense', *lines[5:]]))
  with caplog.at_level('WARNING'):
    code, _ = inspect(path)
  assert code == exit_codes.DONE.code
  assert caplog.text.count('line 6 skipped') == 1
