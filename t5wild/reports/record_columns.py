# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads a metrics.jsonl as columns: millions of records in seconds.

The lines are those of `vitals.records`, and so is what counts as a record:
blocks whose lines all look as `RecordWriter` writes them are cut up by Arrow,
any other block line by line.
"""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import os
from typing import BinaryIO

import numpy as np

from t5wild.vitals import records as records_lib

_BLOCK_BYTES = 16 << 20
# The fields in the order of `records.to_line`, with what stands before each.
_HEADS = {
    'step': '{"step":',
    'seconds': '"seconds":',
    'host': '"host":',
    'name': '"name":"',
    'value': '"value":',
    'unit': '"unit":"',
}
_TAILS = {'name': '"', 'unit': '"}'}
_NON_FINITE = {'"NaN"', '"Infinity"', '"-Infinity"'}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Column:
  """All records of one name, in the order in which they were written.

  Attributes:
    name: of the records.
    unit: of the last of them.
    steps: finished updates, [records] of int64.
    seconds: wall clock time, [records] of float64.
    values: the numbers, [records] of float64.
  """

  name: str
  unit: str
  steps: np.ndarray
  seconds: np.ndarray
  values: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class Columns:
  """What a file holds.

  Attributes:
    by_name: the columns; names in the order of their first record.
    num_broken_lines: lines that are no records.
  """

  by_name: dict[str, Column]
  num_broken_lines: int = 0


def read_columns(path: str | os.PathLike[str], *, host: int = 0) -> Columns:
  """Reads the records of one host; a last line under way is no record yet.

  Args:
    path: of a metrics.jsonl.
    host: the process whose records are read.

  Raises:
    OSError: the file cannot be read.
  """
  return Follower(path, host=host).read(is_last=True)


class Follower:
  """Reads a file that grows, each part of it once."""

  def __init__(self, path: str | os.PathLike[str], *, host: int = 0):
    """Reads nothing yet.

    Args:
      path: of a metrics.jsonl, which need not be there yet.
      host: the process whose records are read.
    """
    self._path = path
    self._host = host
    self._forget()

  def _forget(self) -> None:
    self._place = 0
    self._parts: dict[str, list[_Part]] = {}
    self._broken = 0

  def read(self, *, is_last: bool = False) -> Columns:
    """All records until now.

    Args:
      is_last: whether a line without an end is judged as it stands; else it is
        left for the next time.

    Raises:
      OSError: the file cannot be read.
    """
    with open(self._path, 'rb') as file:
      if os.fstat(file.fileno()).st_size < self._place:
        self._forget()  # another file of the same name
      file.seek(self._place)
      for block in _blocks(file):
        if not block.endswith(b'\n') and not is_last:
          break
        self._add(block)
        self._place += len(block)
    for name, parts in self._parts.items():
      self._parts[name] = [_merged(parts)]
    return Columns(
        by_name={
            name: _column(name, part)
            for name, (part,) in self._parts.items()
        },
        num_broken_lines=self._broken,
    )

  def _add(self, block: bytes) -> None:
    columns = _cut_up(block, host=self._host)
    if columns is None:
      columns, skipped = _line_by_line(block, host=self._host)
      self._broken += skipped
    for name, part in columns.items():
      self._parts.setdefault(name, []).append(part)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Part:
  """A column's records in one block."""

  unit: str
  steps: np.ndarray
  seconds: np.ndarray
  values: np.ndarray


def _column(name: str, part: _Part) -> Column:
  return Column(
      name=name,
      unit=part.unit,
      steps=part.steps,
      seconds=part.seconds,
      values=part.values,
  )


def _merged(parts: list[_Part]) -> _Part:
  if len(parts) == 1:
    return parts[0]
  return _Part(
      unit=parts[-1].unit,
      steps=np.concatenate([part.steps for part in parts]),
      seconds=np.concatenate([part.seconds for part in parts]),
      values=np.concatenate([part.values for part in parts]),
  )


def _blocks(file: BinaryIO) -> Iterator[bytes]:
  """What follows in pieces of whole lines; at last, what has no line end."""
  rest = b''
  while piece := file.read(_BLOCK_BYTES):
    piece = rest + piece
    end = piece.rfind(b'\n') + 1
    rest = piece[end:]
    if end:
      yield piece[:end]
  if rest:
    yield rest


def _line_by_line(
    block: bytes, *, host: int
) -> tuple[dict[str, _Part], int]:
  rows: dict[str, list[records_lib.Record]] = {}
  broken = 0
  for line in block.decode('utf-8', errors='replace').split('\n'):
    record = records_lib.from_line(line)
    if record is None:
      broken += bool(line.strip())
    elif record.host == host:
      rows.setdefault(record.name, []).append(record)
  parts = {
      name: _Part(
          unit=found[-1].unit,
          steps=np.array([record.step for record in found], np.int64),
          seconds=np.array([record.seconds for record in found], np.float64),
          values=np.array([record.value for record in found], np.float64),
      )
      for name, found in rows.items()
  }
  return parts, broken


def _cut_up(block: bytes, *, host: int) -> dict[str, _Part] | None:
  """A block's columns; None if a line is not as `RecordWriter` writes it."""
  if b'\\' in block or not block.endswith(b'\n'):
    return None
  try:
    import pyarrow  # 0.2 s that only large files are worth
  except ImportError:
    return None
  try:
    table = _table(pyarrow, block)
    fields = {name: _field(table, name) for name in _HEADS}
    if any(field is None for field in fields.values()):
      return None
    return _by_name(fields, host=host)
  except (pyarrow.ArrowInvalid, ValueError):
    return None


def _table(pyarrow, block: bytes):
  """The lines cut at their commas, as text."""
  from pyarrow import csv

  few = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
  types = {
      name: few if name in ('host', 'name', 'unit') else pyarrow.string()
      for name in _HEADS
  }
  return csv.read_csv(
      pyarrow.BufferReader(block),
      read_options=csv.ReadOptions(
          column_names=list(_HEADS), block_size=len(block) + 1
      ),
      parse_options=csv.ParseOptions(
          quote_char=False, double_quote=False, ignore_empty_lines=True
      ),
      convert_options=csv.ConvertOptions(
          column_types=types, strings_can_be_null=False
      ),
  ).combine_chunks()


def _field(table, name: str):
  """A field without its key, as Arrow has it; None if a line has no such."""
  import pyarrow

  column = table.column(name).chunk(0)
  if not pyarrow.types.is_dictionary(column.type):
    return _bare(column, name)
  texts = _bare(column.dictionary, name)
  if texts is None:
    return None
  return pyarrow.DictionaryArray.from_arrays(column.indices, texts)


def _bare(texts, name: str):
  """The texts without key and quotes; None if one of them has another key."""
  from pyarrow import compute

  head, tail = _HEADS[name], _TAILS.get(name, '')
  least = len(head) + len(tail)
  fits = compute.and_(
      compute.and_(
          compute.starts_with(texts, head), compute.ends_with(texts, tail)
      ),
      compute.greater_equal(compute.utf8_length(texts), least),
  )
  if not compute.all(fits).as_py():
    return None
  bare = compute.utf8_slice_codeunits(
      texts, len(head), -len(tail) if tail else None
  )
  quoted = bare.filter(compute.match_substring(bare, '"'))
  if not len(quoted):
    return bare
  if name == 'value' and set(quoted.unique().to_pylist()) <= _NON_FINITE:
    return compute.replace_substring(bare, pattern='"', replacement='')
  return None


def _by_name(fields, *, host: int) -> dict[str, _Part]:
  import pyarrow

  hosts = _dictionary_numbers(fields['host'])
  names = fields['name'].dictionary.to_pylist()
  units = fields['unit'].dictionary.to_pylist()
  name_codes = np.asarray(fields['name'].indices)
  unit_codes = np.asarray(fields['unit'].indices)
  steps = np.asarray(fields['step'].cast(pyarrow.int64()))
  seconds = np.asarray(fields['seconds'].cast(pyarrow.float64()))
  values = np.asarray(fields['value'].cast(pyarrow.float64()))
  here = np.flatnonzero(hosts == host)
  order = here[np.argsort(name_codes[here], kind='stable')]
  ends = np.searchsorted(name_codes[order], np.arange(len(names) + 1))
  rows_of = {
      name: order[ends[code] : ends[code + 1]]
      for code, name in enumerate(names)
      if ends[code] < ends[code + 1]
  }
  return {
      name: _Part(
          unit=units[unit_codes[rows[-1]]],
          steps=steps[rows],
          seconds=seconds[rows],
          values=values[rows],
      )
      # In the order of their first records.
      for name, rows in sorted(rows_of.items(), key=lambda item: item[1][0])
  }


def _dictionary_numbers(field) -> np.ndarray:
  numbers = np.array([int(text) for text in field.dictionary.to_pylist()])
  return numbers[np.asarray(field.indices)]
