# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Training batches on the devices, for a loop that asks for them one by one."""

from collections.abc import Iterator
from concurrent import futures
import dataclasses
import types
from typing import Any

import jax

from t5wild.data import custom_reader
from t5wild.data import datasets
from t5wild.data import device_feed


class TrainIter:
  """Iterates over batches on the devices, with a position to save.

  Attributes:
    element_spec: Feature -> shape (of this host's rows) and dtype.
  """

  def __init__(self, reader: Any, *, partitioner: Any):
    """Takes a reader of this host's rows; nothing is read ahead yet."""
    self._reader = reader
    self._partitioner = partitioner
    self._first_state = reader.state_dict()
    self._feed = self._make_feed()
    self._pool = futures.ThreadPoolExecutor(1, 'first_batch')
    self._peeked: tuple[Any, dict[str, Any]] | None = None
    self.element_spec = {
        name: jax.ShapeDtypeStruct(shape, dtype)
        for name, (shape, dtype) in reader.element_spec.items()
    }

  def _make_feed(self) -> device_feed.DeviceFeed:
    return device_feed.DeviceFeed(
        self._reader, to_device=self._partitioner.global_batch
    )

  def __iter__(self) -> Iterator[Any]:
    """Returns itself."""
    return self

  def __next__(self) -> Any:
    """Returns the next batch."""
    if self._peeked is None:
      return next(self._feed)
    batch, self._peeked = self._peeked[0], None
    return batch

  def peek(self) -> Any:
    """Returns the next batch and leaves it to be the next."""
    if self._peeked is None:
      before = self._feed.state_at()
      self._peeked = next(self._feed), before
    return self._peeked[0]

  def peek_async(self) -> futures.Future:
    """Starts to read ahead; a future of the next batch.

    Ask for its result before the next batch.
    """
    return self._pool.submit(self.peek)

  def state_dict(self) -> dict[str, Any]:
    """The position after the batches handed out, to be saved."""
    return self._feed.state_at() if self._peeked is None else self._peeked[1]

  def load_state_dict(self, state: dict[str, Any]) -> None:
    """Goes to a saved position."""
    self._feed.close()
    self._peeked = None
    self._reader.load_state_dict(state)
    self._feed = self._make_feed()

  def reset(self) -> None:
    """Goes back to where it stood at first."""
    self.load_state_dict(self._first_state)

  def close(self) -> None:
    """Ends the threads that read ahead."""
    self._pool.shutdown(wait=True)
    self._feed.close()


def prepare_train_iter(
    train_iter: Any,
    *,
    partitioner: Any,
    checkpoint_cfg: Any,
    data_layout: Any,
) -> TrainIter:
  """Makes the batches that a data set gives arrays on the devices.

  Args:
    train_iter: What a `get_dataset_fn` gave: a tf.data.Dataset or an iterable
      of mappings to numpy arrays, with this host's rows.
    partitioner: Lays rows over the devices.
    checkpoint_cfg: T5X's argument; the position can always be saved.
    data_layout: Which rows are this host's.

  Raises:
    ValueError: Its batches have another size.
    TypeError: It is no iterable of mappings.
  """
  del checkpoint_cfg
  reader = custom_reader.make_custom_reader(
      lambda *unused: train_iter,
      types.SimpleNamespace(seed=0),
      data_layout=data_layout,
      feature_converter_cls=None,
      draw_seed=lambda: 0,
  )
  return TrainIter(reader, partitioner=partitioner)


def get_dataset_inner(
    cfg: datasets.DatasetConfig,
    shard_info: Any,
    feature_converter_cls: Any,
    seed: int | None = None,
    num_epochs: int | None = None,
) -> Any:
  """`data.get_dataset` of a seqio.ShardInfo and a seed."""
  return datasets.get_dataset(
      dataclasses.replace(cfg, seed=seed),
      shard_info.index,
      shard_info.num_shards,
      feature_converter_cls,
      num_epochs=num_epochs,
  )
