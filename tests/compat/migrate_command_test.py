# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild migrate`: exit codes, counts, text and JSON say the same."""

import errno
import json

import pytest

from t5wild import cli
from t5wild import exit_codes
from t5wild.compat import migrate_command

_GOOD = 'from t5x import utils\nutils.DatasetConfig\n'
_BAD = 'from t5x import utils\nutils.Nothing\n'


@pytest.fixture
def folder(t5x_names, tmp_path):
  (tmp_path / 'good.py').write_text(_GOOD)
  return tmp_path


@pytest.fixture
def recipe(folder):
  """A folder of one recipe that runs."""
  (folder / 'a').mkdir()
  (folder / 'a/a.gin').write_text(
      'from __gin__ import dynamic_registration\n'
      'from t5x import utils\nutils.SaveCheckpointConfig.keep = 2\n'
  )
  return folder / 'a'


def test_the_exit_code_is_0_where_all_run_and_1_otherwise(folder, capsys):
  assert cli.main(['migrate', str(folder)]) == exit_codes.DONE.code
  assert 'Python files: 1 of 1 run unchanged\n' in capsys.readouterr().out
  (folder / 'bad.py').write_text(_BAD)
  assert cli.main(['migrate', str(folder)]) == 1
  shown = capsys.readouterr().out
  assert 'Python files: 1 of 2 run unchanged, 1 do not run\n' in shown
  assert f'{folder}/bad.py:2: utils.Nothing\n' in shown
  assert 'line 2: t5x.utils.DatasetConfig is t5wild.data.Data' in shown


def test_brief_is_a_line_a_file_and_the_counts(folder, capsys):
  (folder / 'bad.py').write_text(_BAD)
  assert cli.main(['migrate', '--brief', str(folder)]) == 1
  assert capsys.readouterr().out.splitlines() == [
      f'{folder}/bad.py: does not run',
      f'{folder}/good.py: runs unchanged',
      '',
      'Python files: 1 of 2 run unchanged, 1 do not run',
  ]


def test_json_has_every_fault_and_the_counts(folder, capsys):
  (folder / 'bad.py').write_text(_BAD)
  assert cli.main(['migrate', '--json', str(folder)]) == 1
  told = json.loads(capsys.readouterr().out)
  bad, good = told['files']
  assert bad['verdict'] == 'does not run'
  assert [(f['line'], f['text']) for f in bad['faults']] == [
      (2, 'utils.Nothing')
  ]
  assert good['names'] == [{
      'line': 2,
      't5x': 't5x.utils.DatasetConfig',
      't5wild': 't5wild.data.DatasetConfig',
  }]
  assert told['summary']['python']['runs unchanged'] == 1
  assert told['summary']['python']['files'] == 2


def test_a_path_that_is_not_there_is_refused(folder, capsys):
  code = cli.main(['migrate', str(folder / 'no.gin')])
  assert code == exit_codes.BAD_CONFIG.code
  shown = capsys.readouterr().err
  assert 'no.gin' in shown
  assert 'expected: ' in shown


def test_a_folder_without_anything_of_t5x_is_refused(folder, capsys):
  (folder / 'good.py').unlink()
  assert cli.main(['migrate', str(folder)]) == exit_codes.BAD_CONFIG.code
  assert 'nothing of T5X' in capsys.readouterr().err


def test_write_writes_a_copy_and_tells(folder, recipe, capsys):
  out = str(folder / 'out')
  assert cli.main(['migrate', str(recipe), '--write', out]) == 0
  assert f'1 gin files written to {out}' in capsys.readouterr().err
  assert (folder / 'out/a.gin').read_text() == (
      'from __gin__ import dynamic_registration\n'
      'from t5wild import checkpoints\n'
      'checkpoints.SaveCheckpointConfig.keep = 2\n'
  )
  again = cli.main(['migrate', str(recipe), '--write', out])
  assert again == exit_codes.BAD_CONFIG.code
  assert 'not empty' in capsys.readouterr().err


@pytest.mark.parametrize('out', ['a_file/below', 'a_file', 'link_to_nothing'])
def test_a_place_that_cannot_be_written_is_refused_at_once(
    folder, capsys, monkeypatch, out
):
  (folder / 'a_file').write_text('kept', encoding='utf-8')
  (folder / 'link_to_nothing').symlink_to('a_file/nothing')
  monkeypatch.setattr(migrate_command.migrate, 'check', None)
  arguments = [str(folder), '--write', str(folder / out)]
  assert migrate_command.main(arguments) == 2
  told = capsys.readouterr().err
  assert out in told
  assert '\n  expected: ' in told
  assert '\n  do: ' in told
  assert (folder / 'a_file').read_text(encoding='utf-8') == 'kept'


@pytest.mark.parametrize('is_there', [False, True])
def test_a_copy_that_fails_midway_leaves_nothing(
    recipe, tmp_path, capsys, monkeypatch, is_there
):
  out = tmp_path / 'new' / 'clean'
  if is_there:
    out.mkdir(parents=True)

  def fail(*arguments, **keywords):
    raise OSError(errno.ENOSPC, 'No space left on device')

  monkeypatch.setattr(migrate_command.clean_copy, '_compare', fail)
  assert migrate_command.main([str(recipe), '--write', str(out)]) == 2
  assert 'No space left' in capsys.readouterr().err
  assert [*out.parent.iterdir()] == ([out] if is_there else [])
  assert not (is_there and any(out.iterdir()))


def test_an_empty_folder_stays_the_same_folder(recipe, tmp_path):
  out = tmp_path / 'new'
  out.mkdir()
  before = out.stat()
  migrate_command.main([str(recipe), '--write', str(out)])
  after = out.stat()
  assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
  assert [*out.glob('*.gin')]
  assert not [*out.glob('.*')]
