# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a run writes about where and with what it runs."""

import importlib.metadata
import json
import pathlib
import subprocess

from t5wild import run_dir as run_dir_lib
from t5wild.reports import contents as contents_lib
from t5wild.vitals import environment
from tests.reports import made_runs


def test_hardware_and_versions_are_those_that_are_there():
  found = environment.describe(devices=['H100', 'H100', 'cpu'], num_processes=2)
  assert found['devices'] == {'H100': 2, 'cpu': 1}
  assert found['processes'] == 2
  assert found['packages']['numpy'] == importlib.metadata.version('numpy')
  json.dumps(found, allow_nan=False)


def test_no_variable_that_may_be_a_secret_is_written(monkeypatch):
  monkeypatch.setenv('XLA_FLAGS', '--xla_dump_to=here')
  monkeypatch.setenv('JAX_SECRET_TOKEN', 'abcdefg')
  monkeypatch.setenv('OTHER_VARIABLE', 'x')
  found = environment.describe(devices=[], num_processes=1)['variables']
  assert found['XLA_FLAGS'] == '--xla_dump_to=here'
  assert not {'JAX_SECRET_TOKEN', 'OTHER_VARIABLE'} & found.keys()


def test_a_checkout_tells_its_commit_and_whether_files_differ(tmp_path):
  assert environment._code_version(tmp_path) == 'installed'

  def git(*arguments):
    command = ['git', '-c', 'user.name=x', '-c', 'user.email=x@x', *arguments]
    return subprocess.run(
        command, cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout.strip()

  git('init', '-q')
  (tmp_path / 'file').write_text('one')
  git('add', 'file')
  git('commit', '-q', '-m', 'first')
  assert environment._code_version(tmp_path) == git('rev-parse', 'HEAD')
  (tmp_path / 'file').write_text('two')
  told = environment._code_version(tmp_path)
  assert told == f'{git("rev-parse", "HEAD")} with changes'


def test_the_report_shows_it(tmp_path):
  made_runs.make_run(tmp_path, num_steps=100)
  run = run_dir_lib.RunDir(str(tmp_path))
  environment.write(run, devices=['TPU v5e'] * 4, num_processes=1)
  contents = contents_lib.read_contents(run.path)
  assert contents.texts.environment['devices.TPU v5e'] == '4'
  assert not [each for each in contents.missing if 'environment' in each]


def test_a_folder_that_takes_no_file_does_not_stop_the_run(tmp_path, caplog):
  run = run_dir_lib.RunDir(str(tmp_path / 'absent'))
  environment.write(run, devices=[], num_processes=1)
  assert not pathlib.Path(run.path).exists()
  assert 'cannot be written' in caplog.text
