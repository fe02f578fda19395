# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""seqio data sources over text files: their pieces, or what is made of them.

Imports TensorFlow and seqio, so it is itself imported when a task is made.
"""

from collections.abc import Callable, Mapping, Sequence
import itertools

import numpy as np
import seqio
import tensorflow as tf

from t5wild.data import documents
from t5wild.data import pipelines

# Pieces open at a time: what is in them takes turns.
_CYCLE_LENGTH = 16


def interleave_pieces(
    contents_of: Callable[[tf.Tensor], tf.data.Dataset],
    count: int,
    *,
    shuffle: bool,
    seed: int | None,
    shard_info: seqio.ShardInfo | None,
) -> tf.data.Dataset:
  """One pass over the pieces of a split, or of one host's share of them.

  Args:
    contents_of: given the number of a piece.
    count: pieces of the split.
    shuffle: take them in an order of the seed.
    seed: of that order; None for any.
    shard_info: the host's share; None for all.
  """
  dataset = tf.data.Dataset.range(count)
  if shard_info is not None:
    dataset = dataset.shard(shard_info.num_shards, shard_info.index)
  if shuffle:
    dataset = dataset.shuffle(max(count, 1), seed=seed)
  return dataset.interleave(contents_of, cycle_length=_CYCLE_LENGTH)


class TextSource(seqio.DataSource):
  """Documents of text files as {'targets': string}, piece by piece.

  Shuffled, the pieces come in a new order each epoch, a function of the seed
  and the epoch. The position of an iterator over it can be saved.
  """

  def __init__(
      self,
      split_to_pieces: Mapping[str, Sequence[documents.Piece]],
      *,
      reader: documents.DocumentReader,
  ):
    """Takes the pieces of each split and the way to read one."""
    super().__init__(splits=split_to_pieces)
    self._split_to_pieces = {
        split: tuple(pieces) for split, pieces in split_to_pieces.items()
    }
    self._reader = reader

  @property
  def supports_arbitrary_sharding(self) -> bool:
    """False: hosts share the pieces, or the examples where pieces are few."""
    return False

  def byte_counts(self) -> np.ndarray:
    """How often each byte occurs in all splits together: [256]."""
    pieces = itertools.chain(*self._split_to_pieces.values())
    return documents.byte_counts(list(pieces), reader=self._reader)

  @property
  def reads(self) -> str:
    """The field of its records that is read, where it is not the usual one."""
    field = self._reader.text_field
    return '' if field == 'text' else f'field {field!r}'

  @property
  def skipped_lines(self) -> int:
    """Number of corrupt lines that were left out so far."""
    return self._reader.skipped.count

  def list_shards(self, split: str) -> Sequence[str]:
    """Names the pieces."""
    return [
        f'{piece.file.path}[{piece.start}:{piece.stop}]'
        for piece in self._split_to_pieces[split]
    ]

  def get_dataset(
      self,
      split: str = 'train',
      shuffle: bool = True,
      seed: int | None = None,
      shard_info: seqio.ShardInfo | None = None,
      *,
      sequence_length: Mapping[str, int] | None = None,
      use_cached: bool = False,
      num_epochs: int | None = 1,
  ) -> tf.data.Dataset:
    """One pass over the documents of a split, or of one host's share of it."""
    del sequence_length, use_cached, num_epochs
    pieces = self._split_to_pieces[split]

    def read(index):
      with pipelines.failures_kept():
        return np.array(self._reader.read(pieces[index]), object)

    def documents_of(index):
      # Not stateful: only so can tf.data save the position of an iterator.
      texts = tf.numpy_function(read, [index], tf.string, stateful=False)
      texts.set_shape([None])
      return tf.data.Dataset.from_tensor_slices({'targets': texts})

    return interleave_pieces(
        documents_of, len(pieces),
        shuffle=shuffle, seed=seed, shard_info=shard_info,
    )  # fmt: skip


class ExampleSource(seqio.DataSource):
  """Examples of strings that are made at once, and kept by who makes them.

  In one order: a task shuffles them, in a buffer that its iterators save, which
  seqio's FunctionDataSource warns could not be.
  """

  def __init__(
      self,
      split_to_make: Mapping[str, Callable[[], Sequence[Mapping[str, str]]]],
  ):
    """Takes what makes the examples of each split, called when they are read.

    Args:
      split_to_make: functions that return at least one example, all with the
        same fields.
    """
    super().__init__(splits=split_to_make)
    self._split_to_make = dict(split_to_make)

  @property
  def supports_arbitrary_sharding(self) -> bool:
    """False: hosts share the examples."""
    return False

  def list_shards(self, split: str) -> Sequence[str]:
    """Names one shard."""
    return [split]

  def get_dataset(
      self,
      split: str = 'train',
      shuffle: bool = True,
      seed: int | None = None,
      shard_info: seqio.ShardInfo | None = None,
      *,
      sequence_length: Mapping[str, int] | None = None,
      use_cached: bool = False,
      num_epochs: int | None = 1,
  ) -> tf.data.Dataset:
    """One pass over the examples of a split, or over one host's share."""
    del shuffle, seed, sequence_length, use_cached, num_epochs
    examples = self._split_to_make[split]()
    dataset = tf.data.Dataset.from_tensor_slices({
        field: [example[field] for example in examples]
        for field in examples[0]
    })
    if shard_info is not None:
      dataset = dataset.shard(shard_info.num_shards, shard_info.index)
    return dataset
