# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Sources of own data as live tasks and in caches; what they refuse."""

import contextlib
import json
import pathlib

import numpy as np
import pytest

from t5wild.data import caching
from t5wild.data import datasets
from t5wild.data import documents
from t5wild.data import pipelines
from t5wild.data import record_cache
from t5wild.data import tfrecords
from tests.data import seqio_caches_test as caches
from tests.tasks.t5 import tfds_files

seqio = pytest.importorskip('seqio')
tf = pytest.importorskip('tensorflow')
local_text = pytest.importorskip('t5wild.tasks.local_text')
pairs = pytest.importorskip('t5wild.tasks.pairs')
sources = pytest.importorskip('t5wild.tasks.sources')

pytestmark = pytest.mark.slow  # TensorFlow's pipelines take seconds to make

_SAVED = pathlib.Path(__file__).parents[1] / 'data' / 'hugging_face_files'
_LENGTHS = {'inputs': 40, 'targets': 20}
_BYTES = seqio.ByteVocabulary(125)


@pytest.fixture
def lines(tmp_path):
  path = tmp_path / 'a.jsonl'
  rows = [{'question': f'q {n}?', 'answer': n} for n in range(600)]
  path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
  return str(path)


def read(task, split='train', *, shuffle=False, lengths=_LENGTHS):
  dataset = task.get_dataset(lengths, split, shuffle=shuffle, seed=1)
  return list(dataset.as_numpy_iterator())


def decoded(examples, feature='targets'):
  return [_BYTES.decode(example[feature].tolist()) for example in examples]


def test_what_tensorflow_writes_is_read_as_it_was(tmp_path):
  numbers = [0, 1, -1, 127, 128, 1 << 40, -(1 << 40)]
  feature = tf.train.Feature
  example = tf.train.Example(features=tf.train.Features(feature={
      'text': feature(bytes_list=tf.train.BytesList(value=[b'1', b'\xc3\xb6'])),
      'numbers': feature(int64_list=tf.train.Int64List(value=numbers)),
      'weights': feature(float_list=tf.train.FloatList(value=[0.5, -2.0])),
      'none': feature(),
  }))  # fmt: skip
  path = str(tmp_path / 'a.tfrecord')
  with tf.io.TFRecordWriter(path) as writer:
    for _ in range(3):
      writer.write(example.SerializeToString())
  with open(path, 'rb') as file:
    records = list(tfrecords.read_records(file))
  assert len(records) == 3
  found = tfrecords.parse_example(records[2].data)
  assert found['text'] == [b'1', b'\xc3\xb6']
  assert found['numbers'].tolist() == numbers
  assert found['weights'].tolist() == [0.5, -2.0]
  assert list(found['none']) == []


def test_pairs_are_made_of_columns_and_of_texts_around_them(lines):
  task = pairs.pair_task(
      sources.files(lines), inputs='ask: {question} {{}}', targets='answer'
  )
  examples = read(task) + read(task, 'validation')
  inputs, targets = (
      decoded(examples, name) for name in ('inputs', 'targets')
  )
  assert sorted(targets, key=int) == [str(n) for n in range(600)]
  assert inputs == [f'ask: q {n}? {{}}' for n in targets]
  assert all(e[name][-1] == 1 for e in examples for name in _LENGTHS)


def test_rows_come_once_an_epoch_in_an_order_of_the_seed(lines):
  task = pairs.pair_task(
      sources.files(lines, held_out_fraction=0.0),
      inputs='question', targets='answer', shuffle_buffer_size=100,
  )  # fmt: skip
  one, other = (decoded(read(task, shuffle=True)) for _ in range(2))
  assert one == other != sorted(one, key=int)
  assert sorted(one, key=int) == [str(n) for n in range(600)]


def test_two_hosts_share_the_rows(lines):
  task = pairs.pair_task(
      sources.files(lines), inputs='question', targets='answer'
  )
  parts = [
      decoded(
          task.get_dataset(
              _LENGTHS, 'train', shuffle=False,
              shard_info=seqio.ShardInfo(index=index, num_shards=2),
          ).as_numpy_iterator()
      )
      for index in range(2)
  ]  # fmt: skip
  assert not set(parts[0]) & set(parts[1])
  assert sorted(parts[0] + parts[1]) == sorted(decoded(read(task)))


def test_an_iterator_that_was_saved_goes_on_with_the_next_row(lines):
  task = pairs.pair_task(
      sources.files(lines), inputs='question', targets='answer',
      shuffle_buffer_size=50,
  )  # fmt: skip

  def open_it():
    return pipelines.PipelineIterator(
        pipelines.with_options(
            task.get_dataset(_LENGTHS, 'train', shuffle=True, seed=3)
        )
    )

  whole = [example['targets'].tolist() for example in open_it()]
  one = open_it()
  for _ in range(300):
    next(one)
  other = open_it()
  other.load(one.save())
  assert [e['targets'].tolist() for e in other] == whole[300:]


def test_a_hugging_face_data_set_is_a_task_by_text_and_by_pairs():
  source = sources.hugging_face(str(_SAVED / 'saved'))
  task = local_text.text_task(source, objective='lm')
  assert set(task.splits) == {'train', 'test', 'validation'}
  texts = [f'document {n}' for n in range(12)]
  kept = decoded(read(task, lengths={'targets': 40}))
  held_out = decoded(read(task, 'validation', lengths={'targets': 40}))
  assert sorted(kept + held_out) == sorted(texts)
  task = pairs.pair_task(source, inputs='translation.en', targets='label')
  first = read(task, 'test')[0]
  assert first['inputs_pretokenized'] == b'sentence 0'
  assert first['targets_pretokenized'] == b'no'


def test_a_tfds_data_set_is_a_task_with_names_for_labels(tmp_path):
  rows = tfds_files.rte_records(6)
  tfds_files.write_rte(tmp_path, {'train': rows, 'validation': rows[:2]})
  source = sources.tfds('glue/rte:1.0.0', data_dir=str(tmp_path))
  task = pairs.pair_task(
      source, inputs='{sentence1} / {sentence2} {idx}', targets='label'
  )
  found = read(task)
  assert decoded(found, 'inputs')[1] == 'the cat sat 1 / a cat sat 1'
  assert decoded(found)[:2] == ['entailment', 'not_entailment']
  task = local_text.text_task(source, text_field='sentence1', objective='lm')
  assert len(read(task, 'validation', lengths={'targets': 40})) == 2
  with pytest.raises(ValueError, match="no column 'absent': expected one of"):
    read(pairs.pair_task(source, inputs='absent', targets='label'))
  task = local_text.text_task(source, text_field='absent', objective='lm')
  with pytest.raises(ValueError, match="no field 'absent': expected one of"):
    read(task)


@contextlib.contextmanager
def _cache_dirs(folder):
  """T5's folder of cached tasks, as the flag of every binary names it."""
  before = list(seqio.get_global_cache_dirs())
  seqio.add_global_cache_dirs([str(folder)])
  yield
  seqio.set_global_cache_dirs(before)


def _no_dataset(split, shuffle_files):
  raise AssertionError(f'the source is read: {split}, {shuffle_files}')


def _registered(name):
  """A task whose cache is read as T5X's USE_CACHED_TASKS = True reads it."""
  return seqio.Task(
      name,
      source=seqio.FunctionDataSource(
          _no_dataset, splits=('train', 'validation')
      ),
      preprocessors=[
          seqio.CacheDatasetPlaceholder(required=True),
          seqio.preprocessors.append_eos_after_trim,
      ],
      output_features={
          feature: seqio.Feature(vocabulary=_BYTES)
          for feature in ('inputs', 'targets')
      },
  )


def test_a_cache_of_seqio_gives_what_seqio_itself_reads_of_it(tmp_path):
  folder = caches.write(tmp_path / 'cached_tasks' / 'mine')
  task = pairs.pair_task(sources.seqio_cache(str(folder)))
  with _cache_dirs(folder.parent):
    registered = _registered('mine')
    theirs = list(
        registered.get_dataset(
            _LENGTHS, 'train', use_cached=True, shuffle=False
        ).as_numpy_iterator()
    )
    cfg = datasets.DatasetConfig(
        mixture_or_task_name=registered, task_feature_lengths=_LENGTHS,
        split='train', batch_size=1, shuffle=False, seed=0, use_cached=True,
    )  # fmt: skip
    batches = datasets.get_dataset(
        cfg, 0, 1, seqio.EncDecFeatureConverter, num_epochs=1
    )
    targets = [
        batch['decoder_target_tokens'][0]
        for batch in batches.as_numpy_iterator()
    ]
  ours = read(task)
  assert sorted(tokens[tokens > 0].tolist() for tokens in targets) == sorted(
      example['targets'].tolist() for example in ours
  )

  def key(example):
    return tuple(example['inputs']), tuple(example['targets'])

  assert sorted(map(key, ours)) == sorted(map(key, theirs))
  assert len(ours) == 20


def test_an_objective_is_applied_to_the_tokens_of_a_cache_of_seqio(tmp_path):
  folder = caches.write(tmp_path / 'mine')
  task = local_text.text_task(
      sources.seqio_cache(str(folder)), text_field='targets', objective='lm'
  )
  found = [
      example['targets'].tolist()
      for example in read(task, lengths={'targets': 20})
  ]
  # An end of sequence follows each document, whether it had one or not.
  assert sorted(found) == sorted([*e['targets'], 1] for e in caches.EXAMPLES)


def test_tokens_lose_the_end_that_they_have_and_get_one(tmp_path):
  path = tmp_path / 'a.jsonl'
  rows = [{'inputs': [5, 6, 1], 'targets': [7]}, {'inputs': [], 'targets': [1]}]
  path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
  found = read(
      pairs.pair_task(sources.files(str(path), held_out_fraction=0.0))
  )
  assert [(e['inputs'].tolist(), e['targets'].tolist()) for e in found] == [
      ([5, 6, 1], [7, 1]), ([1], [1])
  ]  # fmt: skip


def test_a_corrupt_line_is_told_through_the_pipeline_of_a_run(lines):
  with open(lines, 'a', encoding='utf-8') as file:
    file.write('no JSON\n')
  cfg = datasets.DatasetConfig(
      mixture_or_task_name=pairs.pair_task(
          sources.files(lines), inputs='question', targets='answer'
      ),
      task_feature_lengths=_LENGTHS,
      split='train',
      batch_size=8,
      shuffle=False,
      seed=0,
  )
  dataset = datasets.get_dataset(
      cfg, 0, 1, seqio.EncDecFeatureConverter, num_epochs=1
  )
  with pytest.raises(documents.CorruptTextError, match='line 601 is corrupt'):
    list(pipelines.PipelineIterator(dataset))


@pytest.mark.parametrize('kind', ['pairs', 'text'])
def test_a_source_is_cached_as_it_is_read(kind, lines, tmp_path):
  source = sources.files(lines, held_out_fraction=0.0)
  if kind == 'pairs':
    task = pairs.pair_task(source, inputs='question', targets='answer')
  else:
    task = local_text.text_task(source, text_field='question')
  out = str(tmp_path / 'cache')
  (job,) = caching.plan_jobs(task, caching.CacheOptions(out=out, num_shards=1))
  job.start()
  job.write_shard(0)
  assert job.finish().content == {'pairs': 'examples', 'text': 'tokens'}[kind]
  cache = record_cache.RecordCache(job.plan.folder)
  records = cache.read(np.arange(len(cache))).features
  name = {'pairs': 'inputs', 'text': 'targets'}[kind]
  found = [_BYTES.decode(tokens.tolist()) for tokens in records[name].split()]
  assert sorted(found) == sorted(f'q {n}?' for n in range(600))


@pytest.mark.parametrize('text', ['{a', 'a}', '{}', 'x {} {b}'])
def test_braces_that_name_no_column_are_refused(text):
  with pytest.raises(ValueError, match='expected the name of a column'):
    pairs.columns_of(text)


def test_a_list_where_a_text_is_needed_is_refused(tmp_path):
  path = tmp_path / 'a.jsonl'
  path.write_text('{"inputs": [5, 6], "targets": "a"}\n')
  source = sources.files(str(path), held_out_fraction=0.0)
  with pytest.raises(ValueError, match="'inputs' is of rank 1 .*int32"):
    read(pairs.pair_task(source, inputs='a: {inputs}'))


def test_splits_of_files_are_those_that_are_named(lines):
  source = sources.files({'train': lines, 'test': lines}, held_out_fraction=0.0)
  assert tuple(source.splits) == ('train', 'test')
  cfg = datasets.DatasetConfig(
      mixture_or_task_name=pairs.pair_task(
          source, inputs='question', targets='answer'
      ),
      task_feature_lengths=_LENGTHS,
      split='validation',
      batch_size=8,
      shuffle=False,
      seed=0,
  )
  with pytest.raises(ValueError, match=r"'validation'.*\['test', 'train'\]"):
    datasets.open_provider(cfg)


def test_a_cache_of_seqio_is_cached_where_its_source_is_not_there(tmp_path):
  folder = caches.write(tmp_path / 'cached_tasks' / 'there')
  options = caching.CacheOptions(
      out=str(tmp_path / 'out'), use_cached=True, splits=['train']
  )
  with _cache_dirs(folder.parent):
    (job,) = caching.plan_jobs(_registered('there'), options)
    job.start()
    for index in range(job.plan.num_shards):
      job.write_shard(index)
    manifest = job.finish()
  assert manifest.num_records == 20
  assert any(
      line.startswith('source: cache of seqio, 2 shards')
      for line in manifest.task_description
  )
  records = record_cache.RecordCache(job.plan.folder).read(np.arange(20))
  found = sorted(row.tolist() for row in records.features['targets'].split())
  assert found == sorted([*e['targets'], 1] for e in caches.EXAMPLES)
  with pytest.raises(FileNotFoundError, match="cache of seqio of 'there'"):
    caching.plan_jobs(_registered('there'), options)


def test_other_columns_of_the_same_files_are_another_cache(lines, tmp_path):
  prints = set()
  for column in ('question', 'answer'):
    task = local_text.text_task(sources.files(lines), text_field=column)
    options = caching.CacheOptions(out=str(tmp_path), splits=['train'])
    (job,) = caching.plan_jobs(task, options)
    prints.add(job.manifest.task_fingerprint)
  for field in ('text', 'question'):
    task = local_text.text_task(lines, text_field=field, on_corrupt='skip')
    (job,) = caching.plan_jobs(task, options)
    prints.add(job.manifest.task_fingerprint)
  assert len(prints) == 4
