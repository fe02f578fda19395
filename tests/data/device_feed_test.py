# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The feed reads ahead, and the saved position does not."""

import contextlib
import threading
import time

import pytest

from t5wild.data import activities
from t5wild.data import datasets
from t5wild.data import device_feed


class Numbers:
  """A reader of 0, 1, 2, ...; fails or ends where told."""

  def __init__(self, *, end=None, fail_at=None):
    self.position = 0
    self._end = end
    self._fail_at = fail_at

  def __iter__(self):
    return self

  def __next__(self):
    if self.position == self._end:
      raise StopIteration
    if self.position == self._fail_at:
      raise OSError('disk on fire')
    self.position += 1
    return self.position - 1

  def state_dict(self):
    return {'batches': self.position}


def wait_for(condition):
  deadline = time.monotonic() + 20
  while not condition():
    assert time.monotonic() < deadline, 'waited for 20 s'
    time.sleep(0.005)


def feed_threads():
  return [
      thread
      for thread in threading.enumerate()
      if thread.name == 't5wild-device-feed'
  ]


def test_batches_come_in_order_and_through_to_device():
  with device_feed.DeviceFeed(Numbers(end=5), lambda batch: batch * 10) as feed:
    assert list(feed) == [0, 10, 20, 30, 40]


@pytest.mark.parametrize('prefetch', [1, 3])
def test_saved_position_is_of_the_batches_consumed_however_far_it_read(
    prefetch,
):
  reader = Numbers()
  with device_feed.DeviceFeed(reader, lambda x: x, prefetch=prefetch) as feed:
    assert feed.state_at() == {'batches': 0}
    for consumed in range(1, 6):
      next(feed)
      wait_for(lambda: reader.position >= consumed + prefetch)  # noqa: B023
      assert feed.state_at(consumed) == {'batches': consumed}


def test_it_reads_no_further_than_it_keeps():
  reader = Numbers()
  with device_feed.DeviceFeed(reader, lambda x: x, prefetch=2) as feed:
    next(feed)
    wait_for(lambda: reader.position == 4)
    time.sleep(0.05)
    assert reader.position == 4  # 1 consumed, 2 kept, 1 in hand


def test_nothing_is_read_before_the_first_batch_is_asked_for():
  reader = Numbers()
  feed = device_feed.DeviceFeed(reader, lambda x: x)
  reader.position = 7  # as load_state_dict would
  with feed:
    assert next(feed) == 7


def test_an_error_of_the_reader_comes_after_the_batches_before_it():
  with device_feed.DeviceFeed(Numbers(fail_at=2), lambda x: x) as feed:
    assert [next(feed), next(feed)] == [0, 1]
    for _ in range(2):
      with pytest.raises(OSError, match='disk on fire'):
        next(feed)
    assert feed.state_at() == {'batches': 2}


def test_an_error_of_the_transfer_comes_to_the_consumer():
  def to_device(batch):
    raise RuntimeError(f'no room for {batch}')

  with (
      device_feed.DeviceFeed(Numbers(), to_device) as feed,
      pytest.raises(RuntimeError, match='no room for 0'),
  ):
    next(feed)


def test_closing_ends_the_thread_though_it_waits_for_room():
  feed = device_feed.DeviceFeed(Numbers(), lambda x: x, prefetch=1)
  next(feed)
  assert feed_threads()
  feed.close()
  feed.close()
  assert not feed_threads()
  with pytest.raises(ValueError, match=r'closed DeviceFeed.*Make a new one'):
    next(feed)


def test_wait_seconds_is_what_the_consumer_waited():
  done = []

  def slow(batch):
    time.sleep(0.2)
    done.append(batch)
    return batch

  with device_feed.DeviceFeed(Numbers(), slow, prefetch=1) as feed:
    next(feed)
    assert feed.wait_seconds >= 0.15
    wait_for(lambda: len(done) >= 3)  # one kept, one in hand
    next(feed)
    assert feed.wait_seconds < 0.15


def test_a_wrong_count_or_no_room_is_refused():
  with device_feed.DeviceFeed(Numbers(), lambda x: x) as feed:
    next(feed)
    with pytest.raises(ValueError, match='after 2 batches.*1 have been'):
      feed.state_at(2)
  with pytest.raises(ValueError, match='prefetch is 0'):
    device_feed.DeviceFeed(Numbers(), lambda x: x, prefetch=0)


def _waits(reader, to_device=lambda batch: batch, *, count=4):
  """Shares of the wait for some batches, by what was waited for."""
  with device_feed.DeviceFeed(reader, to_device) as feed:
    for _ in range(count):
      next(feed)
    waits = feed.take_waits()
    assert not feed.take_waits()
  total = sum(waits.values())
  return {what: seconds / total for what, seconds in waits.items()}


class Slow(Numbers):
  """Has a name, and does something slow for each number."""

  source = 'digits:train'

  def __init__(self, what=None):
    super().__init__()
    self._what = what

  def __next__(self):
    if self._what is None:
      time.sleep(0.06)
    else:
      with activities.doing(self._what):
        threading.Event().wait(0.06)
    return super().__next__()


def test_a_wait_is_booked_on_the_users_code_that_is_slow():
  shares = _waits(Slow())
  (what,) = [each for each in shares if 'Slow.__next__' in each]
  assert what.startswith('digits:train, Slow.__next__ at ')
  assert 'device_feed_test.py:' in what
  assert shares[what] > 0.8


def test_a_wait_is_booked_on_the_file_that_is_read(monkeypatch):
  # The code of this test is no user's then.
  monkeypatch.setattr(activities, '_is_users', lambda path: False)
  shares = _waits(Slow('reading some.txt'))
  assert shares['digits:train, reading some.txt'] > 0.8


def test_a_wait_is_booked_on_the_copy_to_the_device():
  def slow(batch):
    time.sleep(0.06)
    return batch

  assert _waits(Numbers(), slow)['the copy to the device'] > 0.8


def test_a_quick_reader_is_hardly_waited_for():
  with device_feed.DeviceFeed(Numbers(), lambda batch: batch) as feed:
    next(feed)
    feed.take_waits()
    for _ in range(10):
      time.sleep(0.02)
      next(feed)
    # Nothing, but for a machine that is busy: half of the time of the steps.
    assert sum(feed.take_waits().values()) < 0.1


def test_a_slow_preprocessor_in_a_live_task_is_named(seqio, text_task, layout):
  def dawdle(document):
    time.sleep(0.02)
    return document

  def slowly(dataset):
    import tensorflow as tf

    return dataset.map(lambda example: {
        'targets': tf.ensure_shape(
            tf.numpy_function(dawdle, [example['targets']], tf.string), []
        )
    })

  task = seqio.Task(
      'dawdling',
      source=text_task.source,
      preprocessors=[slowly, *text_task.preprocessors],
      output_features=text_task.output_features,
      shuffle_buffer_size=None,
  )
  cfg = datasets.DatasetConfig(
      mixture_or_task_name=task,
      task_feature_lengths={'inputs': 64, 'targets': 32},
      split='train',
      batch_size=4,
      shuffle=False,
      seed=0,
  )
  reader = datasets.make_train_reader(
      cfg,
      data_layout=layout(),
      feature_converter_cls=seqio.EncDecFeatureConverter,
  )
  with contextlib.closing(reader):
    shares = _waits(reader, count=6)
  found = {what: share for what, share in shares.items() if '.dawdle' in what}
  assert sum(found.values()) > 0.6, shares
  assert all(what.startswith('dawdling:train, ') for what in found)
