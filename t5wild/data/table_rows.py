# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The rows of a piece of a table, each a mapping from column to value.

Imports neither seqio nor TensorFlow.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import gzip
import itertools
import json
from typing import Any

from t5wild.data import arrow_files
from t5wild.data import documents
from t5wild.data import tables
from t5wild.data import tfrecords

_BATCH_ROWS = 256

Complain = Callable[..., None]
Row = tuple[int, int, Mapping[str, Any]]  # key, number from 1, values


def rows_of(
    piece: tables.Piece, *, columns: Sequence[str] | None, complain: Complain
) -> Iterator[Row]:
  """Yields (key in the file, number from 1 in the piece, values by column).

  Args:
    piece: of a table.
    columns: those that are read where reading fewer is cheaper, None for all.
    complain: called with the number of a corrupt row and the reason.
  """
  if piece.file.kind == 'jsonl':
    return _json_rows(piece, complain)
  if piece.file.kind == 'tfrecord':
    return _example_rows(piece, complain)
  return _arrow_rows(piece, columns)


def _json_rows(piece: tables.Piece, complain: Complain) -> Iterator[Row]:
  def broken(_, number, *, reason):
    complain(number, reason)

  place = piece.start
  for number, line in documents.lines_of(piece, corrupt=broken):
    place += len(line)
    if not line.strip():
      continue
    try:
      values = json.loads(line)
    except ValueError as error:
      complain(number, str(error))
      continue
    if not isinstance(values, dict):
      complain(number, f'a JSON {type(values).__name__}, no object')
      continue
    # Bytes, as the number of a line is not known where a file is cut.
    yield place, number, values


def _example_rows(piece: tables.Piece, complain: Complain) -> Iterator[Row]:
  for number, data in _records(piece, complain):
    try:
      values = tfrecords.parse_example(data)
    except ValueError as error:
      complain(number, str(error))
      continue
    yield number, number, values


def _records(
    piece: tables.Piece, complain: Complain
) -> Iterator[tuple[int, bytes]]:
  opener = gzip.open if piece.file.is_compressed else open
  with opener(piece.file.path, 'rb') as file:
    try:
      for number, record in enumerate(tfrecords.read_records(file), 1):
        yield number, record.data
    except tfrecords.BadRecordError as error:
      # What follows cannot be found: its place is told by this one's length.
      complain(error.number, str(error))


def _arrow_rows(
    piece: tables.Piece, columns: Sequence[str] | None
) -> Iterator[Row]:
  tops = columns and sorted({column.split('.')[0] for column in columns})
  if piece.file.kind == 'parquet':
    number = _rows_before(piece)
    batches = arrow_files.read_row_group(
        piece.file.path, piece.start, columns=tops, batch_size=_BATCH_ROWS
    )
  else:
    batches = arrow_files.read_arrow_batches(piece.file.path)
    passed = list(itertools.islice(batches, piece.start))
    number = sum(batch.num_rows for batch in passed)
    count = None if piece.stop is None else piece.stop - piece.start
    batches = itertools.islice(batches, count)
  for batch in batches:
    if tops:
      batch = batch.select([
          top for top in tops if top in batch.schema.names
      ])
    for start in range(0, batch.num_rows, _BATCH_ROWS):
      for values in batch.slice(start, _BATCH_ROWS).to_pylist():
        number += 1
        yield number, number, values


def _rows_before(piece: tables.Piece) -> int:
  metadata = arrow_files.open_parquet(piece.file.path).metadata
  return sum(metadata.row_group(n).num_rows for n in range(piece.start))


def labels_of(file: tables.TableFile) -> Mapping[str, Sequence[str]]:
  """Names of the classes of a file's columns of labels, where it has them."""
  if file.kind == 'parquet':
    schema = arrow_files.open_parquet(file.path).schema_arrow
  elif file.kind == 'arrow':
    schema = arrow_files.open_arrow(file.path).schema
  else:
    return {}
  return arrow_files.label_names(schema)


def value_of(values: Mapping[str, Any], column: str) -> Any:
  """The value of a column; 'a.b' is the field b of the column a.

  Raises:
    KeyError: there is none.
  """
  if column in values:
    return values[column]
  top, dot, rest = column.partition('.')
  inner = values.get(top)
  if dot and isinstance(inner, Mapping):
    return value_of(inner, rest)
  raise KeyError(column)


def columns_of(values: Mapping[str, Any]) -> list[str]:
  """Names of the columns of a row, fields of columns among them."""
  found = []
  for name, value in values.items():
    if isinstance(value, Mapping):
      found += [f'{name}.{inner}' for inner in columns_of(value)]
    else:
      found.append(name)
  return found
