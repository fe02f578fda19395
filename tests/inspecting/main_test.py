# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild data inspect` of everything that it can look at, and of nothing."""

import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

from t5wild import exit_codes
from t5wild.inspecting import main as main_lib
from tests.data import caches
from tests.data import seqio_caches_test
from tests.data import tables_test

_ROOT = pathlib.Path(__file__).parents[2]
_SAVED = _ROOT / 'tests' / 'data' / 'hugging_face_files' / 'saved'


@pytest.fixture(scope='module')
def tokens(tmp_path_factory):
  root = tmp_path_factory.mktemp('tokens')
  documents = caches.texts(50)
  caches.write(root, [*documents, documents[7], documents[7]])
  return root


@pytest.fixture(scope='module')
def pairs(tmp_path_factory):
  root = tmp_path_factory.mktemp('pairs')
  caches.write(root, caches.pairs(80), task='pairs')
  return root


def test_a_cache_of_tokens_is_shown_with_its_objective(tokens, inspect):
  code, text = inspect(
      tokens, '--objective=span_corruption',
      "--task_feature_lengths={'inputs': 64, 'targets': 32}",
  )  # fmt: skip
  assert code == exit_codes.DONE.code
  for words in ('record cache of tokens', 'span_corruption', 'best fit',
                'row 3, decoder', 'encoder sees encoder'):  # fmt: skip
    assert words in text
  assert 'documents repeat an earlier one' in text


@pytest.mark.parametrize('objective', ['lm', 'prefix_lm', 'ul2', 'fim'])
def test_any_objective_is_applied_to_a_cache_of_tokens(
    objective, tokens, inspect
):
  code, text = inspect(
      tokens, f'--objective={objective}',
      "--task_feature_lengths={'inputs': 64, 'targets': 64}",
  )  # fmt: skip
  assert code == exit_codes.DONE.code, text
  assert ('encoder sees encoder' in text) == (objective != 'lm')


def test_a_cache_of_examples_tells_what_lengths_cut_off(pairs, inspect):
  code, text = inspect(
      pairs, '--layout=prefix_lm',
      "--task_feature_lengths={'inputs': 64, 'targets': 16}",
  )  # fmt: skip
  assert code == exit_codes.DONE.code
  wanted = sum(each['inputs'].size > 64 for each in caches.pairs(80))
  assert f'{wanted} ({wanted / 80:.1%})' in text
  assert 'inputs+targets' in text


def test_the_page_and_the_picture_are_written_where_asked(
    pairs, inspect, tmp_path
):
  code, text = inspect(pairs, '--rows=1', f'--out={tmp_path / "new"}')
  assert code == exit_codes.DONE.code
  assert 'inspect.html' in text
  page = (tmp_path / 'new' / 'inspect.html').read_text('utf-8')
  assert page.endswith('</html>\n') and 'record cache of examples' in page
  assert (tmp_path / 'new' / 'inspect.png').stat().st_size > 10_000


@pytest.mark.parametrize('name', ['jsonl', 'jsonl.gz', 'parquet', 'arrow',
                                  'tfrecord', 'tfrecord.gz'])  # fmt: skip
def test_every_kind_of_table_is_shown(name, inspect, tmp_path):
  path = tables_test.write(tmp_path / f'a.{name}')
  code, text = inspect(
      path, '--inputs=number {number}: {text}', '--targets=text'
  )
  assert code == exit_codes.DONE.code
  assert 'number␣0:␣text'.replace('␣', ' ') in text
  assert 'ids (tokens)' in text


def test_an_objective_has_the_sentinels_that_it_asks_for(inspect, tmp_path):
  path = tables_test.write(tmp_path / 'a.jsonl')
  code, text = inspect(path, '--text_field=text', '--objective=ul2')
  assert code == exit_codes.BAD_CONFIG.code
  needed = re.search(r'extra_ids=\s*(\d+)', text)[1]
  code, text = inspect(
      path, '--text_field=text', '--objective=ul2', f'--extra_ids={needed}'
  )
  assert code == exit_codes.DONE.code, text


def test_text_is_shown_as_documents_and_their_chunks(inspect, tmp_path):
  for n in range(3):
    (tmp_path / f'{n}.txt').write_text(f'{n} some words ' * 40)
  code, text = inspect(
      tmp_path, "--task_feature_lengths={'targets': 100}", '--rows=2'
  )
  assert code == exit_codes.DONE.code
  assert 'causal_lm' in text and 'decoder sees decoder' in text
  assert '0 some words' in text


def test_a_hugging_face_folder_and_a_cache_of_seqio_are_shown(
    inspect, tmp_path
):
  code, text = inspect(_SAVED, '--inputs=translation.en', '--targets=label',
                       '--split=test')  # fmt: skip
  assert code == exit_codes.DONE.code
  assert 'sentence 2' in text and 'test (of train, test)' in text
  code, text = inspect(seqio_caches_test.write(tmp_path / 'mine'))
  assert code == exit_codes.DONE.code
  assert 'cache of seqio' in text


def test_a_folder_of_tables_is_told_from_one_of_text(inspect, tmp_path):
  rows = [{'text': f'{split} {n}'} for split in ('train', 'test')
          for n in range(9)]  # fmt: skip
  tables_test.write(tmp_path / 'x-train.tfrecord-00000-of-00001', [
      {**row, 'number': 1, 'ids': [1]} for row in rows[:9]
  ])  # fmt: skip
  tables_test.write(tmp_path / 'x-test.tfrecord-00000-of-00001', [
      {**row, 'number': 1, 'ids': [1]} for row in rows[9:]
  ])  # fmt: skip
  (tmp_path / 'README.md').write_text('about it')
  (tmp_path / 'load.py').write_text('print(1)')
  code, text = inspect(tmp_path, '--text_field=text', '--split=test')
  assert code == exit_codes.DONE.code
  assert 'test (of test, train)' in text and 'test 8' in text
  assert 'train 8' not in text


def test_marks_tell_examples_and_loss_where_there_are_no_colours(
    pairs, inspect
):
  _, text = inspect(pairs, '--layout=prefix_lm', '--rows=2')
  rows = text[text.index('row 0, decoder') : text.index('Who sees whom')]
  examples = [int(n) for n in re.findall(r'(\d+) examples\n', rows)]
  # Once in the bar, as far as it has room, and once in the text.
  assert rows.count('⟫') == sum(examples)
  assert sum(examples) <= rows.count('┃') <= 2 * sum(examples)


def test_corrupt_lines_are_counted(inspect, tmp_path):
  path = tmp_path / 'a.jsonl'
  lines = [json.dumps({'text': f'text {n}'}) for n in range(20)]
  path.write_text('\n'.join([*lines, 'nonsense', '{"text": 1']))
  code, text = inspect(path)
  assert code == exit_codes.DONE.code
  assert '2 corrupt lines or rows were left out' in text


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        ([], 'nothing is named'), (['absent.jsonl'], 'no such text file'),
        (['TOKENS', '--split=test'], "--split is 'test'"),
        (['TOKENS', '--objective=spam'], "--objective is 'spam'"),
        (['TOKENS', '--examples=0'], '--examples is 0'),
        (['TOKENS', '--rows=0'], '--rows is 0'),
        (['TOKENS', '--extra_ids=5'], 'has a vocabulary of its own'),
        (['TABLE', '--extra_ids=-1'], '--extra_ids is -1'),
        (['TABLE', '--text_field=text', '--objective=ul2', '--extra_ids=9'],
         't5wild data inspect takes --extra_ids'),
        (['PAIRS', "--task_feature_lengths={'inputs': 4}"], "Add ['targets']"),
        (['TABLE', '--inputs=nothing'], "no column 'nothing'"),
        (['TABLE', '--split=valid'], "no split 'valid'"),
        (['TABLE', '--vocabulary=absent.model'], 'absent.model'),
        (['SAVED', '--text_field=texts'], "did you mean 'text'?"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_is_refused(
    arguments, words, tokens, pairs, inspect, tmp_path
):
  places = {
      'TOKENS': tokens, 'PAIRS': pairs, 'SAVED': _SAVED,
      'TABLE': tables_test.write(tmp_path / 'a.jsonl'),
  }  # fmt: skip
  code, text = inspect(*(places.get(each, each) for each in arguments))
  assert code == exit_codes.BAD_CONFIG.code
  assert words in text
  assert 'Traceback' not in text


def test_another_word_than_inspect_is_refused(capsys):
  assert main_lib.main(['spect']) == exit_codes.BAD_CONFIG.code
  assert "expected 'inspect'" in capsys.readouterr().err
  assert main_lib.main(['--help']) == exit_codes.DONE.code


@pytest.mark.slow
def test_caches_and_files_need_neither_seqio_nor_tensorflow(tokens, tmp_path):
  path = tables_test.write(tmp_path / 'a.tfrecord')
  code = f"""
import sys
for name in ('seqio', 'tensorflow', 'tensorflow_datasets'):
  sys.modules[name] = None  # as if it were not installed
from t5wild.inspecting import main
sys.exit(main.main(['inspect', {str(tokens)!r}])
         or main.main(['inspect', {path!r}, '--text_field=text']))
"""
  done = subprocess.run(
      [sys.executable, '-c', code], capture_output=True, text=True, check=False
  )
  assert done.returncode == 0, done.stderr
  assert 'record cache of tokens' in done.stdout
  assert 'tfrecord file' in done.stdout


@pytest.mark.slow
class TestLiveTasks:
  """What needs seqio."""

  @pytest.fixture(autouse=True)
  def _seqio(self):
    pytest.importorskip('seqio')

  def test_a_task_tells_what_append_eos_after_trim_cuts_off(self, inspect):
    code, text = inspect(
        'function_name_python_stdlib', '--module=t5wild.tasks.python_stdlib',
        "--task_feature_lengths={'inputs': 64, 'targets': 8}",
        '--examples=200',
    )  # fmt: skip
    assert code == exit_codes.DONE.code
    assert 'tokenize → append_eos_after_trim' in text
    assert 'lose the end of their targets' in text

  def test_an_unknown_task_is_refused_with_near_names(self, inspect):
    code, text = inspect(
        'function_name_python_stdlb', '--module=t5wild.tasks.python_stdlib'
    )
    assert code == exit_codes.BAD_CONFIG.code
    assert "did you mean 'function_name_python_stdlib'" in text

  def test_an_unknown_split_is_refused_with_those_there_are(self, inspect):
    code, text = inspect(
        'function_name_python_stdlib', '--split=valid',
        '--module=t5wild.tasks.python_stdlib',
    )  # fmt: skip
    assert code == exit_codes.BAD_CONFIG.code
    assert "['train', 'validation']" in text

  def test_a_task_reads_its_cache_of_seqio(self, inspect, tmp_path):
    import seqio

    seqio_caches_test.write(tmp_path / 'inspected_cache')
    seqio.TaskRegistry.remove('inspected_cache')
    seqio.TaskRegistry.add(
        'inspected_cache',
        source=seqio.FunctionDataSource(
            lambda split, shuffle_files: None, splits=('train', 'validation')
        ),
        preprocessors=[
            seqio.CacheDatasetPlaceholder(required=True),
            seqio.preprocessors.append_eos,
        ],
        output_features={
            name: seqio.Feature(vocabulary=seqio.ByteVocabulary(125))
            for name in ('inputs', 'targets')
        },
    )
    before = list(seqio.get_global_cache_dirs())
    try:
      code, text = inspect(
          'inspected_cache', '--use_cached',
          f'--seqio_additional_cache_dirs={tmp_path}',
      )  # fmt: skip
      assert code == exit_codes.DONE.code
      assert "seqio's cache" in text
      code, text = inspect(seqio_caches_test.write(tmp_path / 'same'))
      assert code == exit_codes.DONE.code
    finally:
      seqio.set_global_cache_dirs(before)
      seqio.TaskRegistry.remove('inspected_cache')


@pytest.mark.slow
def test_a_recipe_is_shown_as_its_model_gets_it(tmp_path):
  pytest.importorskip('seqio')
  path = tmp_path / 'a.jsonl'
  rows = [{'text': f'some text {n}', 'label': n % 3} for n in range(90)]
  path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
  done = subprocess.run(
      [
          sys.executable, '-m', 't5wild.cli', 'data', 'inspect',
          '--gin_file=recipes/prefix_lm_text.gin',
          '--gin_file=sources/files.gin', f'--gin.FILES={path}',
          '--gin_file=sources/pairs.gin', '--gin.INPUTS=label of {text}:',
          '--gin.TARGETS=label', f'--out={tmp_path}',
      ],
      capture_output=True, text=True, check=False, cwd=_ROOT,
  )  # fmt: skip
  assert done.returncode == 0, done.stderr[-2000:]
  page = (tmp_path / 'inspect.html').read_text('utf-8')
  for words in ('TableSource', 'prefix-lm', 'label of some text',
                'decoder sees decoder'):  # fmt: skip
    assert words in page


def test_documents_of_a_cache_are_compared_beyond_what_is_shown(
    inspect, tmp_path
):
  documents = caches.texts(40)
  caches.write(tmp_path, [*documents, documents[-1]], num_shards=1)
  code, text = inspect(tmp_path, '--examples=5')
  assert code == exit_codes.DONE.code
  assert np.unique([len(each) for each in documents]).size > 5
  assert 'repeat an earlier one' in text
  assert '5 of ' in text
