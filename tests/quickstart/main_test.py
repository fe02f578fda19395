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
    monkeypatch, capsys, tmp_path
):
  monkeypatch.chdir(tmp_path)
  (tmp_path / 'mine.txt').touch()
  said = []
  train = types.SimpleNamespace(
      run=lambda argv: said.append(capsys.readouterr().out) or 3
  )
  monkeypatch.setitem(sys.modules, 't5wild.train', train)
  monkeypatch.setattr('t5wild.train', train, raising=False)
  code = quickstart.main(['--text=mine.txt', '--model_dir=x', '--steps=20'])
  assert code == 3
  assert all(word in said[0] for word in ('mine.txt', 'to step 20', 'to x.'))


@pytest.fixture
def begun(tmp_path, monkeypatch):
  """A run on a text of the user's, `mine.txt`; makes another text of it."""
  monkeypatch.chdir(tmp_path)
  (tmp_path / 'run' / 'checkpoint_20').mkdir(parents=True)
  (tmp_path / 'mine.txt').touch()
  (tmp_path / 'other').mkdir()

  def make(text):
    (tmp_path / 'run' / 'operative_config.gin').write_text(
        f'TASK = 1\nTEXT = {text!r}\nlocal_text.text_task.paths = %TEXT\n'
    )

  make(str(tmp_path / 'mine.txt'))
  return make


@pytest.fixture
def refused(capsys, monkeypatch):
  """What is said where nothing can be trained."""
  monkeypatch.setitem(sys.modules, 't5wild.train', None)

  def said(*arguments):
    assert quickstart.main(['--model_dir=run', *arguments]) == 2
    return capsys.readouterr().out

  return said


@pytest.mark.parametrize(
    ('arguments', 'told'),
    [
        (['--text=other'], ['mine.txt\n', 'other\n', '--text /']),
        ([], ['mine.txt\n', 'standard library', '--text /']),
    ],
)
def test_a_run_on_other_text_is_told_before_anything_is_imported(
    begun, refused, arguments, told
):
  said = refused(*arguments)
  assert all(word in said for word in told)
  assert 'Expected the same text' in said and '--model_dir' in said
  begun(None)
  assert 'go on without --text' in refused('--text=other')


@pytest.mark.parametrize(
    'arguments', [['--text=mine.txt'], ['--gin.TEXT=elsewhere']]
)
def test_a_run_on_the_same_text_goes_on(begun, arguments):
  del begun
  options, rest = quickstart._parser().parse_known_args(
      ['--model_dir=run', *arguments]
  )
  assert quickstart._check(options, rest) is None


def test_a_text_that_was_moved_is_left_to_the_data(begun, tmp_path):
  begun(str(tmp_path / 'gone.txt'))
  assert quickstart._check(_options('--model_dir=run', '--text=other'), []) is (
      None
  )


def test_a_run_whose_text_is_not_known_is_left_to_the_data(begun, tmp_path):
  del begun
  (tmp_path / 'run' / 'operative_config.gin').write_text('TEXT = @mine()\n')
  options = _options('--model_dir=run', '--text=other')
  assert quickstart._check(options, []) is None


def test_a_text_that_is_not_there_is_told_before_anything_is_imported(
    refused, tmp_path, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  said = refused('--text=absent/*.txt')
  assert "'absent/*.txt'" in said and str(tmp_path) in said
  assert 'expected a file, a folder or a glob' in said
  (tmp_path / 'a[1].txt').touch()
  assert quickstart._check(_options('--text=a[1].txt'), []) is None


@pytest.mark.parametrize('flag', ['--stepz', '--setps=7', '--model-dirs=x'])
def test_a_misspelt_flag_is_told_before_anything_is_imported(refused, flag):
  said = refused(flag)
  assert 'did you mean --' in said and '--steps' in said
  options = _options()
  assert quickstart._check(options, ['--vocab_dir=x', '--dry_run']) is None
