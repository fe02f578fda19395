# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild run` runs a user's script as Python does, with T5X's names."""

import os
import subprocess
import sys

import pytest

from t5wild.compat import run

_SCRIPT = """
import sys
from t5x import losses
import my_part
print(__name__, losses.cross_entropy_with_logits.__module__, sys.argv[1:])
sys.exit(my_part.CODE)
"""


def _run(*arguments, cwd, env=None):
  return subprocess.run(
      [sys.executable, '-m', 't5wild.cli', 'run', *arguments],
      capture_output=True, text=True, check=False, cwd=cwd, env=env,
  )


@pytest.fixture
def folder(tmp_path):
  (tmp_path / 'my_script.py').write_text(_SCRIPT)
  (tmp_path / 'my_part.py').write_text('CODE = 7\n')
  return tmp_path


@pytest.mark.parametrize('name', [['my_script.py'], ['-m', 'my_script']])
def test_a_script_has_its_own_arguments_modules_and_exit_code(name, folder):
  done = _run(*name, '--a', 'b', cwd=folder)
  assert done.returncode == 7, done.stderr
  assert done.stdout == "__main__ t5wild.losses ['--a', 'b']\n"


def test_a_script_that_is_not_there_is_refused(folder):
  done = _run('my_scirpt.py', cwd=folder)
  assert done.returncode == 2
  assert "There is no script 'my_scirpt.py'" in done.stderr
  assert 'usage: t5wild run [--vocab_dir DIR] SCRIPT.py' in done.stderr


@pytest.mark.parametrize('name', ['no_module', '..', 'a..b', '.a', ''])
def test_a_module_that_is_not_there_is_refused(folder, monkeypatch, name):
  monkeypatch.chdir(folder)
  assert run.main(['-m', name]) == 2


def test_nothing_to_run_is_refused(folder):
  assert _run(cwd=folder).returncode == 2


def test_without_run_the_script_finds_no_t5x(folder):
  done = subprocess.run(
      [sys.executable, 'my_script.py'],
      capture_output=True, text=True, check=False, cwd=folder,
  )
  assert "No module named 't5x'" in done.stderr


@pytest.mark.parametrize(
    'spelling', [['--vocab_dir=here'], ['--vocab_dir', 'here']]
)
def test_a_folder_of_vocabularies_is_the_scripts_too(folder, spelling):
  (folder / 'here').mkdir()
  (folder / 'tell.py').write_text(
      'import os, sys; print(os.environ["T5WILD_VOCAB_DIR"], sys.argv[1:])'
  )
  done = _run(*spelling, 'tell.py', '--x', cwd=folder)
  assert done.stdout == f"{folder / 'here'} ['--x']\n", done.stderr
  done = _run('--vocab_dir=absent', 'tell.py', cwd=folder)
  assert 'expected a folder' in done.stderr


@pytest.mark.parametrize(
    ('line', 'words'),
    [
        (
            'from t5x.models import EncoderDecodrModel',
            ["t5x.models has no 'EncoderDecodrModel' in t5wild; did you mean "
             "'EncoderDecoderModel'?", '  expected: one of ', '  do: '],
        ),
        (
            'from t5x import modles',
            ["t5x has no 'modles' in t5wild; did you mean 'models'?",
             '  expected: one of ', 'utils', '  do: '],
        ),
        ('from t5x import export', ["No module named 't5x.export' in t5wild"]),
        (
            'from t5.data import preprocesors',
            ["t5.data has no 'preprocesors' in t5wild; did you mean "
             "'preprocessors'?"],
        ),
    ],
)  # fmt: skip
def test_a_name_that_is_not_there_is_told_with_advice(folder, line, words):
  # In a module that the script imports, as it mostly is; and T5's are ours.
  (folder / 'my_part.py').write_text(f'{line}\n')
  (folder / 'my_script.py').write_text('import my_part\n')
  done = _run(
      'my_script.py', cwd=folder, env={**os.environ, 'T5WILD_HIDE_T5': '1'}
  )
  assert done.returncode == 1
  _, traceback, told = done.stderr.partition('cannot import name')
  assert traceback, done.stderr
  for each in words:
    assert each in told


@pytest.mark.parametrize(
    'line',
    [
        'from json import nosuch', 'import nosuch',
        'raise ImportError', 'raise ImportError("no", name="t5x")',
    ],
)  # fmt: skip
def test_an_import_that_is_none_of_ours_fails_as_python_has_it(
    folder, monkeypatch, line
):
  (folder / 'my_script.py').write_text(f'{line}\n')
  monkeypatch.setattr(sys, 'path', [*sys.path])
  monkeypatch.setattr(sys, 'argv', [])
  monkeypatch.setattr(run.install, 'install', lambda: None)
  with pytest.raises(ImportError) as raised:
    run.main([str(folder / 'my_script.py')])
  assert not hasattr(raised.value, '__notes__')
