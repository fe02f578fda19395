# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Synthetic batches are a function of seed and number."""

import types

import numpy as np
import pytest

from t5wild.data import datasets
from t5wild.data import synthetic

LENGTHS = {'inputs': 12, 'targets': 7}


def config(**changes):
  return synthetic.SyntheticConfig(
      **{
          'batch_size': 6,
          'task_feature_lengths': LENGTHS,
          'vocab_size': 50,
          **changes,
      }
  )


def reader(*, shard_id=0, num_shards=1, **changes):
  return datasets.make_train_reader(
      config(**changes),
      data_layout=types.SimpleNamespace(
          batch_size=6, shard_id=shard_id, num_shards=num_shards
      ),
      feature_converter_cls=None,
  )


def equal(left, right):
  assert left.keys() == right.keys()
  for name, array in left.items():
    np.testing.assert_array_equal(array, right[name])


def test_a_resumed_reader_gives_the_same_batches():
  first = reader()
  for _ in range(3):
    next(first)
  resumed = reader()
  resumed.load_state_dict(first.state_dict())
  equal(next(first), next(resumed))


@pytest.mark.parametrize('num_shards', [2, 3])
def test_a_global_batch_is_the_same_for_any_number_of_hosts(num_shards):
  whole = next(reader(segments=3))
  parts = [
      next(reader(shard_id=index, num_shards=num_shards, segments=3))
      for index in range(num_shards)
  ]
  equal(
      whole,
      {name: np.concatenate([part[name] for part in parts]) for name in whole},
  )


def test_element_spec_is_that_of_the_batches():
  made = reader(num_shards=2, segments=2)
  batch = next(made)
  assert dict(made.element_spec) == {
      name: (array.shape, array.dtype) for name, array in batch.items()
  }


def test_tokens_are_within_the_vocabulary_and_never_padding():
  batch = next(reader())
  for name in ('encoder_input_tokens', 'decoder_target_tokens'):
    assert batch[name].min() >= 2
    assert batch[name].max() < 50
  assert batch['decoder_loss_weights'].all()


def test_packed_rows_have_positions_from_zero_in_each_segment():
  batch = next(reader(segments=3))
  ids = batch['encoder_segment_ids'][0]
  assert ids.tolist() == [1] * 4 + [2] * 4 + [3] * 4
  assert batch['encoder_positions'][0].tolist() == [0, 1, 2, 3] * 3
  starts = batch['decoder_positions'] == 0
  assert (batch['decoder_input_tokens'][starts] == 0).all()
  shifted = batch['decoder_input_tokens'][:, 1:][~starts[:, 1:]]
  targets = batch['decoder_target_tokens'][:, :-1][~starts[:, 1:]]
  np.testing.assert_array_equal(shifted, targets)


def test_what_makes_no_batch_is_refused():
  with pytest.raises(ValueError, match='segments is 8.*1 to 7'):
    config(segments=8)
  with pytest.raises(ValueError, match='vocab_size is 2'):
    config(vocab_size=2)
  with pytest.raises(ValueError, match='does not divide over 4'):
    reader(num_shards=4)
  state = reader(seed=1).state_dict()
  with pytest.raises(ValueError, match='(?s)seed 1.*seed 0'):
    reader().load_state_dict(state)
