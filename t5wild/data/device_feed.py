# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads ahead in a thread, so that a step seldom waits for its batch.

Each batch travels with the reader's position after it. What is saved is the
position of the batches that were consumed, however far the thread has read.
Who waits for a batch notes meanwhile what the threads that make it are at.
"""

import collections
from collections.abc import Callable, Iterator, Mapping
import queue
import threading
import time
from typing import Any

from t5wild.data import activities
from t5wild.data import reader_protocol

# How often a blocked thread looks whether it should end, in seconds.
_POLL_SECONDS = 0.2
# How often one that waits for a batch looks what it waits for.
_LOOK_SECONDS = 0.02
_COPYING = 'the copy to the device'


class DeviceFeed:
  """Iterator of batches on the device, read ahead by one thread.

  It ends when the reader does. An error of the reader or of the transfer is
  raised to the consumer, after the batches before it. Close it, or use it as a
  context: the thread then ends. The thread starts with the first batch asked
  for, so the reader may be moved to a saved position until then.
  """

  def __init__(
      self,
      reader: reader_protocol.Reader,
      to_device: Callable[[reader_protocol.Batch], Any],
      prefetch: int = 2,
  ):
    """Takes the reader, which it owns from the first batch on.

    Args:
      reader: where batches come from.
      to_device: host batch -> device batch, such as a partitioner's
        `global_batch`; called in the thread.
      prefetch: batches to keep ready, at least 1.
    """
    if prefetch < 1:
      raise ValueError(
          f'prefetch is {prefetch}: expected at least 1 batch to be kept '
          'ready. Set it to 2.'
      )
    self._reader = reader
    self._to_device = to_device
    self._queue: queue.Queue[tuple[Any, Any, BaseException | None]] = (
        queue.Queue(maxsize=prefetch)
    )
    self._end = threading.Event()
    self._thread: threading.Thread | None = None
    self._state: dict[str, Any] | None = None
    self._error: BaseException | None = None
    self._num_consumed = 0
    self._is_copying = False
    self._waits: collections.Counter[str] = collections.Counter()
    self.wait_seconds = 0.0

  def take_waits(self) -> Mapping[str, float]:
    """Seconds waited since the last call, by what was waited for."""
    waits, self._waits = self._waits, collections.Counter()
    return waits

  @property
  def num_consumed(self) -> int:
    """Batches handed to the consumer so far."""
    return self._num_consumed

  def __iter__(self) -> Iterator[Any]:
    """Returns itself."""
    return self

  def __next__(self) -> Any:
    """Returns the next device batch; `wait_seconds` is how long that took."""
    if self._error is not None:
      raise self._error
    self._start()
    started = time.perf_counter()
    batch, state, error = self._take()
    self.wait_seconds = time.perf_counter() - started
    if error is not None:
      self._error = error
      raise error
    self._state = state
    self._num_consumed += 1
    return batch

  def state_at(self, num_consumed: int | None = None) -> dict[str, Any]:
    """The reader's position after the batches that were consumed.

    Args:
      num_consumed: how many the caller believes it has consumed, checked; None
        to take its word.

    Returns:
      What `Reader.load_state_dict` takes.

    Raises:
      ValueError: where the count is another.
    """
    if num_consumed is not None and num_consumed != self._num_consumed:
      raise ValueError(
          f'the data position after {num_consumed} batches was asked for, and '
          f'{self._num_consumed} have been consumed: expected the same. Save '
          'before the next batch is taken.'
      )
    if self._state is None:
      self._state = self._reader.state_dict()
    return self._state

  def close(self) -> None:
    """Ends the thread; what it has read ahead is dropped. May be repeated."""
    self._end.set()
    if self._thread is not None:
      self._thread.join()
      self._thread = None

  def __enter__(self) -> 'DeviceFeed':
    """Returns itself."""
    return self

  def __exit__(self, *unused: object) -> None:
    """Closes it."""
    self.close()

  def _start(self) -> None:
    if self._end.is_set():
      raise ValueError(
          f'batch {self._num_consumed} was asked of a closed DeviceFeed: '
          'expected none after close(). Make a new one over the reader.'
      )
    if self._thread is None:
      # The position before anything is read ahead.
      self._state = self._reader.state_dict()
      self._thread = threading.Thread(
          target=self._run, name='t5wild-device-feed', daemon=True
      )
      self._thread.start()

  def _take(self) -> tuple[Any, Any, BaseException | None]:
    try:
      return self._queue.get_nowait()
    except queue.Empty:
      pass
    while True:
      started = time.perf_counter()
      what = self._waited_for()
      try:
        return self._queue.get(timeout=_LOOK_SECONDS)
      except queue.Empty:
        if self._thread is None or not self._thread.is_alive():
          return self._last_word()
      finally:
        self._waits[what] += time.perf_counter() - started

  def _waited_for(self) -> str:
    source = getattr(self._reader, 'source', type(self._reader).__name__)
    if self._is_copying:
      return _COPYING
    thread = self._thread
    found = activities.now(thread.ident if thread is not None else None)
    return f'{source}, {found}' if found else source

  def _last_word(self) -> tuple[Any, Any, BaseException | None]:
    """What a thread that has ended left, if it left anything."""
    try:
      return self._queue.get_nowait()
    except queue.Empty:
      return None, None, StopIteration()

  def _run(self) -> None:
    while not self._end.is_set():
      try:
        on_host = next(self._reader)
        self._is_copying = True
        batch = self._to_device(on_host)
        self._is_copying = False
        item = (batch, self._reader.state_dict(), None)
      except BaseException as error:  # noqa: BLE001 -- raised to the consumer
        item = (None, None, error)
      self._put(item)
      if item[2] is not None:
        return

  def _put(self, item: tuple[Any, Any, BaseException | None]) -> None:
    while not self._end.is_set():
      try:
        self._queue.put(item, timeout=_POLL_SECONDS)
        return
      except queue.Full:
        continue
