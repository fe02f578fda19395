# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild checkpoints`: what it says, and what it leaves alone."""

import contextlib
import shutil
import subprocess
import sys

import jax
import numpy as np
import pytest

from t5wild import exit_codes
from t5wild.checkpoint_files import command
from t5wild.checkpoint_files import health
from t5wild.checkpoint_files import listing
from t5wild.checkpoint_files import run_ids
from t5wild.checkpoint_files import steps
from t5wild.checkpoint_files import verifying
from t5wild.checkpoints import configs
from t5wild.checkpoints import manager as manager_lib
from tests.checkpoints import checkpoint_states as states


def _make_numbers(step):
  """With an array so large that it has files of its own."""
  numbers = states.make_numbers(step)
  numbers['target']['big'] = np.random.default_rng(step).random((64, 64))
  return jax.tree.map(lambda x: np.asarray(x).astype('f4'), numbers)


@pytest.fixture(scope='module')
def saved(tmp_path_factory):
  run = tmp_path_factory.mktemp('saved') / 'run'
  manager = manager_lib.CheckpointManager(
      run, config=configs.SaveCheckpointConfig()
  )
  with contextlib.closing(manager):
    for step in (1, 2):
      numbers = _make_numbers(step)
      manager.save(step, states.place(numbers, states.make_mesh((4, 2))))
  return run


@pytest.fixture
def run(saved, tmp_path):
  shutil.copytree(saved, tmp_path / 'run')
  return tmp_path / 'run'


@pytest.fixture
def say(capsys):
  """Runs a command; returns its exit code and all that it printed."""

  def call(*arguments):
    code = command.main([str(argument) for argument in arguments])
    told = capsys.readouterr()
    return code, told.out + told.err

  return call


def _flip_a_number(checkpoint):
  """Flips a bit of an array; returns the name of the file that holds it."""
  array = _make_numbers(2)['target']['big']
  for file in checkpoint.rglob('*'):
    content = bytearray(file.read_bytes()) if file.is_file() else b''
    place = content.find(array[0, :4].tobytes())
    if place >= 0:
      content[place] ^= 1
      file.write_bytes(content)
      return str(file.relative_to(checkpoint))
  raise AssertionError('the numbers are not there')


def test_it_answers_without_jax_and_tensorflow(run):
  code = (
      'import sys\n'
      'from t5wild import cli\n'
      f'code = cli.main(["checkpoints", "verify", {str(run)!r}, "--arrays"])\n'
      'assert not {"jax", "tensorflow", "orbax"} & set(sys.modules)\n'
      'sys.exit(code)\n'
  )
  done = subprocess.run(
      [sys.executable, '-c', code], capture_output=True, text=True, check=False
  )
  assert done.returncode == 0, done.stderr
  assert done.stdout.count(': good (') == 2


def test_list_says_what_is_known_of_each(run, say):
  health.Book(run, is_writer=True).quarantine([1], reason='a spike')
  assert say('pin', run, '--step', 2, '--reason', 'paper')[0] == 0
  code, text = say('list', run)
  first, second = text.splitlines()
  assert code == 0
  assert 'quarantined, hashed' in first
  assert '(a spike)' in first
  assert 'candidate, hashed, pinned' in second
  assert say('pin', run, '--step', 2, '--remove')[0] == 0
  assert 'pinned' not in say('list', run)[1]


def test_a_damaged_file_of_health_is_told_and_nothing_called_a_candidate(
    run, say
):
  health.Book(run, is_writer=True).quarantine([2], reason='a spike')
  file = run / health.FILE
  file.write_text(file.read_text()[:-1])
  for verb in ('list', 'verify'):
    code, text = say(verb, run)
    assert code == exit_codes.FAILED.code
    assert f'DAMAGED: {file} is damaged (JSONDecodeError' in text
  assert 'quarantined' in say('list', run)[1]  # by the copy
  (run / health.COPY).unlink()
  code, text = say('list', run)
  assert code == exit_codes.FAILED.code
  assert 'health unknown, hashed' in text
  assert 'candidate,' not in text


def test_a_damaged_file_of_stores_is_told(run, say):
  (run / listing.STORES_FILE).write_text('nope')
  code, text = say('list', run)
  assert code == exit_codes.FAILED.code
  assert f'{run / listing.STORES_FILE} is damaged' in text
  assert 'candidate, hashed' in text


def test_a_mistyped_run_is_said_not_to_exist(tmp_path, say):
  code, text = say('list', tmp_path / 'nope')
  assert code == exit_codes.BAD_CONFIG.code
  assert 'nope does not exist, expected a run directory' in text
  assert say('list', tmp_path)[0] == exit_codes.DONE.code


def test_another_runs_checkpoint_is_told_by_list_and_verify(
    run, say, tmp_path
):
  run_ids.establish(str(run), source=None)
  inside = run / 'checkpoint_2' / 'integrity' / run_ids.IN_CHECKPOINT
  inside.write_text(run_ids.to_text('beef'))
  for verb in ('list', 'verify'):
    code, told = say(verb, run)
    assert code == exit_codes.FAILED.code
    assert 'it was saved by another run (id beef), expected' in told
  code, told = say('mirror', run, tmp_path / 'copy')
  assert (code, 'checkpoint_2: NOT copied' in told) == (1, True)
  code, told = say('adopt', run, '--step', 2)
  assert (code, 'adopted, the run may go on' in told) == (0, True)
  assert say('list', run)[0] == say('verify', run)[0] == 0


def test_a_damaged_checkpoint_is_neither_pinned_nor_adopted(run, say):
  health.Book(run, is_writer=True).quarantine([2], reason='damaged: a bit')
  copy = shutil.copytree(run / 'checkpoint_2', run.parent / 'copy')
  file = _flip_a_number(run / 'checkpoint_2')
  for verb in ('pin', 'adopt'):
    code, told = say(verb, run, '--step', 2)
    assert code == exit_codes.FAILED.code
    assert f'{file} has other bytes' in told
    assert 'NOT' in told
  assert steps.all_steps(run) == [1]
  # A whole copy in its place is taken again.
  shutil.rmtree(run / 'checkpoint_2')
  shutil.copytree(copy, run / 'checkpoint_2')
  code, told = say('adopt', run, '--step', 2)
  assert (code, 'in quarantine (damaged: a bit)' in told) == (0, True)
  assert steps.all_steps(run) == [1, 2]


def test_verify_names_file_and_array(run, say):
  assert say('verify', run)[0] == exit_codes.DONE.code
  name = _flip_a_number(run / 'checkpoint_2')
  code, text = say('verify', run)
  assert code == exit_codes.FAILED.code
  assert f'{run}/checkpoint_1: good' in text
  assert f'{run}/checkpoint_2: DAMAGED' in text
  assert f'{name} has other bytes' in text
  assert 'array target/big has the hash' in text
  assert say('verify', run, '--step', 1)[0] == exit_codes.DONE.code


def test_a_checkpoint_under_another_ones_name_is_damaged(run, say, tmp_path):
  shutil.copytree(run / 'checkpoint_2', run / 'checkpoint_700')
  code, text = say('verify', run)
  assert code == exit_codes.FAILED.code
  assert f'{run}/checkpoint_2: good' in text
  assert f'{run}/checkpoint_700: DAMAGED' in text
  assert 'its folder is named for step 700, expected the same' in text
  code, text = say('list', run)
  assert code == exit_codes.FAILED.code
  assert f'DAMAGED: {run}/checkpoint_700: its state is of another' in text
  # A copy under a name that tells no step is what it is.
  shutil.copytree(run / 'checkpoint_2', tmp_path / 'best')
  assert say('verify', tmp_path / 'best')[0] == exit_codes.DONE.code
  code, text = say('mirror', run, tmp_path / 'copy')
  assert code == exit_codes.FAILED.code
  assert steps.all_steps(tmp_path / 'copy') == [1, 2]


def test_a_checkpoint_without_hashes_is_unchecked_and_not_damaged(run, say):
  shutil.rmtree(run / 'checkpoint_1' / 'integrity')
  code, text = say('verify', run)
  assert code == exit_codes.DONE.code
  assert 'checkpoint_1: UNCHECKED, readable (files: ' in text
  assert 'checkpoint_2: good (' in text
  for file in (run / 'checkpoint_1' / 'state').rglob('*'):
    if file.is_file() and not file.name.startswith('_'):
      file.write_bytes(file.read_bytes()[:-1])
  code, text = say('verify', run)
  assert code == exit_codes.FAILED.code
  assert 'checkpoint_1: DAMAGED (files: ' in text


def test_hashes_that_cannot_be_read_are_a_damage(run, say):
  (file,) = (run / 'checkpoint_1' / 'integrity').glob('arrays.*')
  file.write_text('')
  code, text = say('verify', run, '--arrays')
  assert code == exit_codes.FAILED.code
  assert 'checkpoint_1: DAMAGED (' in text


@pytest.mark.parametrize('verb', ['list', 'verify', 'mirror'])
def test_what_a_run_removes_meanwhile_is_no_damage(
    verb, run, say, tmp_path, monkeypatch
):
  """The run beside it removes step 1 once it has been listed."""
  module, name = {
      'list': (listing.file_hashes, 'names'),
      'verify': (verifying.file_hashes, 'verify'),
      'mirror': (command.copying, 'copy'),
  }[verb]
  real = getattr(module, name)

  def removed_first(path, *rest, **named):
    if 'checkpoint_1' in str(path):
      shutil.rmtree(path, ignore_errors=True)
    return real(path, *rest, **named)

  monkeypatch.setattr(module, name, removed_first)
  target = [tmp_path / 'copy'] if verb == 'mirror' else []
  code, text = say(verb, run, *target)
  assert code == exit_codes.DONE.code
  assert 'DAMAGED' not in text and 'NOT copied' not in text
  assert ('checkpoint_1: is no more there' in text) is (verb != 'list')
  shutil.rmtree(tmp_path / 'run' / 'checkpoint_1', ignore_errors=True)
  if verb != 'list':  # a checkpoint that is named is missed
    shutil.copytree(run / 'checkpoint_2', run / 'checkpoint_1')
    code, _ = say(verb, run, *target, '--step', 1)
    assert code != exit_codes.DONE.code


def test_mirror_copies_what_is_good_and_leaves_what_is_there(
    run, say, tmp_path
):
  _flip_a_number(run / 'checkpoint_2')
  code, text = say('mirror', run, tmp_path / 'copy')
  assert code == exit_codes.FAILED.code
  assert 'checkpoint_2: NOT copied' in text
  assert steps.all_steps(tmp_path / 'copy') == [1]
  assert say('verify', tmp_path / 'copy')[0] == exit_codes.DONE.code
  again = say('mirror', run, tmp_path / 'copy', '--step', 1)[1]
  assert 'is a whole copy already' in again


def test_diff_calls_no_damaged_checkpoint_the_same(run, say, tmp_path):
  shutil.copytree(run, tmp_path / 'copy')
  _flip_a_number(tmp_path / 'copy' / 'checkpoint_2')
  code, text = say(
      'diff', run / 'checkpoint_2', tmp_path / 'copy' / 'checkpoint_2'
  )
  assert (code, 'not compared' in text, 'same bits' in text) == (1, True, False)


def test_diff_says_which_arrays_differ_and_by_how_much(run, say):
  one, other = run / 'checkpoint_1', run / 'checkpoint_2'
  code, text = say('diff', one, one)
  assert (code, text.splitlines()[-1]) == (0, 'all have the same bits')
  code, text = say('diff', one, other)
  assert code == exit_codes.FAILED.code
  assert 'target/encoder/kernel: 128 of 128 numbers, by ' in text
  assert 'target/ids' not in text  # the same in both
  assert text.splitlines()[-1] == '4 arrays differ'


@pytest.mark.parametrize(
    'arguments',
    [('verify', 'absent'), ('verify', 'run', '--step', 7), ('pin', 'run')],
)
def test_what_is_not_there_is_an_error_in_three_parts(
    arguments, run, say, monkeypatch
):
  monkeypatch.chdir(run.parent)
  code, text = say(*arguments)
  assert code == exit_codes.BAD_CONFIG.code
  assert 'expected' in text
