# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Batches for a loop of the user's own: looked at, saved, gone back to."""

import itertools

import jax
import numpy as np
import pytest

from t5wild.data import datasets
from t5wild.own_binaries import train_iter
from t5wild.partitioning import partitioner as partitioner_lib


class _Batches:
  """Numbered batches, which can be made again."""

  def __iter__(self):
    """Yields batches of one number each."""
    for number in itertools.count():
      yield {'targets': np.full((8, 3), number, np.int32)}


@pytest.fixture
def batches():
  partitioner = partitioner_lib.PjitPartitioner(num_partitions=1)
  prepared = train_iter.prepare_train_iter(
      _Batches(),
      partitioner=partitioner,
      checkpoint_cfg=None,
      data_layout=partitioner.get_data_layout(8),
  )
  yield prepared
  prepared.close()


def _number(batch):
  assert isinstance(batch['targets'], jax.Array)
  return int(batch['targets'][0, 0])


def test_a_batch_that_was_looked_at_comes_next(batches):
  assert batches.element_spec['targets'].shape == (8, 3)
  assert _number(batches.peek_async().result()) == 0
  assert _number(batches.peek()) == 0
  assert [_number(next(batches)) for _ in range(3)] == [0, 1, 2]
  assert _number(batches.peek()) == 3
  assert _number(next(batches)) == 3


def test_a_saved_position_is_that_of_the_batches_handed_out(batches):
  for _ in range(3):
    next(batches)
  position = batches.state_dict()
  # Neither a look ahead nor later batches move what was saved.
  batches.peek()
  assert batches.state_dict() == position
  after = [_number(next(batches)) for _ in range(4)]
  batches.load_state_dict(position)
  assert [_number(next(batches)) for _ in range(4)] == after == [3, 4, 5, 6]
  batches.reset()
  assert _number(next(batches)) == 0


def test_batches_of_another_size_are_refused():
  partitioner = partitioner_lib.PjitPartitioner(num_partitions=1)
  with pytest.raises(ValueError, match='expected 16 in each feature'):
    train_iter.prepare_train_iter(
        _Batches(),
        partitioner=partitioner,
        checkpoint_cfg=None,
        data_layout=partitioner.get_data_layout(16),
    )


def test_get_dataset_inner_reads_by_its_own_seed(monkeypatch):
  asked = {}

  def get_dataset(cfg, shard_id, num_shards, converter, *, num_epochs):
    asked.update(
        seed=cfg.seed, shard=(shard_id, num_shards), epochs=num_epochs
    )

  monkeypatch.setattr(datasets, 'get_dataset', get_dataset)
  cfg = datasets.DatasetConfig(
      mixture_or_task_name='any', task_feature_lengths=None, split='train',
      batch_size=8, shuffle=False, seed=1,
  )  # fmt: skip

  class Shard:
    index, num_shards = 2, 4

  train_iter.get_dataset_inner(cfg, Shard, None, seed=7, num_epochs=1)
  assert asked == {'seed': 7, 'shard': (2, 4), 'epochs': 1}
  assert cfg.seed == 1
