# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Data sets of a seqio task: batches, shares, evaluation, refusals."""

import dataclasses
import functools

import numpy as np
import pytest

from t5wild.data import datasets
from t5wild.data import reader_protocol

LENGTHS = {'inputs': 32, 'targets': 16}


@pytest.fixture(scope='module')
def cfg(text_task):
  return datasets.DatasetConfig(text_task, LENGTHS, 'train', 4, True, 5)


@pytest.fixture(scope='module')
def converter(seqio):
  return seqio.EncDecFeatureConverter


@pytest.fixture(scope='module')
def make(cfg, layout, converter):
  def make(*, part=None, period=4, start_batch=0, **changes):
    reader = datasets.make_train_reader(
        dataclasses.replace(cfg, **changes),
        data_layout=part or layout(),
        feature_converter_cls=converter,
        start_batch=start_batch,
    )
    assert reader._snapshot_period is not None  # such a task can be saved
    reader._snapshot_period = period
    return reader

  return make


@pytest.fixture(scope='module')
def history(make):
  """Checksums of the first 60 batches, and the positions before them."""

  @functools.cache
  def history(pack):
    reader = make(pack=pack)
    states = []
    expected = []
    for _ in range(60):
      states.append(reader.state_dict())
      expected += sums(reader, 1)
    return expected, states

  return history


def sums(reader, count):
  return [reader_protocol.checksum(next(reader)) for _ in range(count)]


# After a few batches, with and without a snapshot; in a later epoch, packed.
@pytest.mark.parametrize(
    ('position', 'pack'), [(3, False), (6, False), (50, True)]
)
def test_a_text_task_resumed_at_any_batch_gives_the_same_batches(
    make, history, position, pack
):
  expected, states = history(pack)
  resumed = make(pack=pack)
  resumed.load_state_dict(states[position])
  assert bool(states[position]['snapshot']) == (position > 4)
  assert sums(resumed, 10) == expected[position : position + 10]


def test_start_batch_passes_over_the_first_ones(make, history):
  assert sums(make(start_batch=3), 2) == history(False)[0][3:5]


def test_no_seed_means_a_drawn_one_that_a_resume_takes(make):
  first = make(seed=None)
  assert 'no seed was given' in first.promise
  assert str(first.state_dict()['seed']) in first.promise


def test_another_epoch_is_corrupted_afresh(make):
  # Unshuffled, so that each epoch has the same chunks in the same order: less
  # than 100 of them, of which the shortest have few ways to be corrupted.
  reader = make(shuffle=False, batch_size=1, period=None)
  seen = {
      next(reader)['encoder_input_tokens'].tobytes() for _ in range(400)
  }
  assert len(seen) > 300


def test_hosts_that_share_files_never_read_the_same_text(make, layout):
  texts = [set(), set()]
  for index in range(2):
    reader = make(part=layout(shard_id=index, num_shards=2))
    assert reader.element_spec['encoder_input_tokens'][0] == (2, 32)
    for _ in range(20):
      # The sentinels say nothing about the text, the bytes between them do.
      texts[index] |= {
          row[row < 259].tobytes()
          for row in next(reader)['encoder_input_tokens']
      }
  assert not texts[0] & texts[1]


def test_eval_batches_are_the_same_each_time_and_whole(cfg, layout, converter):
  def make(**changes):
    return datasets.make_eval_batches(
        dataclasses.replace(cfg, split='validation', **changes),
        data_layout=layout(),
        eval_steps=3,
        feature_converter_cls=converter,
    )['local_text']

  kept = make(seed=None)
  first = [reader_protocol.checksum(batch) for batch in kept]
  assert len(first) == 3
  assert first == [reader_protocol.checksum(batch) for batch in kept]
  fresh = make(seed=None, use_memory_cache=False)
  assert first == [reader_protocol.checksum(batch) for batch in fresh]
  spec = {name: (x.shape, x.dtype) for name, x in next(iter(kept)).items()}
  assert dict(kept.element_spec) == spec


def test_eval_rows_are_divided_over_hosts(cfg, layout, converter):
  def batches(**part):
    made = datasets.make_eval_batches(
        dataclasses.replace(cfg, split='validation', shuffle=False),
        data_layout=layout(**part),
        eval_steps=2,
        feature_converter_cls=converter,
    )['local_text']
    return [batch['decoder_target_tokens'] for batch in made]

  whole = np.concatenate(batches())
  parts = [batches(shard_id=index, num_shards=2) for index in range(2)]
  rows = {row.tobytes() for part in parts for batch in part for row in batch}
  assert rows == {row.tobytes() for row in whole}


def test_a_mixture_is_evaluated_by_task_and_whole(
    seqio, cfg, text_folder, layout, converter
):
  from t5wild.tasks import local_text

  def task(name, held_out_fraction):
    return local_text.text_task(
        str(text_folder), name=name, held_out_fraction=held_out_fraction
    )

  mixture = seqio.Mixture(
      'mixed', [task('with_split', 0.3), task('without', 0.0)], default_rate=1
  )
  made = datasets.get_training_eval_datasets(
      dataclasses.replace(
          cfg, mixture_or_task_name=mixture, split='validation'
      ),
      0,
      1,
      2,
      converter,
  )
  assert sorted(made) == ['mixed', 'with_split']


def test_get_dataset_gives_tf_batches_of_one_shard(cfg, converter):
  made = datasets.get_dataset(cfg, 1, 2, converter, num_epochs=1)
  batch = next(made.as_numpy_iterator())
  assert batch['encoder_input_tokens'].shape == (2, 32)


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'batch_size': 0}, 'batch_size is 0.*Set BATCH_SIZE'),
        ({'batch_size': 2.5}, 'batch_size is 2.5'),
        ({'task_feature_lengths': {}}, 'task_feature_lengths is {}.*Set'),
        ({'task_feature_lengths': {'inputs': 0}}, "'inputs': 0"),
        ({'shard_by': 'lines'}, "shard_by is 'lines'.*rows.*files"),
        ({'on_changed_data': 'x'}, "on_changed_data is 'x'.*fail.*continue"),
    ],
)
def test_a_config_of_no_data_set_is_refused_at_once(changes, message):
  good = datasets.DatasetConfig('x', LENGTHS, 'train', 4, True, 0)
  with pytest.raises(ValueError, match=message):
    dataclasses.replace(good, **changes)


def test_what_cannot_be_read_is_refused_with_the_mend(cfg, converter):
  def get(shards=1, **changes):
    datasets.get_dataset(
        dataclasses.replace(cfg, **changes), 0, shards, converter
    )

  with pytest.raises(
      ValueError, match='(?s)named .absent.*registered, which.*Import'
  ) as raised:
    get(mixture_or_task_name='absent')
  assert raised.value.__cause__ is None  # or binaries print seqio's traceback
  with pytest.raises(ValueError, match="no split 'test'.*validation.*Set"):
    get(split='test')
  with pytest.raises(ValueError, match='4 does not divide over 3.*= 6'):
    get(shards=3)
  with pytest.raises(ValueError, match='targets of length 4.*cut off.*Set'):
    get(task_feature_lengths={'inputs': 32, 'targets': 4})
  with pytest.raises(ValueError, match='continue_from_last.*make_train_reader'):
    datasets.get_dataset(cfg, 0, 1, converter, None, True)


def test_a_cache_that_was_asked_for_and_is_absent_is_refused(
    seqio, cfg, converter, text_task, tmp_path, monkeypatch
):
  cached = seqio.Task(
      'cacheable',
      source=text_task.source,
      output_features=text_task.output_features,
      preprocessors=[
          seqio.CacheDatasetPlaceholder(),
          *text_task.preprocessors,
      ],
  )
  seqio.set_global_cache_dirs([str(tmp_path)])
  monkeypatch.setattr(seqio.utils, '_GLOBAL_CACHE_DIRECTORIES', [str(tmp_path)])
  with pytest.raises(FileNotFoundError, match='cacheable.*USE_CACHED_TASKS'):
    datasets.get_dataset(
        dataclasses.replace(cfg, mixture_or_task_name=cached, use_cached=True),
        0,
        1,
        converter,
    )


def test_a_task_whose_vocabulary_is_not_there_is_refused_when_opened(
    seqio, cfg, converter, text_task
):
  # Once TensorFlow reads, its traceback hides what is wrong.
  absent = seqio.SentencePieceVocabulary('/absent.model', 100)
  task = seqio.Task(
      'of_no_vocabulary',
      source=text_task.source,
      output_features={'targets': seqio.Feature(absent)},
      preprocessors=[seqio.preprocessors.tokenize],
  )
  cfg = dataclasses.replace(cfg, mixture_or_task_name=task)
  for opened in (
      datasets.open_provider,
      lambda cfg: datasets.get_dataset(cfg, 0, 1, converter),
  ):
    with pytest.raises(
        FileNotFoundError, match='(?s)/absent.model.*Expected.*--vocab_dir'
    ):
      opened(cfg)


def test_lengths_or_a_task_without_the_features_of_a_model_are_refused(
    seqio, cfg, layout, text_task
):
  only_targets = {'targets': 16}
  alone = seqio.Task(
      'targets_alone',
      source=text_task.source,
      output_features={'targets': text_task.output_features['targets']},
      preprocessors=[],
      metric_fns=[],
  )
  for changes, converter, message in (
      (
          {'task_feature_lengths': only_targets},
          seqio.EncDecFeatureConverter,
          r"task_feature_lengths lacks the features \['inputs'\][^!]*"
          r"EncDecFeatureConverter[^!]*needs \['inputs', 'targets'\][^!]*"
          r"has \['targets'\][^!]*TASK_FEATURE_LENGTHS",
      ),
      (
          {'mixture_or_task_name': alone},
          seqio.EncDecFeatureConverter,
          r"task 'targets_alone' lacks[^!]*DecoderOnlyModel",
      ),
      (
          {'mixture_or_task_name': alone},
          seqio.DecoderFeatureConverter,
          r"task 'targets_alone' lacks[^!]*PrefixLMFeatureConverter",
      ),
  ):
    with pytest.raises(ValueError, match=message):
      datasets.make_train_reader(
          dataclasses.replace(cfg, **changes),
          data_layout=layout(),
          feature_converter_cls=converter,
      )
