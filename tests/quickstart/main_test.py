# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What the quickstart tells before and after its run."""

import shlex
import sys
import types

import pytest

from t5wild.quickstart import main as quickstart


def _options(*arguments):
  return quickstart._parser().parse_args(arguments)


def _next(*arguments) -> str:
  lines = quickstart._next_commands(_options(*arguments))
  return '\n'.join(lines).replace('\\\n', ' ')


@pytest.mark.parametrize(
    'arguments', [[], ['--steps', '20'], ['--model_dir', 'mine']]
)
def test_every_command_that_follows_is_about_this_very_run(arguments):
  options = _options(*arguments)
  said = _next(*arguments)
  mesh = next(line for line in said.splitlines() if '_mesh' in line)
  assert f'--gin.TRAIN_STEPS={options.steps}' in shlex.split(mesh)
  assert f't5wild infer --run={options.model_dir} ' in said
  assert f't5wild eval --run={options.model_dir}\n' in said


def test_fine_tuning_begins_with_the_checkpoint_that_this_run_leaves():
  assert 'INITIAL_CHECKPOINT_PATH' not in _next()
  tuned = next(
      line for line in _next('--steps=20', '--model_dir=x').splitlines()
      if quickstart.FINETUNE_RECIPE in line
  )
  assert shlex.split(tuned)[-2:] == [
      '--gin.INITIAL_CHECKPOINT_PATH=x/checkpoint_20',
      '--gin.TRAIN_STEPS=620',
  ]


def test_the_text_and_folder_are_told_before_anything_is_imported(
    monkeypatch, capsys
):
  said = []
  train = types.SimpleNamespace(
      run=lambda argv: said.append(capsys.readouterr().out) or 3
  )
  monkeypatch.setitem(sys.modules, 't5wild.train', train)
  monkeypatch.setattr('t5wild.train', train, raising=False)
  code = quickstart.main(['--text=mine.txt', '--model_dir=x', '--steps=20'])
  assert code == 3
  assert all(word in said[0] for word in ('mine.txt', 'to step 20', 'to x.'))
