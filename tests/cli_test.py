# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The `t5wild` command: quick help, every command there, exit codes."""

import importlib
import os
import resource
import signal
import subprocess
import sys
import types

import pytest

from t5wild import cli
from t5wild import exit_codes


def test_help_comes_at_once_and_without_jax_or_tensorflow():
  code = (
      'import sys; from t5wild import cli; cli.main(["--help"]);'
      'heavy = {"jax", "tensorflow", "seqio", "numpy"} & set(sys.modules);'
      'sys.exit(f"imported {heavy}" if heavy else 0)'
  )
  # CPU seconds: on a machine with other work, the clock measures that.
  seconds = []
  for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, '-c', code],
        capture_output=True, text=True, check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    seconds.append(
        after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    )
  assert 'usage: t5wild COMMAND' in done.stdout
  assert min(seconds) < 0.5


@pytest.mark.parametrize('name', cli.COMMANDS)
def test_every_command_in_the_help_exists(name):
  command = cli.COMMANDS[name]
  assert callable(getattr(
      importlib.import_module(command.module), command.function
  ))
  assert f'  {name} ' in cli.usage()


@pytest.mark.parametrize(
    'arguments', [['--help'], ['--version'], ['goodput', '--help']]
)
@pytest.mark.parametrize('buffered', ['', '1'])
def test_a_reader_who_has_gone_is_no_error(arguments, buffered, monkeypatch):
  monkeypatch.setenv('PYTHONUNBUFFERED', buffered)
  read_end, write_end = os.pipe()
  os.close(read_end)
  done = subprocess.run(
      [sys.executable, '-m', 't5wild.cli', *arguments],
      stdout=write_end, stderr=subprocess.PIPE, text=True, check=False,
  )
  os.close(write_end)
  assert done.stderr == ''
  # Unbuffered, argparse passes over what happens to its help.
  assert done.returncode in {0, 128 + signal.SIGPIPE}


def test_arguments_go_to_the_command_and_its_exit_code_comes_back(monkeypatch):
  calls = []
  module = types.SimpleNamespace(
      main=lambda argv: calls.append(argv), run=lambda argv: len(argv)
  )
  monkeypatch.setitem(sys.modules, 'some_module', module)
  plain = cli.Command(module='some_module', summary='')
  named = cli.Command(
      module='some_module', function='run', takes_program_name=True, summary=''
  )
  monkeypatch.setattr(cli, 'COMMANDS', {'plain': plain, 'named': named})
  assert cli.main(['plain', '--a', 'b']) == exit_codes.DONE.code
  assert calls == [['--a', 'b']]
  assert cli.main(['named', '--gin.X=1']) == 2  # name and flag


def test_an_unknown_command_is_refused_with_a_close_name(capsys):
  assert cli.main(['trian']) == exit_codes.BAD_CONFIG.code
  message = capsys.readouterr().err
  assert "did you mean 'train'" in message
  assert 'expected: one of' in message
  assert 't5wild --help' in message


@pytest.mark.parametrize(
    ('arguments', 'expected'),
    [
        (['--run_mode=plain', '--a'], ['--a']),
        (['--a', '--run_mode=plain'], ['--a']),
        (['plain', '--run_mode=plain', '--a'], ['--a']),
    ],
)
def test_run_mode_of_t5x_names_the_command(arguments, expected, monkeypatch):
  calls = []
  monkeypatch.setitem(
      sys.modules, 'some_module', types.SimpleNamespace(main=calls.append)
  )
  monkeypatch.setattr(
      cli, 'COMMANDS', {'plain': cli.Command(module='some_module', summary='')}
  )
  assert cli.main(arguments) == exit_codes.DONE.code
  assert calls == [expected]


def test_another_run_mode_than_the_command_is_refused(capsys):
  assert cli.main(['train', '--run_mode=eval']) == exit_codes.BAD_CONFIG.code
  assert 'train --run_mode=eval' in capsys.readouterr().err


def test_no_command_shows_the_help_and_is_an_error(capsys):
  assert cli.main([]) == exit_codes.BAD_CONFIG.code
  assert 'usage:' in capsys.readouterr().out


def test_version(capsys):
  assert cli.main(['--version']) == exit_codes.DONE.code
  assert capsys.readouterr().out.startswith('t5wild ')


def test_help_of_train_lists_its_flags():
  shown = subprocess.run(
      [sys.executable, '-m', 't5wild.cli', 'train', '--help'],
      capture_output=True,
      text=True,
      timeout=120,
      check=False,
  )
  assert shown.returncode == 0, shown.stderr
  for flag in ('--gin_file', '--gin_search_paths', '--[no]dry_run'):
    assert flag in shown.stdout


def test_ctrl_c_ends_any_command_in_one_line(monkeypatch, capsys):
  def interrupt(argv):
    raise KeyboardInterrupt

  module = types.SimpleNamespace(main=interrupt)
  monkeypatch.setitem(sys.modules, 'some_module', module)
  command = cli.Command(module='some_module', summary='')
  monkeypatch.setattr(cli, 'COMMANDS', {'plain': command})
  assert cli.main(['plain']) == 130
  assert capsys.readouterr().err == 'Stopped by Ctrl-C.\n'


@pytest.mark.parametrize(
    ('words', 'code'),
    [(('--help',), exit_codes.DISK_FULL.code), (('nonsense',), 2)],
)
def test_output_on_a_full_disk_is_told_and_hides_no_exit_code(words, code):
  with open('/dev/full', 'w') as full:
    done = subprocess.run(
        [sys.executable, '-m', 't5wild.cli', *words],
        stdout=full, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
  assert done.returncode == code
  assert 'Traceback' not in done.stderr
  assert ('not whole' in done.stderr) == (words == ('--help',))
