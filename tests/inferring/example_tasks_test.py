# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Files of tf.Examples are a task, as T5X's infer recipes make one."""

import os
import types

import pytest

from t5wild.inferring import example_tasks
from t5wild.inferring import inputs

seqio = pytest.importorskip('seqio')
tf = pytest.importorskip('tensorflow')


def _write(path, examples):
  with tf.io.TFRecordWriter(str(path)) as writer:
    for example in examples:
      features = {
          key: tf.train.Feature(
              bytes_list=tf.train.BytesList(value=[text.encode()])
          )
          for key, text in example.items()
      }
      writer.write(
          tf.train.Example(
              features=tf.train.Features(feature=features)
          ).SerializeToString()
      )
  return str(path)


def _features(*names):
  return {name: seqio.Feature(seqio.ByteVocabulary()) for name in names}


def test_a_task_gives_the_texts_of_its_files_in_order(tmp_path):
  path = _write(tmp_path / 'a.tfrecord', [{'text': 'ab'}, {'text': 'c'}])
  name = example_tasks.create_task_from_tfexample_file(
      [path], 'tfrecord', 'text', None, _features('inputs', 'targets')
  )
  task = seqio.TaskRegistry.get(name)
  rows = list(
      task.get_dataset(
          sequence_length={'inputs': 8, 'targets': 8},
          split='infer',
          shuffle=False,
      ).as_numpy_iterator()
  )
  assert [row['inputs'].tolist() for row in rows] == [[100, 101, 1], [102, 1]]


def test_what_is_in_the_files_of_a_task_tells_its_outputs_apart(tmp_path):
  def identity():
    task = types.SimpleNamespace(
        name='t',
        source=types.SimpleNamespace(list_shards=lambda split: [str(file)]),
        output_features=_features('inputs', 'targets'),
    )
    cfg = types.SimpleNamespace(split='test', seed=0)
    return inputs.TaskSource(
        cfg, task, shard=(0, 1), output_feature='targets'
    ).identity

  file = tmp_path / 'test.txt'
  file.write_text('one\ntwo\n')
  first = identity()
  os.utime(file, (1, 1))  # a copy is the same
  assert identity() == first
  file.write_text('one\ntoo\n')
  assert identity() != first
  file = tmp_path / 'of_a_bucket_or_made_up'
  assert 'files' not in identity()


def test_the_same_arguments_name_the_same_task(tmp_path):
  path = _write(tmp_path / 'b.tfrecord', [{'x': 'a', 'y': 'b'}])
  arguments = ([path], 'tfrecord', 'x', 'y', _features('inputs', 'targets'))
  names = {
      example_tasks.create_task_from_tfexample_file(*arguments)
      for _ in range(2)
  }
  assert len(names) == 1


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'file_type': 'sstable'}, "'sstable'.*'tfrecord'"),
        ({'targets_key': 'y', 'features': {'inputs': None}}, "'targets'"),
        ({'paths': ['/none/*']}, "no file matches paths = .'/none"),
    ],
)
def test_what_cannot_be_read_is_refused(change, message):
  arguments = {
      'paths': ['/none'], 'file_type': 'tfrecord', 'inputs_key': 'x',
      'targets_key': None, 'features': {'inputs': None},
  }  # fmt: skip
  with pytest.raises(ValueError, match=message):
    example_tasks.create_task_from_tfexample_file(**{**arguments, **change})
