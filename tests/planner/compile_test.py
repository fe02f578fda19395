# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Compiling for machines that are not here, and what ends it."""

import json
import os

import pytest

from t5wild import exit_codes
from t5wild import precompile
from t5wild.planner import compile as compile_lib
from t5wild.planner import environment
from t5wild.planner import for_topology
from t5wild.planner import topologies
from t5wild.planner import worker
from tests.planner import tiny_recipe

_TINY = tiny_recipe.ARGUMENTS


@pytest.fixture(autouse=True)
def _flags():
  for_topology.define_flags()


def _stand_in(monkeypatch, tmp_path, text):
  """Has a module of `text` stand in for the process that compiles."""
  (tmp_path / 'stand_in_worker.py').write_text(text)
  monkeypatch.syspath_prepend(tmp_path)
  monkeypatch.setattr(compile_lib, '_MODULE', 'stand_in_worker')


def _request(**arguments):
  return compile_lib.Request(
      arguments=(), topology=topologies.parse('cpu:2'), **arguments
  )


def test_a_compiler_that_aborts_takes_only_its_own_process(
    monkeypatch, tmp_path
):
  _stand_in(monkeypatch, tmp_path, (
      "import os, sys\nprint('F0000 unknown flag', file=sys.stderr)\n"
      'sys.stderr.flush()\nos.abort()\n'
  ))
  with pytest.raises(compile_lib.CompilerEndedError) as error:
    compile_lib.compile_recipe(_request())
  assert 'SIGABRT' in str(error.value)
  assert 'unknown flag' in str(error.value)


def test_a_compiler_that_takes_too_long_is_ended(monkeypatch, tmp_path):
  _stand_in(monkeypatch, tmp_path, 'import time\ntime.sleep(60)\n')
  with pytest.raises(compile_lib.CompilerEndedError, match='ended after 0 s'):
    compile_lib.compile_recipe(_request(timeout_seconds=0.3))


def test_a_refusal_comes_without_the_log(monkeypatch, tmp_path):
  _stand_in(monkeypatch, tmp_path, (
      "import sys\nprint('I1130 12:00:00.0 123 x.py:1] log\\nBad batch.\\n"
      "Expected 8.', file=sys.stderr)\nsys.exit(2)\n"
  ))
  with pytest.raises(compile_lib.RefusedError) as error:
    compile_lib.compile_recipe(_request())
  assert str(error.value) == 'Bad batch.\nExpected 8.'


def test_a_compiler_ends_when_nobody_waits_for_it(tmp_path):
  ended, out = [], tmp_path / 'out'
  out.mkdir()
  (out / 'log.txt').touch()
  worker.end_with(
      os.getppid() + 1, out, period_seconds=60.0, end=ended.append
  )
  assert ended == [exit_codes.FAILED.code]
  assert not out.exists()


@pytest.mark.parametrize(
    ('flags', 'told'),
    [
        (['--topology=h101:8', *_TINY], "Did you mean 'h100'?"),
        (['--topology=cpu:4'], '--gin_file is missing'),
        (['--topology=cpu:4', '--programs=fly', *_TINY], "['fly']"),
        (['--programs=eval', *_TINY], 'without --topology'),
        (
            ['--topology=cpu:4', '--compile_timeout_seconds=-5', *_TINY],
            '--compile_timeout_seconds=-5.\nExpected a number above 0',
        ),
        (
            ['--topology=cpu:4', '--output_dir=/dev/null/x', *_TINY],
            '--output_dir=/dev/null/x cannot be written',
        ),
    ],
)
def test_flags_that_do_not_go_together_are_refused(flags, told, capsys):
  code = precompile.run(['t5wild precompile', *flags])
  assert code == exit_codes.BAD_CONFIG.code
  assert told in capsys.readouterr().err


def test_a_missing_compiler_is_no_traceback(monkeypatch, capsys):
  monkeypatch.setattr(environment, 'version_of', lambda name: None)
  code = precompile.run(['t5wild precompile', '--topology=v5e:2x2', *_TINY])
  assert code == exit_codes.BAD_CONFIG.code
  assert 'pip install' in capsys.readouterr().err


@pytest.mark.slow
def test_all_programs_compile_for_a_virtual_mesh_and_leave_their_files(
    tmp_path, capsys
):
  code = tiny_recipe.compile_for(
      'cpu:8', tmp_path, '--programs=train,eval,decode'
  )
  shown = capsys.readouterr()
  assert code == exit_codes.DONE.code, shown.err
  assert 'data 4 x model 2' in shown.out
  assert 'says nothing of a GPU or TPU' in shown.out
  found = json.loads((tmp_path / 'precompile/cpu-8.json').read_text())
  assert set(found['programs']) == {'train', 'eval', 'decode'}
  train = found['programs']['train']
  kinds = {(t['kind'], tuple(t['axes'])) for t in train['collectives']}
  assert ('all-reduce', ('model',)) in kinds
  assert found['recipe']['batch']['encoder_input_tokens'] == [16, 16]
  assert train['bytes']['parameters'] > 0
  assert (tmp_path / 'precompile/cpu-8.png').stat().st_size > 1000


@pytest.mark.slow
def test_t5x_precompile_gin_file_is_understood(tmp_path, capsys):
  code = precompile.run([
      't5wild precompile', '--topology=cpu:4',
      '--gin_file=t5x/examples/t5/t5_1_1/tiny.gin',
      '--gin_file=t5x/configs/runs/precompile.gin',
      '--gin.MIXTURE_OR_TASK_NAME=no_such_task', '--gin.BATCH_SIZE=8',
      "--gin.TASK_FEATURE_LENGTHS={'inputs': 16, 'targets': 8}",
      '--gin.DROPOUT_RATE=0.0', f'--gin.MODEL_DIR={tmp_path}',
  ])  # fmt: skip
  shown = capsys.readouterr()
  assert code == exit_codes.DONE.code, shown.err
  assert 'mesh data 4' in shown.out
  assert (tmp_path / 'precompile/cpu-4.json').exists()


@pytest.mark.slow
def test_what_is_wrong_with_one_program_is_told_before_any_is_compiled(
    tmp_path, capsys
):
  code = tiny_recipe.compile_for(
      'cpu:8', tmp_path, '--programs=train,decode',
      '--gin.VOCABULARY=@seqio.SentencePieceVocabulary()',
      "--gin.seqio.SentencePieceVocabulary.sentencepiece_model_file='none'",
      f'--vocab_dir={tmp_path}',
  )  # fmt: skip
  assert code == exit_codes.BAD_CONFIG.code
  assert "model 'none' cannot be read" in capsys.readouterr().err
  assert not (tmp_path / 'precompile').exists()


@pytest.mark.slow
def test_a_mesh_that_does_not_divide_is_refused_before_compiling(
    tmp_path, capsys
):
  code = tiny_recipe.compile_for('cpu:3', tmp_path)
  assert code == exit_codes.BAD_CONFIG.code
  assert 'does not fit the 3 device(s)' in capsys.readouterr().err
