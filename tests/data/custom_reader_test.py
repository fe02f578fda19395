# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a `get_dataset_fn` gives is read, and resumes as exactly as it can."""

import itertools

import numpy as np
import pytest

from t5wild import data
from t5wild import partitioning

LAYOUT = partitioning.DataLayout(
    batch_size=4, shard_id=1, num_shards=2, is_first_host_in_replica_set=True
)


def _config(**fields):
  return data.DatasetConfig(**{
      'mixture_or_task_name': 'not read',
      'task_feature_lengths': {'inputs': 3},
      'split': 'train', 'batch_size': 4, 'shuffle': True, 'seed': 5, **fields,
  })  # fmt: skip


def _batches(cfg, shard_id, num_shards, feature_converter_cls,
             num_epochs=None, continue_from_last_checkpoint=False):
  del feature_converter_cls, num_epochs, continue_from_last_checkpoint
  rows = cfg.batch_size // num_shards
  for i in itertools.count():
    yield {'x': np.full((rows, 3), 100 * shard_id + i + cfg.seed, np.int32)}


def _tf_batches(cfg, shard_id, num_shards, *unused):
  import tensorflow as tf

  return (
      tf.data.Dataset.range(1000)
      .shuffle(100, seed=cfg.seed)
      .map(lambda i: {'x': tf.fill((3,), i)})
      .batch(cfg.batch_size // num_shards, drop_remainder=True)
  )


class _WithState:
  """Counts, and says where it stands, as grain's iterators do."""

  def __init__(self, *unused):
    self._next = 0

  def __iter__(self):
    return self

  def __next__(self):
    self._next += 1
    return {'x': np.full((2, 3), self._next)}

  def get_state(self):
    return {'next': self._next}

  def set_state(self, state):
    self._next = state['next']


def _reader(fn, **fields):
  return data.make_train_reader(
      _config(**fields),
      data_layout=LAYOUT,
      feature_converter_cls=None,
      get_dataset_fn=fn,
  )


def _take(reader, count):
  return [next(reader)['x'].copy() for _ in range(count)]


def test_the_function_gets_t5x_arguments_and_its_batches_come_out():
  reader = _reader(_batches)
  assert reader.element_spec == {'x': ((2, 3), np.dtype('int32'))}
  np.testing.assert_array_equal(
      [batch[0, 0] for batch in _take(reader, 3)], [105, 106, 107]
  )


@pytest.mark.parametrize('fn', [_batches, _tf_batches, _WithState])
@pytest.mark.parametrize('position', [0, 1, 5])
def test_a_reader_resumed_at_any_batch_gives_the_same_batches(fn, position):
  reader = _reader(fn)
  _take(reader, position)
  state = reader.state_dict()
  expected = _take(reader, 4)
  resumed = _reader(fn)
  resumed.load_state_dict(state)
  np.testing.assert_array_equal(_take(resumed, 4), expected)


def test_a_seed_that_was_drawn_is_saved():
  state = _reader(_tf_batches, seed=None).state_dict()
  expected = _reader(_tf_batches, seed=state['seed'])
  resumed = _reader(_tf_batches, seed=None)
  resumed.load_state_dict(state)
  np.testing.assert_array_equal(_take(resumed, 2), _take(expected, 2))


def test_a_reader_says_whether_its_position_is_exact():
  inexact = _reader(_batches)
  assert not inexact.is_exact
  assert 'position cannot be saved' in inexact.promise
  assert _reader(_WithState).is_exact
  assert getattr(_reader(_tf_batches), 'is_exact', True)


def _changing():
  made = itertools.count()

  def fn(*unused):
    start = 1000 * next(made)
    for i in itertools.count(start):
      yield {'x': np.full((2, 3), i)}

  return fn


def test_batches_that_differ_after_a_restart_are_told():
  fn = _changing()
  reader = _reader(fn)
  _take(reader, 2)
  with pytest.raises(ValueError, match='saved checksum'):
    _reader(fn).load_state_dict(reader.state_dict())
  going_on = _reader(fn, on_changed_data='continue')
  going_on.load_state_dict(reader.state_dict())
  assert len(_take(going_on, 1)) == 1


@pytest.mark.parametrize(
    ('result', 'message'),
    [
        (None, 'gave a NoneType: expected a tf.data.Dataset'),
        ([], 'gave no batch'),
        ([(1, 2)], 'batch of type tuple: expected a mapping'),
        ([{'x': np.zeros((4, 3))}], "'x': 4} rows: expected 2 in each"),
    ],
)
def test_what_is_no_batch_is_refused(result, message):
  with pytest.raises((TypeError, ValueError), match=message):
    _reader(lambda *unused: result)


def test_a_position_of_another_reader_is_refused():
  with pytest.raises(ValueError, match="now:   an 'iterable' reader on 2"):
    _reader(_batches).load_state_dict({'kind': 'live', 'num_shards': 2})
