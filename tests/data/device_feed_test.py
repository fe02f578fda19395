# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The feed reads ahead, and the saved position does not."""

import threading
import time

import pytest

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
