# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Tasks of every objective over one text, for each kind of model."""

import functools
import types

import numpy as np
import pytest

from t5wild.data import datasets
from t5wild.data import language_modelling
from t5wild.data import objectives
from t5wild.data import spans
from t5wild.data import ul2

seqio = pytest.importorskip('seqio')
local_text = pytest.importorskip('t5wild.tasks.local_text')
text_objectives = pytest.importorskip('t5wild.tasks.text_objectives')

ALL = sorted(text_objectives.OBJECTIVES)
LENGTHS = {'inputs': 48, 'targets': 40}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  folder = tmp_path_factory.mktemp('texts')
  for index in range(8):
    text = ''.join(f'{index}:{number} ' for number in range(40 + 9 * index))
    (folder / f'{index}.txt').write_text(text)
  return folder


def task_of(folder, objective, *, features=None):
  return local_text.text_task(
      str(folder),
      objective=text_objectives.find_objective(objective, features=features),
      held_out_fraction=0.0,
      shuffle_buffer_size=20,
  )


def examples(task, lengths=LENGTHS):
  dataset = task.get_dataset(lengths, 'train', shuffle=False, seed=3)
  return list(dataset.as_numpy_iterator())


def text_of(name, example):
  """The text that an example was made of, ends of sequence left out."""
  parts = [
      example[key][example[key] != 1] for key in ('inputs', 'targets')
      if key in example
  ]  # fmt: skip
  if name in ('prefix_lm', 'lm'):
    return np.concatenate(parts)
  if name == 'fim':
    return language_modelling.put_middle_back(
        np.concatenate(parts), marks=(383, 382, 381)
    )
  inputs, targets = parts if len(parts) == 2 else _parts_of(parts[0])
  if name == 'ul2':
    vocabulary = seqio.ByteVocabulary(125)
    modes = ul2.mode_tokens(ul2.PAPER_DENOISERS, vocabulary=vocabulary)
    assert (inputs[0],) in modes.values()
    inputs = inputs[1:]
  return spans.fill_spans(inputs, targets, vocab_size=384, extra_ids=122)


def _parts_of(joined):
  """Inputs and targets of a denoiser that a model of one sequence reads."""
  _, start = np.flatnonzero(joined == 383)  # the first sentinel of each
  return np.split(joined, [start])


@pytest.mark.parametrize('features', [None, 'targets'])
@pytest.mark.parametrize('name', ALL)
def test_examples_rebuild_pieces_of_one_file_each_and_all_of_all_files(
    folder, name, features
):
  files = [path.read_bytes() for path in folder.iterdir()]
  total = 0
  for example in examples(task_of(folder, name, features=features)):
    assert features is None or list(example) == ['targets']
    text = (text_of(name, example) - 3).astype(np.uint8).tobytes()
    assert any(text in file for file in files)
    total += len(text)
  # A last chunk of a single byte is dropped.
  assert sum(map(len, files)) - len(files) <= total <= sum(map(len, files))


@pytest.mark.parametrize('name', ALL)
def test_lengths_are_never_exceeded_though_nothing_is_cut(folder, name):
  task = task_of(folder, name)
  sizes = {key: set() for key in task.output_features}
  dataset = task.get_dataset(
      LENGTHS, 'train', shuffle=False, seed=3, trim_output_features=False
  )
  for example in dataset.as_numpy_iterator():
    for key in sizes:
      sizes[key].add(example[key].size)
  for key, found in sizes.items():
    assert max(found) <= LENGTHS[key]
  assert any(max(found) == LENGTHS[key] for key, found in sizes.items())


@pytest.mark.parametrize(
    ('converter', 'features', 'lengths'),
    [
        ('EncDecFeatureConverter', 'inputs_and_targets', LENGTHS),
        ('PrefixLMFeatureConverter', 'inputs_and_targets', LENGTHS),
        ('LMFeatureConverter', 'targets', {'targets': 88}),
    ],
)
@pytest.mark.parametrize('name', ALL)
@pytest.mark.parametrize('pack', [False, True])
def test_every_kind_of_model_can_be_fed(
    folder, name, converter, features, lengths, pack
):
  if name == 'lm' and features != 'targets':
    pytest.skip('a causal LM has no inputs')
  cfg = datasets.DatasetConfig(
      task_of(folder, name, features=features),
      lengths, 'train', 4, True, 0, pack=pack,
  )  # fmt: skip
  dataset = datasets.get_dataset(cfg, 0, 1, getattr(seqio, converter))
  batch = next(dataset.as_numpy_iterator())
  assert batch['decoder_loss_weights'].sum() > 0
  targets = batch['decoder_target_tokens']
  total = sum(lengths.values())
  wanted = LENGTHS['targets'] if 'encoder_input_tokens' in batch else total
  assert targets.shape == (4, wanted)


@pytest.mark.parametrize('name', ALL)
def test_batches_are_the_same_for_any_number_of_hosts(folder, name):
  def rows(num_shards):
    lengths, converter = LENGTHS, seqio.EncDecFeatureConverter
    if name in ('fim', 'lm'):
      lengths, converter = {'targets': 40}, seqio.LMFeatureConverter
    cfg = datasets.DatasetConfig(
        task_of(folder, name), lengths, 'train', 8, True, 5, shard_by='rows'
    )
    readers = [
        datasets.make_train_reader(
            cfg,
            data_layout=types.SimpleNamespace(
                batch_size=8, shard_id=index, num_shards=num_shards
            ),
            feature_converter_cls=converter,
        )
        for index in range(num_shards)
    ]
    batches = []
    for _ in range(3):
      parts = [next(reader)['decoder_target_tokens'] for reader in readers]
      batches.append(np.concatenate(parts))
    for reader in readers:
      reader.close()
    return np.stack(batches)

  alone = rows(1)
  for num_shards in (2, 4):
    np.testing.assert_array_equal(rows(num_shards), alone)


def test_a_preprocessor_is_known_however_it_is_wrapped():
  partial = functools.partial(objectives.prefix_lm, split=0.75)
  found = text_objectives.find_objective(partial)
  assert found.preprocessor is partial
  assert not found.inputs_end
  assert text_objectives.find_objective(objectives.causal_lm) == (
      text_objectives.OBJECTIVES['lm']
  )
  own = text_objectives.find_objective(lambda dataset: dataset)
  assert own.features == 'inputs_and_targets'
  changed = text_objectives.find_objective(found, features='targets')
  assert changed.features == 'targets'


def test_unknown_names_are_refused():
  with pytest.raises(ValueError, match="objective is 'spam'.*'ul2'.*Set"):
    text_objectives.find_objective('spam')
  with pytest.raises(ValueError, match="features is 'spam'.*'targets'.*Set"):
    text_objectives.find_objective('lm', features='spam')


def test_any_source_gets_a_task_of_each_objective():
  import tensorflow as tf

  source = seqio.FunctionDataSource(
      lambda split, shuffle_files, seed=None: tf.data.Dataset.from_tensors(
          {'body': 'some text ' * 30}
      ),
      splits=('train',),
  )
  tasks = text_objectives.add_text_tasks(
      'any_source', source=source, text_field='body'
  )
  try:
    assert {task.name for task in tasks} == {
        f'{name}_any_source' for name in ALL
    }
    for task in tasks:
      assert len(examples(seqio.get_mixture_or_task(task.name))) > 1
    with pytest.raises(ValueError, match='any_source'):
      text_objectives.add_text_tasks('any_source', source=source)
    wrong = text_objectives.add_text_tasks(
        'wrong_field', source=source, objectives_to_add=['lm']
    )
    tasks += wrong
    with pytest.raises(ValueError, match=r"'targets'.*'body'.*text_field"):
      examples(wrong[0])
  finally:
    for task in tasks:
      seqio.TaskRegistry.remove(task.name)


def test_the_standard_library_has_a_task_of_each_objective_and_to_name():
  from t5wild.tasks import python_stdlib

  names = {task.name for task in python_stdlib.TASKS}
  assert names == {
      f'{name}_python_stdlib' for name in (*ALL, 'function_name')
  }
  assert names <= set(seqio.TaskRegistry.names())
