# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A reader resumed at any batch gives the same bits.

The laws of positions are tried on a small pipeline; datasets_test.py has them
on a seqio task.
"""

import numpy as np
import pytest

from t5wild.data import live_reader
from t5wild.data import reader_protocol

PERIOD = 4


@pytest.fixture(scope='module')
def tf(seqio):
  del seqio  # which would bring TensorFlow
  return pytest.importorskip('tensorflow')


@pytest.fixture(scope='module')
def pipeline(tf):
  """Seed -> endless shuffled batches, of parallel work and read-ahead."""

  def make(seed):
    dataset = tf.data.Dataset.range(50).shuffle(50, seed=seed).repeat()
    dataset = dataset.map(
        lambda x: {'x': tf.fill([3], x)}, num_parallel_calls=tf.data.AUTOTUNE
    )
    return dataset.shuffle(10, seed=seed).batch(4, True).prefetch(2)

  return make


@pytest.fixture
def make(pipeline):
  def make(*, seed=5, period=PERIOD, by='files', shard=(0, 1), **changes):
    return live_reader.LiveReader(
        changes.pop('make_dataset', pipeline),
        source='numbers:train',
        seed=seed,
        seed_was_drawn=False,
        share=live_reader.Share(by=by, shard_id=shard[0], num_shards=shard[1]),
        snapshot_period=period,
        **changes,
    )

  return make


def sums(reader, count):
  return [reader_protocol.checksum(next(reader)) for _ in range(count)]


@pytest.mark.parametrize('position', [0, 1, PERIOD, PERIOD + 1, 40])
@pytest.mark.parametrize('period', [PERIOD, None])
def test_reader_resumed_at_any_batch_gives_the_same_batches(
    make, position, period
):
  expected = sums(make(), 50)
  saving = make(period=period)
  sums(saving, position)
  resumed = make(period=period)
  resumed.load_state_dict(saving.state_dict())
  assert sums(resumed, 10) == expected[position : position + 10]


def test_a_reader_can_go_back(make):
  reader = make()
  state = reader.state_dict()
  expected = sums(reader, 10)
  reader.load_state_dict(state)
  assert sums(reader, 10) == expected


def test_a_position_costs_at_most_the_batches_since_a_snapshot(make):
  reader = make()
  for _ in range(30):
    next(reader)
    state = reader.state_dict()
    assert state['batches'] - state['snapshot_batches'] <= PERIOD


def test_a_snapshot_that_does_not_load_is_read_around(make):
  expected = sums(make(), 12)
  reader = make()
  sums(reader, 8)
  resumed = make()
  resumed.load_state_dict({**reader.state_dict(), 'snapshot': b'no zip'})
  assert sums(resumed, 4) == expected[8:]


@pytest.mark.parametrize('snapshot', [b'no snapshot', None])
def test_other_data_that_are_read_from_the_start_are_told_after_a_batch(
    make, tf, monkeypatch, snapshot
):
  reader = make()
  sums(reader, 20)
  state = reader.state_dict()
  if snapshot is None:  # a loadable one, of a task of another name
    state['source'] = 'letters:train'
  else:
    state['snapshot'] = snapshot
  read = []
  monkeypatch.setattr(
      live_reader.LiveReader, '_own_rows', lambda self, batch: batch
  )
  checksum = reader_protocol.checksum
  monkeypatch.setattr(
      reader_protocol, 'checksum', lambda x: read.append(1) or checksum(x)
  )

  def others(seed):
    return tf.data.Dataset.range(50, 100).repeat().map(
        lambda x: {'x': tf.fill([3], x + seed)}
    ).batch(4, True)

  other = make(make_dataset=others)
  with pytest.raises(ValueError, match='(?s)batch 0 of.*another MODEL_DIR'):
    other.load_state_dict(state)
  assert len(read) <= 2


def test_a_task_of_another_name_with_the_same_data_goes_on(make):
  expected = sums(make(), 30)
  reader = make()
  sums(reader, 20)
  resumed = make()
  resumed.load_state_dict(reader.state_dict() | {'source': 'letters:train'})
  assert sums(resumed, 10) == expected[20:]


def test_a_position_of_a_checkpoint_without_a_first_batch_goes_on(make):
  expected = sums(make(), 30)
  reader = make(period=None)
  sums(reader, 20)
  old = reader.state_dict()
  del old['first_checksum'], old['source']
  resumed = make(period=None)
  resumed.load_state_dict(old)
  assert sums(resumed, 10) == expected[20:]


def test_a_pipeline_that_cannot_be_saved_is_as_exact(make, tf):
  def unsaveable(seed):
    def numbers():
      yield from range(seed, seed + 1000)

    signature = {'x': tf.TensorSpec([], tf.int64)}
    return (
        tf.data.Dataset.from_generator(
            lambda: ({'x': x} for x in numbers()), output_signature=signature
        )
    ).batch(4, True)

  expected = sums(make(make_dataset=unsaveable), 15)
  saving = make(make_dataset=unsaveable)
  sums(saving, 9)
  resumed = make(make_dataset=unsaveable)
  resumed.load_state_dict(saving.state_dict())
  assert sums(resumed, 6) == expected[9:]


def test_a_resume_takes_the_saved_seed(make):
  first = make(seed=1)
  expected = sums(first, 6)
  saving = make(seed=1)
  sums(saving, 3)
  resumed = make(seed=2)
  resumed.load_state_dict(saving.state_dict())
  assert 'seed 1 as it was saved, not 2' in resumed.promise
  assert sums(resumed, 3) == expected[3:]


def test_changed_data_is_refused_unless_told_to_continue(make):
  first = make()
  sums(first, 2)
  state = {**first.state_dict(), 'checksum': 1}
  with pytest.raises(ValueError, match='is not the batch') as told:
    make().load_state_dict(state)
  assert 'BATCH_SIZE, rates of a mixture and library' in str(told.value)
  resumed = make(on_changed_data='continue')
  resumed.load_state_dict(state)
  assert resumed.state_dict()['batches'] == 2


def test_rows_are_shared_and_one_host_goes_on_where_two_stopped(make):
  whole = make(by='rows')
  parts = [make(by='rows', shard=(index, 2)) for index in range(2)]
  assert parts[0].element_spec == {'x': ((2, 3), np.dtype(np.int64))}
  for _ in range(3):
    joined = np.concatenate([next(part)['x'] for part in parts])
    np.testing.assert_array_equal(joined, next(whole)['x'])
  expected = sums(whole, 3)
  resumed = make(by='rows')
  resumed.load_state_dict(parts[1].state_dict())
  assert sums(resumed, 3) == expected


def test_a_position_of_other_hosts_or_another_kind_is_refused(make):
  state = make().state_dict()
  two = make(shard=(0, 2))
  with pytest.raises(ValueError, match=r'(?s)1 host\(s\).*2 host\(s\).*rows'):
    two.load_state_dict(state)
  with pytest.raises(ValueError, match="'synthetic' reader.*Train on"):
    two.load_state_dict({**state, 'kind': 'synthetic'})


def test_a_first_batch_without_targets_is_refused_with_the_mend(make, tf):
  def empty(unused_seed):
    zeros = tf.zeros([8], tf.int32)
    return tf.data.Dataset.from_tensor_slices(
        {'decoder_loss_weights': zeros}
    ).batch(4, True)

  with pytest.raises(ValueError, match='no target token.*Raise TASK_FEATURE'):
    next(make(make_dataset=empty))


def test_what_python_raises_in_a_pipeline_comes_as_it_was(make, tf):
  from t5wild.data import pipelines

  def failing(unused_seed):
    def fail(x):
      with pipelines.failures_kept():
        raise KeyError(f'line {x}')

    def mapped(x):
      return {'x': tf.ensure_shape(tf.numpy_function(fail, [x], x.dtype), [])}

    return tf.data.Dataset.range(8).map(mapped).batch(4, True)

  with pytest.raises(KeyError, match=r'line \d'):
    next(make(make_dataset=failing))


def test_tensorflow_sees_no_accelerator(make, tf):
  make()
  assert tf.config.get_visible_devices('GPU') == []


@pytest.mark.parametrize('by', ['rows', 'files'])
def test_processes_with_other_data_are_told_by_the_first_batch(
    make, monkeypatch, by
):
  met = []

  def meet(name, *, value, timeout_seconds):
    del timeout_seconds
    met.append(name)
    return [value, value, value + 1]

  monkeypatch.setattr(live_reader.distributed, 'process_count', lambda: 3)
  monkeypatch.setattr(live_reader.distributed, 'meet', meet)
  reader = make(by=by, shard=(0, 2))
  if by == 'files':  # which differ by design
    sums(reader, 2)
    assert not met
    return
  with pytest.raises(reader_protocol.OtherDataError, match=r'processes \[2\]'):
    next(reader)
  monkeypatch.setattr(
      live_reader.distributed, 'meet', lambda *_, value, **__: [value] * 3
  )
  reader = make(by=by, shard=(0, 2))
  sums(reader, 2)
