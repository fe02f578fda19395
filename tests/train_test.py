# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What the training binary says of a recipe that cannot work."""

import io
import pathlib
import signal
import subprocess
import sys
import threading
import types

from absl import flags
from absl.testing import flagsaver
import gin
from gin import utils as gin_utils
import pytest

from t5wild import command_line
from t5wild import exit_codes
from t5wild import precompile
from t5wild import train as train_module
from t5wild import training_plan
from t5wild.checkpoints import configs
from t5wild.checkpoints import tiers
from t5wild.data import documents
from t5wild.partitioning import distributed
from t5wild.trainer import preemption


def _as_bad_plan(raiser):
  try:
    try:
      raiser()
    except Exception as error:
      raise training_plan.BadPlanError(str(error)) from error
  except training_plan.BadPlanError as error:
    return error


def test_a_message_of_ours_comes_without_a_traceback():
  error = _as_bad_plan(
      lambda: training_plan.TrainingPlan(
          **{name: None for name in _fields()} | {'use_orbax': False}
      )
  )
  said = command_line.complaint(error)
  assert said.startswith('use_orbax = False')
  assert 'Traceback' not in said


def test_what_other_code_raised_comes_with_its_place():
  said = command_line.complaint(_as_bad_plan(lambda: int('x')))
  assert 'Traceback' in said
  assert 'train_test.py' in said
  assert said.endswith("invalid literal for int() with base 10: 'x'")


def test_the_line_that_gin_adds_is_left_out():
  error = ValueError("bad\n  In call to configurable 'train' (<function>)")
  assert command_line.complaint(error) == 'bad'


def test_an_action_that_gin_cannot_make_is_told_in_three_parts(
    tmp_path, capsys
):
  recipe = pathlib.Path(__file__).parent / 'end_to_end' / 'synthetic.gin'
  arguments = [
      f'--gin_file={recipe}', f'--gin.MODEL_DIR={tmp_path}/run',
      "--gin.train_script.train.actions={'TRAIN': "
      '[@trainer.TerminateOnNanAction()]}',
  ]  # fmt: skip
  gin.clear_config()
  train_module.define_flags()
  try:
    with flagsaver.flagsaver():
      assert train_module.run(['t5wild train', *arguments]) == 2
  finally:
    gin.clear_config()
  said = capsys.readouterr().err
  assert "called without ['task']" in said and 'expected a value' in said
  assert 'TerminateOnNanAction.task = ...' in said
  assert 'Traceback' not in said


@pytest.mark.parametrize('flag', ['--gin_fil=x', '--nonsense'])
def test_an_unknown_flag_is_a_bad_config(flag, capsys):
  assert train_module.run(['t5wild train', flag]) == 2
  assert 'Try --help' in capsys.readouterr().err


def test_a_setting_given_as_a_flag_is_told_the_way_of_gin(capsys):
  assert train_module.run(['t5wild train', '--batch_size=4']) == 2
  assert '--gin.BATCH_SIZE=VALUE' in capsys.readouterr().err


@pytest.mark.parametrize('words', [['MODEL_DIR=x'], ['gin.MODEL_DIR=x', 'y']])
def test_words_that_belong_to_no_flag_are_refused(words, capsys):
  given = ['t5wild train', '--gin_file=recipes/quickstart.gin', *words]
  assert train_module.run(given) == 2
  told = capsys.readouterr().err
  assert str(words) in told and '--gin.MODEL_DIR=x' in told


def test_a_log_on_a_full_disk_hides_no_exit_code(monkeypatch):
  with open('/dev/full', 'wb', buffering=0) as full:
    stderr = io.TextIOWrapper(full, write_through=True)
    monkeypatch.setattr(sys, 'stderr', stderr)
    assert train_module.run(['t5wild train', '--nonsense']) == 2
    stderr.detach()


@pytest.mark.parametrize('binary', [train_module, precompile])
def test_a_command_without_a_recipe_asks_for_one(binary, capsys):
  with flagsaver.flagsaver():
    assert binary.run(['t5wild train', '--gin.TRAIN_STEPS=3']) == 2
  said = capsys.readouterr().err
  assert said.startswith('--gin_file is missing') and 'quickstart.gin' in said
  assert 'Traceback' not in said


def test_flags_that_t5x_users_pass_are_taken(monkeypatch):
  _start_with(lambda dry_run: None, monkeypatch)
  with flagsaver.flagsaver():
    code = train_module.run([
        't5wild train', '--gin_file=a.gin', '--gin.A=1', '--gin_bindings=B = 2',
        '--gin_search_paths=/x,/y', '--logtostderr', '--alsologtostderr',
        '--jax_backend=cpu', '--jax_backend_target=x', '--jax_xla_backend=x',
        '--tfds_data_dir=/tfds', '--multiprocess_gpu', '--process_count=2',
        '--process_index=0', '--coordinator_address=a:1', '--dry_run',
    ])  # fmt: skip
    values = flags.FLAGS
    assert values.gin_bindings == ['A = 1', 'B = 2']
    assert values.gin_search_paths == ['/x', '/y']
    assert values.logtostderr and values.alsologtostderr
    assert values.multiprocess_gpu and values.process_count == 2
  assert code == 0


@pytest.mark.parametrize('kind', [FileNotFoundError, KeyError, TypeError])
def test_arguments_that_cannot_be_made_are_a_bad_config(
    kind, monkeypatch, capsys
):
  def fail(*unused, **unused_too):
    raise kind('no such text file')

  _start_with(fail, monkeypatch)
  assert train_module.run(['t5wild train']) == 2
  assert 'no such text file' in capsys.readouterr().err


def test_corrupt_text_is_told_in_one_line_however_late(monkeypatch, capsys):
  def fail(*unused, **unused_too):
    train_module._ARGUMENTS_ARE_GOOD.set()
    raise documents.CorruptTextError('a.txt, line 3 is corrupt')

  _start_with(fail, monkeypatch)
  assert train_module.run(['t5wild train']) == 2
  said = capsys.readouterr().err
  assert 'a.txt, line 3 is corrupt' in said


@pytest.mark.parametrize('is_ready', [True, False])
def test_who_waited_in_vain_for_another_process_has_lost_a_peer(
    is_ready, monkeypatch, capsys
):
  def fail(*unused, **unused_too):
    if is_ready:
      train_module._ARGUMENTS_ARE_GOOD.set()
    with training_plan.as_bad_plan():
      raise distributed.BarrierTimeoutError("'restore': missing: [1]")

  _start_with(fail, monkeypatch)
  code = train_module.run(['t5wild train'])
  assert code == exit_codes.LOST_PEER.code
  assert 'missing: [1]' in capsys.readouterr().err


def test_an_error_nobody_foresaw_is_not_taken_for_a_bad_config(monkeypatch):
  def fail(*unused, **unused_too):
    train_module._ARGUMENTS_ARE_GOOD.set()
    raise ValueError('in step 40')

  _start_with(fail, monkeypatch)
  with pytest.raises(ValueError, match='in step 40'):
    train_module.run(['t5wild train'])


def _start_with(function, monkeypatch):
  def call_as_gin_does(*args, **kwargs):
    try:
      return function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 -- as gin does
      gin_utils.augment_exception_message_and_reraise(
          error, "\n  In call to configurable 'train'"
      )

  monkeypatch.setattr(command_line, 'start_processes', lambda: None)
  monkeypatch.setattr(command_line, 'parse_gin', lambda **objects: None)
  monkeypatch.setattr(command_line, 'use_data_dirs', lambda: None)
  monkeypatch.setattr(train_module.compilation_cache, 'start', lambda: None)
  monkeypatch.setattr(
      train_module.gin_utils, 'configured', lambda *_, **__: call_as_gin_does
  )
  monkeypatch.setattr(
      train_module, '_ARGUMENTS_ARE_GOOD', threading.Event()
  )


def _fields():
  return training_plan.TrainingPlan.__dataclass_fields__


class _FullDiskError(OSError):
  """What a binary says of its output."""


@pytest.mark.parametrize(
    ('raised', 'code', 'said'),
    [
        (_FullDiskError('no space for out'), 80, 'no space for out\n'),
        (KeyboardInterrupt(), 130, 'Stopped by Ctrl-C. The same command'),
    ],
)
def test_what_ends_a_binary_late_is_told_without_a_traceback(
    raised, code, said, monkeypatch, capsys
):
  monkeypatch.setattr(command_line, 'start_processes', lambda: None)
  is_ready = threading.Event()

  def start():
    is_ready.set()
    raise raised

  found = command_line.run_binary(
      start, is_ready=is_ready, for_the_user=(), not_written=(_FullDiskError,)
  )
  assert found == code
  assert capsys.readouterr().err.startswith(said)


def test_a_reader_that_goes_away_ends_a_binary_without_a_word():
  program = (
      'import sys, threading\n'
      'from t5wild import command_line\n'
      'command_line.start_processes = lambda: None\n'
      'def start():\n'
      '  while True:\n'
      "    print('x' * 10000, flush=True)\n"
      'sys.exit(command_line.run_binary(\n'
      '    start, is_ready=threading.Event(), for_the_user=()))\n'
  )
  with subprocess.Popen(
      [sys.executable, '-c', program],
      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
  ) as process:  # fmt: skip
    process.stdout.readline()
    process.stdout.close()
    said = process.stderr.read()
  assert process.returncode == 128 + signal.SIGPIPE
  assert 'Traceback' not in said
  assert 'Error' not in said


def test_settings_of_what_nothing_makes_are_warned_of(monkeypatch, caplog):
  """T5X's runs/pretrain.gin restores nothing, whatever path is given."""
  given = {
      configs.RestoreCheckpointConfig: {'path': '/pretrained'},
      tiers.FastTier: {'directory': '/dev/shm/run'},
  }
  monkeypatch.setattr(
      train_module.gin_utils, 'bound', lambda kind: given.get(kind, {})
  )
  monkeypatch.setattr(train_module, '_ARGUMENTS_ARE_GOOD', threading.Event())
  fast = tiers.FastTier(directory='/dev/shm/run', period=5)
  save = configs.SaveCheckpointConfig(tiers=[fast])
  with caplog.at_level('WARNING', logger='absl'):
    for restore in (configs.RestoreCheckpointConfig(path='/pretrained'), None):
      checkpoint_cfg = configs.CheckpointConfig(save=save, restore=restore)
      train_module._accept(
          types.SimpleNamespace(checkpoint_cfg=checkpoint_cfg)
      )
  (warning,) = [record.getMessage() for record in caplog.records]
  assert "RestoreCheckpointConfig has {'path': '/pretrained'}" in warning
  assert 'CheckpointConfig.restore = @' in warning


def test_ctrl_c_ends_training_in_one_line(monkeypatch, capsys):
  def interrupt(*unused, **unused_too):
    raise KeyboardInterrupt

  monkeypatch.setattr(command_line, 'parse_gin', lambda **_: None)
  monkeypatch.setattr(
      train_module.gin_utils, 'configured', lambda *_, **__: interrupt
  )
  assert train_module.run(['t5wild train', '--gin_file=x']) == 130
  assert capsys.readouterr().err.startswith('Stopped by Ctrl-C. The same')


@pytest.mark.parametrize(
    ('by_keyboard', 'code', 'words'),
    [(False, 75, 'asked to stop by SIGTERM'), (True, 130, 'stopped by Ctrl-C')],
)
def test_a_run_that_was_asked_to_stop_says_so_in_one_line(
    by_keyboard, code, words, monkeypatch, caplog
):
  def stopped(dry_run):
    try:
      raise preemption.Preempted(7, by_keyboard=by_keyboard)
    except preemption.Preempted as error:
      gin_utils.augment_exception_message_and_reraise(
          error, "\n  In call to configurable 'train' (<function>)"
      )

  monkeypatch.setattr(command_line, 'parse_gin', lambda **_: None)
  monkeypatch.setattr(
      train_module.gin_utils, 'configured', lambda *_, **__: stopped
  )
  with caplog.at_level('WARNING', logger='absl'):
    assert train_module.run(['t5wild train', '--gin_file=x']) == code
  (said,) = [
      record.getMessage() for record in caplog.records
      if 'step 7' in record.getMessage()
  ]
  assert said.startswith(words)
  assert '\n' not in said
