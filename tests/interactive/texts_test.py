# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Texts become examples of a task, and examples of a task texts."""

import pytest
import seqio

from t5wild.interactive import texts
from tests.end_to_end import copy_task

_TOKENIZE = (seqio.preprocessors.tokenize, seqio.preprocessors.append_eos)


def _dataset(examples, preprocessors=_TOKENIZE, lengths=None):
  dataset = texts.get_dataset_from_natural_text_examples(
      examples,
      preprocessors=preprocessors,
      task_feature_lengths=lengths,
      features=copy_task.FEATURES,
  )
  return list(dataset.as_numpy_iterator())


def _ids(text):
  return [*copy_task.VOCABULARY.encode(text), 1]


def test_texts_are_tokenized_and_keep_their_text():
  first, second = _dataset(['ab', {'input': 'c', 'target': 'd é'}])
  assert first['inputs'].tolist() == _ids('ab')
  assert first['targets'].tolist() == [1]
  assert second['targets'].tolist() == _ids('d é')
  assert second['targets_pretokenized'].decode() == 'd é'


def test_features_are_cut_where_they_are_too_long():
  (one,) = _dataset([{'inputs': 'abcd', 'targets': 'efg'}],
                    lengths={'inputs': 3, 'targets': 9})  # fmt: skip
  assert one['inputs'].tolist() == _ids('abcd')[:3]
  assert one['targets'].tolist() == _ids('efg')


def test_token_ids_of_unequal_lengths_pass_without_preprocessors():
  examples = [{'input': [4, 5], 'target': [6]}, {'input': [7], 'target': []}]
  found = _dataset(examples, preprocessors=())
  assert [one['inputs'].tolist() for one in found] == [[4, 5], [7]]
  assert found[1]['targets'].tolist() == []


def test_preprocessors_are_given_what_they_ask_for():
  def spy(dataset, output_features, sequence_length):
    assert output_features is copy_task.FEATURES
    assert sequence_length == {'inputs': 3}
    return dataset

  _dataset(['a'], preprocessors=(spy, *_TOKENIZE), lengths={'inputs': 3})


@pytest.mark.parametrize(
    ('examples', 'preprocessors', 'words'),
    [
        ([], _TOKENIZE, 'expected at least one'),
        ([{'input': 'a'}], _TOKENIZE, "example 0 is .* 'input' and 'target'"),
        (['a', 3], _TOKENIZE, 'example 1 is 3'),
        ([{'input': 'a', 'target': [3]}, 'b'], _TOKENIZE, 'several kinds'),
        (['a'], (), "'inputs' is string with 0 dimensions"),
        (
            ['a'],
            (lambda dataset: dataset.map(lambda one: {'x': one['inputs']}),),
            r"\['x'\]: expected 'inputs' among them",
        ),
    ],
)
def test_what_is_no_example_is_refused(examples, preprocessors, words):
  with pytest.raises(ValueError, match=words):
    _dataset(examples, preprocessors)


@pytest.fixture
def task():
  task = copy_task.copy_task()
  seqio.TaskRegistry.add_provider(task.name, task)
  yield task
  seqio.TaskRegistry.remove(task.name)


def test_batches_of_a_task_are_its_texts_or_ids(task):
  arguments = {'split': 'validation', 'batch_size': 2, 'num_batches': 3}
  arguments['shuffle'] = False
  batches = texts.get_batches_from_seqio(task.name, **arguments)
  assert [len(batch) for batch in batches] == [2, 2, 2]
  found = [one['input'].decode() for batch in batches for one in batch]
  assert found == copy_task.texts('validation')[:6]
  tokenized = texts.get_batches_from_seqio(
      task.name, get_pretokenized_examples=False, **arguments
  )
  assert tokenized[0][0]['target'] == _ids(found[0])


def test_more_batches_than_a_task_has_are_refused(task):
  with pytest.raises(ValueError, match='has 11 examples .*: expected 12'):
    texts.get_batches_from_seqio(task.name, 'validation', 4, 3)
