# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild run` runs a user's script as Python does, with T5X's names."""

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


def _run(*arguments, cwd):
  return subprocess.run(
      [sys.executable, '-m', 't5wild.cli', 'run', *arguments],
      capture_output=True, text=True, check=False, cwd=cwd,
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
