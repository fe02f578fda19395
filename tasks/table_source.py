# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A seqio data source over tables: rows of files, chosen columns of them.

Imports TensorFlow and seqio, so it is itself imported when a source is made.
"""

from collections.abc import Mapping, Sequence
import json
from typing import Any

import numpy as np
import seqio
import tensorflow as tf

from t5wild.data import documents
from t5wild.data import pipelines
from t5wild.data import table_reader
from t5wild.data import tables
from t5wild.tasks import text_source

_MOST_CHUNKS = 1 << 40


class TableSource(seqio.DataSource):
  """Rows of a table; columns of text are strings, those of tokens int32.

  Shuffled, the pieces come in a new order each epoch, a function of the seed
  and the epoch. The position of an iterator over it can be saved.
  """

  def __init__(
      self,
      table: tables.Table,
      columns: Mapping[str, str] | None = None,
      *,
      on_corrupt: str = 'fail',
      skipped: documents.SkippedLines | None = None,
  ):
    """Looks at the first rows.

    Args:
      table: the rows.
      columns: which column is each feature, None for all by their own names.
      on_corrupt: 'fail' or 'skip', for a row that cannot be read.
      skipped: counts what is left out, None for a count of its own.

    Raises:
      ValueError: no row, or no such column.
    """
    super().__init__(splits=table.splits)
    self._on_corrupt = on_corrupt
    self._reader = table_reader.TableReader(
        table, columns, on_corrupt=on_corrupt, skipped=skipped
    )

  def with_columns(self, columns: Mapping[str, str]) -> 'TableSource':
    """The same rows with other columns, by the name of their feature."""
    return type(self)(
        self._reader.table,
        columns,
        on_corrupt=self._on_corrupt,
        skipped=self._reader.skipped,
    )

  @property
  def supports_arbitrary_sharding(self) -> bool:
    """False: hosts share the pieces, or the rows where pieces are few."""
    return False

  @property
  def kinds(self) -> Mapping[str, str]:
    """'text' or 'tokens', by feature."""
    return dict(self._reader.kinds)

  @property
  def reads(self) -> str:
    """What of its files it reads: other columns are other data."""
    columns = json.dumps(self._reader.columns, sort_keys=True)
    return f'{columns}, {self._reader.table.held_out_fraction:g} held out'

  @property
  def skipped_lines(self) -> int:
    """Number of corrupt rows that were left out so far."""
    return self._reader.skipped.count

  def list_shards(self, split: str) -> Sequence[str]:
    """Names the pieces."""
    return [
        f'{piece.file.path}[{piece.start}:{piece.stop}]'
        for piece in self._reader.table.pieces(split)
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
    """One pass over the rows of a split, or of one host's share of it."""
    del sequence_length, use_cached, num_epochs
    return text_source.interleave_pieces(
        lambda piece: self._rows_of(piece, split),
        len(self._reader.table.pieces(split)),
        shuffle=shuffle, seed=seed, shard_info=shard_info,
    )  # fmt: skip

  def _rows_of(self, piece: tf.Tensor, split: str) -> tf.data.Dataset:
    kinds = self._reader.kinds
    types = [tf.bool]
    for kind in kinds.values():
      is_text = kind == table_reader.TEXT
      types += [tf.string] if is_text else [tf.int32, tf.int64]

    def read(piece, chunk):
      with pipelines.failures_kept():
        rows, is_end = self._reader.read(
            split, piece=int(piece), chunk=int(chunk)
        )
      # The chunk after the last one is asked for, and is empty.
      return [np.array(is_end and not rows), *_flat(rows, kinds)]

    def chunk_of(chunk):
      # Not stateful: only so can tf.data save the position of an iterator.
      found = tf.numpy_function(read, [piece, chunk], types, stateful=False)
      return found[0], _columns(found[1:], kinds)

    chunks = tf.data.Dataset.range(_MOST_CHUNKS).map(chunk_of)
    chunks = chunks.take_while(lambda is_past, _: tf.logical_not(is_past))
    return chunks.flat_map(
        lambda _, columns: tf.data.Dataset.from_tensor_slices(columns)
    )


def _flat(
    rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, str]
) -> list[np.ndarray]:
  """The columns of rows, those of tokens as values and lengths."""
  found = []
  for name, kind in kinds.items():
    cells = [row[name] for row in rows]
    if kind == table_reader.TEXT:
      found.append(np.array([cell.encode('utf-8') for cell in cells], object))
      continue
    found.append(np.concatenate([*cells, np.zeros(0, np.int32)]))
    found.append(np.array([cell.size for cell in cells], np.int64))
  return found


def _columns(
    flat: Sequence[tf.Tensor], kinds: Mapping[str, str]
) -> dict[str, Any]:
  parts = iter(flat)
  columns: dict[str, Any] = {}
  for name, kind in kinds.items():
    values = next(parts)
    values.set_shape([None])
    if kind != table_reader.TEXT:
      lengths = next(parts)
      lengths.set_shape([None])
      values = tf.RaggedTensor.from_row_lengths(values, lengths)
    columns[name] = values
  return columns
