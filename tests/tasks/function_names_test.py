# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The task to name functions: what it asks for, and what it gives away."""

import ast
import re

import numpy as np
import pytest

from t5wild.data import datasets
from t5wild.data import text_files
from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.tasks import function_names
from t5wild.tasks import local_text

seqio = pytest.importorskip('seqio')

LENGTHS = {'inputs': 128, 'targets': 32}
SOURCE = '''\
import os

class Shelf:
  """A shelf."""

  @property
  def is_empty(self):
    """Whether is_empty, and not is_empty_handed."""
    return not self.books

  async def find(self, title):
    def matches(book):
      return book.title == title
    return [book for book in self.books if matches(book)]

def walk(top):
  \'\'\'Walks,
  after os.walk.\'\'\'
  return os.walk(top)
'''


@pytest.fixture
def folder(tmp_path):
  for index in range(12):
    source = ''.join(
        f'def name_{index}_{number}(x):\n  return x + {number}\n\n'
        for number in range(index + 1)
    )
    (tmp_path / f'{index}.py').write_text(source)
  return tmp_path


def names_of(task, split):
  dataset = task.get_dataset(LENGTHS, split, shuffle=False)
  return [
      example['targets_pretokenized'].decode()
      for example in dataset.as_numpy_iterator()
  ]


def test_each_function_gives_its_lines_without_its_name():
  found = {
      example['targets']: example['inputs']
      for example in function_names.examples_of(SOURCE)
  }
  assert found == {
      'is_empty': (
          'def ?(self): """Whether ?, and not is_empty_handed.""" return not '
          'self.books'
      ),
      'find': (
          'async def ?(self, title): def matches(book): return book.title == '
          'title return [book for book in self.books if matches(book)]'
      ),
      'matches': 'def ?(book): return book.title == title',
      'walk': (
          "def ?(top): '''Walks, after os.?.''' return os.?(top)"
      ),
  }


def test_docstrings_are_given_alone_of_the_functions_that_have_one():
  found = list(function_names.examples_of(SOURCE, given='docstring'))
  assert found == [
      {'inputs': 'Walks, after os.?.', 'targets': 'walk'},
      {
          'inputs': 'Whether ?, and not is_empty_handed.',
          'targets': 'is_empty',
      },
  ]


def test_a_form_feed_does_not_shift_the_lines():
  source = 'x = 1\n\x0c\ndef f():\n  return 2\n'
  assert list(function_names.examples_of(source)) == [
      {'inputs': 'def ?(): return 2', 'targets': 'f'}
  ]


@pytest.mark.parametrize('given', function_names.GIVEN)
def test_no_name_is_given_away_in_the_standard_library(given):
  files = [
      file for file in local_text.find_files(None)
      if file.name in ('argparse.py', 'typing.py', 'email/message.py')
  ]
  examples = []
  for file in files:
    with open(file.path, encoding='utf-8') as opened:
      examples += function_names.examples_of(opened.read(), given=given)
  assert len(examples) > 50
  for example in examples:
    assert example['targets'] not in re.findall(r'\w+', example['inputs'])


def test_functions_are_held_out_by_file_as_text_is(folder):
  task = function_names.function_name_task(
      str(folder), held_out_fraction=0.3
  )
  text = local_text.text_task(str(folder), held_out_fraction=0.3)
  of_split = {}
  for split in ('train', 'validation'):
    expected = []
    for piece in text.source.list_shards(split):
      with open(piece.rsplit('[', 1)[0], encoding='utf-8') as opened:
        tree = ast.parse(opened.read())
      expected += [node.name for node in tree.body]
    of_split[split] = names_of(task, split)
    assert sorted(of_split[split]) == sorted(expected)
  assert not set(of_split['train']) & set(of_split['validation'])
  assert len(sum(of_split.values(), [])) == sum(range(1, 13))


def test_hosts_share_the_functions(folder):
  task = function_names.function_name_task(str(folder), held_out_fraction=0.0)
  shares = [
      [
          example['targets_pretokenized']
          for example in task.get_dataset(
              LENGTHS,
              'train',
              shuffle=False,
              shard_info=seqio.ShardInfo(index=index, num_shards=2),
          ).as_numpy_iterator()
      ]
      for index in range(2)
  ]
  assert len(shares[0]) == len(shares[1]) == sum(range(1, 13)) // 2
  assert not set(shares[0]) & set(shares[1])


@pytest.mark.slow
def test_a_reader_resumed_in_the_middle_gives_the_same_functions(folder):
  cfg = datasets.DatasetConfig(
      mixture_or_task_name=function_names.function_name_task(str(folder)),
      task_feature_lengths=LENGTHS,
      split='train',
      batch_size=4,
      shuffle=True,
      seed=5,
      pack=True,
  )
  layout = partitioner_lib.DataLayout(
      batch_size=4, shard_id=0, num_shards=1, is_first_host_in_replica_set=True
  )

  def make():
    return datasets.make_train_reader(
        cfg,
        data_layout=layout,
        feature_converter_cls=seqio.EncDecFeatureConverter,
    )

  reader = make()
  for _ in range(7):
    next(reader)
  state = reader.state_dict()
  expected = [next(reader) for _ in range(5)]
  resumed = make()
  resumed.load_state_dict(state)
  for batch in expected:
    found = next(resumed)
    for feature, values in batch.items():
      np.testing.assert_array_equal(found[feature], values)


def test_long_functions_are_cut_and_end_where_the_lengths_do(tmp_path):
  for name in 'abcd':
    body = '  x += 1\n' * 100
    (tmp_path / f'{name}.py').write_text(f'def {name * 50}(x):\n{body}')
  task = function_names.function_name_task(str(tmp_path))
  for example in task.get_dataset(LENGTHS, 'train').as_numpy_iterator():
    for feature, length in LENGTHS.items():
      assert len(example[feature]) == length
      assert example[feature][-1] == 1


def test_what_is_no_python_is_left_out(folder, caplog):
  (folder / 'old.py').write_text('print "no parentheses"\n')
  (folder / 'latin.py').write_bytes(b'# coding: latin-1\ndef cafe(\xe9): 0\n')
  task = function_names.function_name_task(str(folder))
  names = names_of(task, 'train') + names_of(task, 'validation')
  assert len(names) == sum(range(1, 13)) + 1
  assert 'cafe' in names
  assert 'old.py' in caplog.text


def test_files_without_functions_are_refused(tmp_path):
  for name in 'ab':
    (tmp_path / f'{name}.py').write_text('x = 1\n')
  task = function_names.function_name_task(str(tmp_path))
  with pytest.raises(ValueError, match=r'1 files have no function.*paths'):
    names_of(task, 'train')


def test_a_pattern_chooses_functions_by_their_whole_names(folder):
  task = function_names.function_name_task(
      str(folder), names=r'name_1._\d', held_out_fraction=0.0
  )
  assert names_of(task, 'train') == [
      f'name_{file}_{number}' for file in (10, 11) for number in range(10)
  ]


def test_a_pattern_that_is_none_or_matches_none_is_refused(folder):
  with pytest.raises(ValueError, match=r"names is '\('.*regular expression"):
    function_names.function_name_task(str(folder), names='(')
  task = function_names.function_name_task(str(folder), names='unheard')
  with pytest.raises(ValueError, match="named 'unheard'.*paths or names"):
    names_of(task, 'train')


def test_an_unknown_form_of_inputs_is_refused():
  with pytest.raises(ValueError, match=r"'body'.*source.*docstring.*given"):
    function_names.function_name_task(given='body')


@pytest.mark.parametrize(
    ('name', 'words'),
    [
        ('get_file_name', ['get', 'file', 'name']),
        ('__getitem__', ['getitem']),
        ('startElementNS', ['start', 'element', 'ns']),
        ('HTTPServer', ['http', 'server']),
        ('a85encode', ['a', '85', 'encode']),
        ('_', []),
    ],
)
def test_names_are_made_of_words(name, words):
  assert function_names.words_of(name) == words


def test_f1_of_names_counts_their_words_together():
  # Both words of 'get_name' are in 'getFullName', 'run' is not 'close': 2 in
  # common, of 3 expected and 4 given.
  found = function_names.name_f1(
      ['get_name', 'run'], ['getFullName', 'close']
  )
  assert found == {'name_f1': pytest.approx(100 * 4 / 7)}
  assert function_names.name_f1(['_'], ['_']) == {'name_f1': 0.0}


def test_the_standard_library_has_the_task_under_a_name():
  from t5wild.tasks import python_stdlib

  task = seqio.get_mixture_or_task('function_name_python_stdlib')
  assert task in python_stdlib.TASKS
  files = text_files.split_files(
      local_text.find_files(None), held_out_fraction=0.1
  )
  assert set(task.splits) == set(files)
