# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What the quickstart tells before and after its run."""

import shlex
import sys
import types

import pytest

from t5wild.quickstart import held_out
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
  # The rate begins at that step, too.
  assert shlex.split(tuned)[-3:] == [
      '--gin.INITIAL_CHECKPOINT_PATH=x/checkpoint_20',
      '--gin.TRAIN_STEPS=620',
      '--gin.optimizers.create_learning_rate_scheduler.warmup_steps=20',
  ]


def _summary(options, *, step, nats, exact, monkeypatch) -> str:
  result = held_out.Result(
      step=step, nats_per_byte=nats, unigram_entropy=3.0, num_bytes=12345,
      num_spans=100, mean_span_bytes=1.1, exact_fraction=exact,
      most_frequent_fraction=0.25,
  )  # fmt: skip
  monkeypatch.setattr(held_out, 'load_results', lambda path: [result])
  return '\n'.join(quickstart._summary(options))


@pytest.mark.parametrize(
    ('nats', 'exact'), [(2.9, 0.9), (1.0, 0.3), (2.9, 0.3)]
)
def test_a_short_run_that_misses_a_bar_says_quietly_what_reaches_it(
    nats, exact, monkeypatch
):
  options = _options('--steps=20', '--model_dir=x y', '--text=mine.txt')
  said = _summary(
      options, step=20, nats=nats, exact=exact, monkeypatch=monkeypatch
  )
  command = next(
      line for line in said.splitlines() if 't5wild quickstart' in line
  )
  assert shlex.split(command)[2:] == [
      '--text', 'mine.txt', '--model_dir', 'x y',
      '--steps', str(quickstart.DEFAULT_STEPS),
  ]  # fmt: skip
  assert 'this was 20' in said
  assert 'MORE THAN' not in said and 'LESS THAN' not in said


def test_a_whole_run_that_misses_a_bar_says_so_loudly(monkeypatch):
  steps = quickstart.DEFAULT_STEPS
  said = _summary(
      _options(), step=steps, nats=2.9, exact=0.3, monkeypatch=monkeypatch
  )
  assert 'MORE THAN 0.75' in said and 'LESS THAN 2' in said
  assert f'--steps {2 * steps}' in said


def test_a_run_over_the_bars_is_told_nothing_more(monkeypatch):
  said = _summary(
      _options(), step=20, nats=1.0, exact=0.9, monkeypatch=monkeypatch
  )
  assert '--steps' not in said
  assert 'a sample of 12,345 bytes' in said


def test_a_run_that_goes_on_is_not_told_to_begin(tmp_path):
  options = _options('--model_dir', str(tmp_path))
  assert 'untrained' in '\n'.join(quickstart._plan(options))
  (tmp_path / 'checkpoint_20').mkdir()
  assert 'untrained' not in '\n'.join(quickstart._plan(options))


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
