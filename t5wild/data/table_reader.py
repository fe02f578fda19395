# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads chosen columns of tables as text or tokens, chunk by chunk.

A chunk is a function of the piece and its number, so that a reader of chunks
can be resumed; read in order, each goes on where the one before it ended.
Imports neither seqio nor TensorFlow.
"""

import collections
from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import difflib
import functools
import itertools
import threading
from typing import Any

import numpy as np

from t5wild.data import documents
from t5wild.data import table_rows
from t5wild.data import tables

CHUNK_ROWS = 256
TEXT, TOKENS = 'text', 'tokens'
_PEEKED_ROWS = 100
_FIRST_ROWS = 1000  # among which one at least is held out
_MOST_OPEN = 64
_PLACES = {'jsonl': 'line', 'tfrecord': 'record'}


def to_text(value: Any) -> str:
  """A value as text; a list of one is its only item.

  Raises:
    ValueError: it is none.
  """
  if isinstance(value, list | np.ndarray):
    if len(value) != 1:
      raise ValueError(f'a list of {len(value)}, no text')
    value = value[0]
  if isinstance(value, bytes):
    return value.decode('utf-8')
  if isinstance(value, str):
    value.encode('utf-8')  # refuses lone surrogates, which are no text
    return value
  if isinstance(value, bool | int | float | np.integer | np.floating):
    return str(value)
  raise ValueError(f'{value!r:.60}, no text')


def to_tokens(value: Any) -> np.ndarray:
  """A list of whole numbers as int32 [tokens].

  Raises:
    ValueError: it is none.
  """
  array = np.asarray(value)
  if array.ndim != 1 or (array.size and array.dtype.kind not in 'iu'):
    raise ValueError(f'{value!r:.60}, no list of whole numbers')
  if array.size and not 0 <= array.min() <= array.max() < 1 << 31:
    raise ValueError(
        f'tokens from {array.min()} to {array.max()}, which are no ids'
    )
  return array.astype(np.int32)


def _is_tokens(values: Sequence[Any]) -> bool:
  """Whether a column of these values has lists of whole numbers."""
  lists = [v for v in values if isinstance(v, list | np.ndarray)]
  if not lists or len(lists) < len(values):
    return False
  first = next((v[0] for v in lists if len(v)), None)
  if isinstance(first, str | bytes):
    return False
  # A tf.Example has no single numbers, but lists of one.
  return not all(isinstance(v, np.ndarray) and len(v) == 1 for v in lists)


class TableReader:
  """Reads chosen columns of a table, chunk by chunk."""

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
      table: what to read.
      columns: the column of each feature, None for all by their own names.
      on_corrupt: 'fail' or 'skip', for a row that cannot be read.
      skipped: counts what is left out, None for a count of its own.

    Raises:
      ValueError: there is no row, or no such column.
    """
    documents.DocumentReader(on_corrupt=on_corrupt)  # refuses another policy
    self.table = table
    self.skipped = skipped or documents.SkippedLines()
    self._on_corrupt = on_corrupt
    self._lock = threading.Lock()
    self._open: collections.OrderedDict[Any, Iterator[Any]] = (
        collections.OrderedDict()
    )
    peeked = self._peek()
    self.columns = dict(
        columns or {name: name for name in table_rows.columns_of(peeked[0])}
    )
    self.kinds = {
        feature: self._kind_of(column, peeked, is_chosen=columns is not None)
        for feature, column in self.columns.items()
    }
    unread = [name for name, kind in self.kinds.items() if kind is None]
    for name in unread:
      del self.columns[name], self.kinds[name]

  @functools.cached_property
  def _labels(self) -> Mapping[str, Sequence[str]]:
    first = next(iter(self.table.files.values()))[0]
    return table_rows.labels_of(first)

  def _peek(self) -> list[Mapping[str, Any]]:
    for split in self.table.files:
      found = list(itertools.islice(self.raw_rows(split), _PEEKED_ROWS))
      if found:
        return [values for _, _, values in found]
    paths = [f.path for files in self.table.files.values() for f in files]
    raise ValueError(
        f'{self.table.name} is empty: {len(paths)} files ({paths[0]}, ...) '
        'without a row. Expected one at least. Correct the path, or write the '
        'files again.'
    )

  def raw_rows(
      self, split: str
  ) -> Iterator[tuple[tables.TableFile, int, Mapping[str, Any]]]:
    """Yields (file, key, values by column) of all rows, held out or not."""
    for piece in self.table.pieces(split):
      complain = functools.partial(self._complain, piece)
      rows = table_rows.rows_of(piece, columns=None, complain=complain)
      for key, _, values in rows:
        yield piece.file, key, values

  def _kind_of(
      self, column: str, peeked: Sequence[Mapping[str, Any]], *, is_chosen: bool
  ) -> str | None:
    found = []
    for values in peeked:
      try:
        found.append(table_rows.value_of(values, column))
      except KeyError:
        continue
    if not found:
      names = table_rows.columns_of(peeked[0])
      close = difflib.get_close_matches(column, names, n=1)
      hint = f' (did you mean {close[0]!r}?)' if close else ''
      raise ValueError(
          f'{self.table.name} has no column {column!r}{hint}: expected one of '
          f'{names}. Choose one of them.'
      )
    if column in self.table.kinds:
      return self.table.kinds[column]
    if _is_tokens([value for value in found if value is not None]):
      return TOKENS
    if is_chosen:
      return TEXT
    try:
      to_text(next(value for value in found if value is not None))
    except (ValueError, StopIteration):
      return None
    return TEXT

  def _complain(self, piece: tables.Piece, number: int, reason: str) -> None:
    path, kind = piece.file.path, piece.file.kind
    if piece.start and kind == 'jsonl':
      number += documents.lines_before(piece)
    place = _PLACES.get(kind, 'row')
    if self._on_corrupt == 'fail':
      raise documents.CorruptTextError(
          f'{path}, {place} {number} is corrupt: {reason}. Expected '
          f'{_EXPECTED[kind]}. Mend it, or leave such rows out and count them '
          "by on_corrupt = 'skip' of the source (in gin sources.files."
          'on_corrupt, or of another of t5wild.tasks.sources that is read).'
      )
    self.skipped.add(path, line=number, reason=reason)

  def read(
      self, split: str, *, piece: int, chunk: int
  ) -> tuple[list[dict[str, Any]], bool]:
    """Reads rows of a piece of a split.

    Args:
      split: of the table.
      piece: its number among the pieces of the split.
      chunk: which `CHUNK_ROWS` rows of it; those of another split are left out.

    Returns:
      (text or int32 tokens of each row by feature, whether none follows).

    Raises:
      CorruptTextError: for a row that cannot be read, where that is to fail.
    """
    with self._lock:
      rows = self._open.pop((split, piece, chunk), None)
    if rows is None:
      rows = self._rows(split, piece)
      for _ in itertools.islice(rows, chunk * CHUNK_ROWS):
        pass
    found = list(itertools.islice(rows, CHUNK_ROWS))
    is_end = len(found) < CHUNK_ROWS
    with self._lock:  # also at the end, where the next chunk is empty at once
      self._open[split, piece, chunk + 1] = rows
      if len(self._open) > _MOST_OPEN:
        self._open.popitem(last=False)
    return [row for row in found if row is not None], is_end

  def read_all(self, split: str) -> Iterator[dict[str, Any]]:
    """Yields all rows of a split."""
    for piece in range(len(self.table.pieces(split))):
      yield from filter(None, self._rows(split, piece))

  def _rows(self, split: str, number: int) -> Iterator[dict[str, Any] | None]:
    """Yields each row of a piece, None for one that is not of the split."""
    piece = self.table.pieces(split)[number]
    complain = functools.partial(self._complain, piece)
    columns = list(self.columns.values())
    rows = table_rows.rows_of(piece, columns=columns, complain=complain)
    for key, row, values in rows:
      if not self.table.has_row(split, file=piece.file, key=key):
        yield None
        continue
      yield self._cells(row, values, complain)

  def _cells(
      self, row: int, values: Mapping[str, Any], complain: table_rows.Complain
  ) -> dict[str, Any] | None:
    cells: dict[str, Any] = {}
    for feature, column in self.columns.items():
      try:
        value = table_rows.value_of(values, column)
        names = self._labels.get(column)
        if self.kinds[feature] == TOKENS:
          cells[feature] = to_tokens(value)
        elif names and isinstance(value, int) and 0 <= value < len(names):
          cells[feature] = names[value]
        else:
          cells[feature] = to_text(value)
      except KeyError:
        complain(row, f'no {column!r} among {sorted(values)}')
        return None
      except ValueError as error:
        complain(row, f'{column!r} is {error}')
        return None
    return cells


_EXPECTED = {
    'jsonl': 'a JSON object with the columns that are read',
    'tfrecord': 'a serialized tf.Example, as it was written',
    'parquet': 'a value in each column that is read',
    'arrow': 'a value in each column that is read',
}


def open_table(
    name: str,
    files: Mapping[str, Sequence[tables.TableFile]],
    *,
    held_out_fraction: float = 0.0,
    kinds: Mapping[str, str] | None = None,
) -> tables.Table:
  """Makes a table of which at least one row is held out, where any is to be.

  Args:
    name: shown to users.
    files: of each split.
    held_out_fraction: see `tables.Table`.
    kinds: 'text' or 'tokens' of columns of which that is known.

  Raises:
    ValueError: there is no row, or but one where one is to be held out.
  """
  table = tables.Table(
      name=name,
      files={split: tuple(each) for split, each in files.items()},
      held_out_fraction=held_out_fraction,
      kinds=dict(kinds or {}),
  )
  if not table.holds_out:
    return table
  # Whether they are refused or skipped is for those who read them.
  quiet = documents.SkippedLines(is_told=False)
  reader = TableReader(table, on_corrupt='skip', skipped=quiet)
  rows = itertools.islice(reader.raw_rows(tables.TRAIN), _FIRST_ROWS)
  hashes = [tables.hash_of(file, key) for file, key, _ in rows]
  if len(hashes) < 2:
    raise ValueError(
        f'{name} has one row alone, and held_out_fraction is '
        f'{held_out_fraction}: expected two rows at least, one to hold out. '
        'Set held_out_fraction = 0, or give files of the split validation.'
    )
  return dataclasses.replace(table, least_hash=min(hashes))
