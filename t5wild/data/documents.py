# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads documents out of pieces of text files; bad lines fail or are counted.

Plain Python: no TensorFlow. A piece is read whole, so it is kept small; what
is corrupt is told by file and line.
"""

from collections.abc import Iterable, Iterator, Sequence
import dataclasses
import gzip
import itertools
import json
import logging
import math
import os
import threading
from typing import Any
import zlib

import numpy as np

from t5wild.data import activities
from t5wild.data import arrow_files
from t5wild.data import text_files

TEXT_PIECE_BYTES = 1 << 20
JSON_PIECE_BYTES = 4 << 20
POLICIES = ('fail', 'skip')
_PARQUET_ROWS = 4096  # decoded at once
_LOOKED_AT = 8  # files, before a run: no time is lost on more


class CorruptTextError(ValueError):
  """A line or a row that is no text; names the file and the line."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Piece:
  """Part of a text file that is read at once.

  `start` and `stop` are bytes, and the piece owns the lines that begin between
  them; for Parquet they are row groups; None is the end of the file.
  """

  file: text_files.TextFile
  start: int = 0
  stop: int | None = None


class SkippedLines:
  """Counts the corrupt lines that were skipped, each once; thread-safe."""

  def __init__(self, *, is_told: bool = True):
    """Starts at none; `is_told`: whether the log has them."""
    self._is_told = is_told
    self._seen: set[tuple[str, int]] = set()
    self._lock = threading.Lock()

  @property
  def count(self) -> int:
    """Number of lines skipped so far."""
    return len(self._seen)

  def add(self, path: str, *, line: int, reason: str) -> None:
    """Books a line, and says so the first few times, then ever more rarely."""
    with self._lock:
      if (path, line) in self._seen:
        return
      self._seen.add((path, line))
      count = len(self._seen)
    if self._is_told and (count <= 5 or count & (count - 1) == 0):
      logging.warning(
          '%s, line %d skipped: %s (%d skipped so far)',
          path,
          line,
          reason,
          count,
      )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DocumentReader:
  """How documents are read: which field, and what to do with corrupt lines.

  `text_field` is the JSON field or Parquet column. `on_corrupt` is 'fail'
  (raise `CorruptTextError`) or 'skip' (leave the line out, count it).
  """

  text_field: str = 'text'
  on_corrupt: str = 'fail'
  skipped: SkippedLines = dataclasses.field(default_factory=SkippedLines)

  def __post_init__(self):
    """Refuses an unknown policy."""
    if self.on_corrupt not in POLICIES:
      raise ValueError(
          f'on_corrupt is {self.on_corrupt!r}: expected one of {POLICIES}. '
          "Set 'fail' to stop at a corrupt line, 'skip' to count and go on."
      )

  def read(self, piece: Piece) -> list[bytes]:
    """Returns the documents of a piece, UTF-8, in order, empty ones left out.

    Raises:
      CorruptTextError: for what is no text, where the policy is 'fail'.
    """
    with activities.doing(f'reading {piece.file.path}'):
      return [doc for doc in self._documents_of(piece) if doc.strip()]

  def check_first(self, pieces: Iterable[Piece]) -> None:
    """Reads the first document of some files, as a run would later.

    What is no text at all, or lacks the field, is told before anything is
    compiled. Where corrupt lines are left out, nothing is looked at.

    Raises:
      CorruptTextError: see `read`.
    """
    if self.on_corrupt != 'fail':
      return
    for piece in itertools.islice(
        (piece for piece in pieces if not piece.start), _LOOKED_AT
    ):
      next(self._documents_of(piece), None)

  def _documents_of(self, piece: Piece) -> Iterator[bytes]:
    return {
        'text': self._read_text,
        'jsonl': self._read_json_lines,
        'parquet': self._read_parquet,
    }[piece.file.kind](piece)

  def _read_text(self, piece: Piece) -> Iterator[bytes]:
    lines = []
    for number, line in lines_of(piece, corrupt=self._corrupt):
      try:
        line.decode('utf-8')
      except UnicodeDecodeError as error:
        self._corrupt(piece, number, reason=str(error))
        continue
      lines.append(line)
    yield b''.join(lines)

  def _read_json_lines(self, piece: Piece) -> Iterator[bytes]:
    for number, line in lines_of(piece, corrupt=self._corrupt):
      if not line.strip():
        continue
      try:
        # A lone surrogate is legal JSON and no text: encoding refuses it.
        document = _field(json.loads(line), self.text_field).encode('utf-8')
      except (ValueError, TypeError, KeyError) as error:
        self._corrupt(piece, number, reason=_reason(error))
        continue
      yield document

  def _read_parquet(self, piece: Piece) -> Iterator[bytes]:
    table = arrow_files.open_parquet(piece.file.path)
    if self.text_field not in table.schema_arrow.names:
      raise CorruptTextError(
          f'{piece.file.path} has no column {self.text_field!r}: expected one '
          f"of {table.schema_arrow.names}. Set the task's text_field to it."
      )
    first = sum(
        table.metadata.row_group(group).num_rows for group in range(piece.start)
    )
    values = itertools.chain.from_iterable(
        batch.column(0).to_pylist()
        for batch in arrow_files.read_row_group(
            piece.file.path,
            piece.start,
            columns=[self.text_field],
            batch_size=_PARQUET_ROWS,
        )
    )
    for row, value in enumerate(values, start=first + 1):
      if isinstance(value, str):
        yield value.encode('utf-8', 'replace')
      else:
        reason = f'column {self.text_field!r} is {value!r}, no text'
        self._corrupt(piece, row, reason=reason)

  def _corrupt(self, piece: Piece, line: int, *, reason: str) -> None:
    path = piece.file.path
    if piece.start and piece.file.kind != 'parquet':
      line += lines_before(piece)
    if self.on_corrupt == 'fail':
      raise CorruptTextError(
          f'{path}, line {line} is corrupt: {reason}. Expected '
          f'{_expected(piece.file, text_field=self.text_field)}. Mend the '
          "line, or leave such lines out and count them by on_corrupt = 'skip' "
          '(local_text.text_task.on_corrupt in gin, --on_corrupt of '
          't5wild train-vocab).'
      )
    self.skipped.add(path, line=line, reason=reason)


def _expected(file: text_files.TextFile, *, text_field: str) -> str:
  return {
      'text': 'UTF-8 text (iconv makes it of other encodings)',
      'jsonl': f'a JSON object with a string under {text_field!r}',
      'parquet': f'rows with a string in the column {text_field!r}',
  }[file.kind]


def _field(record, text_field: str) -> str:
  """The text of a JSON record; ValueError says what it is instead."""
  if not isinstance(record, dict):
    raise ValueError(f'a JSON {type(record).__name__}, no object')
  if text_field not in record:
    raise ValueError(f'no field {text_field!r} among {sorted(record)}')
  if not isinstance(record[text_field], str):
    raise ValueError(f'{text_field!r} is {record[text_field]!r}, no string')
  return record[text_field]


def _reason(error: Exception) -> str:
  return str(error) or type(error).__name__


def lines_of(piece: Any, *, corrupt: Any) -> Iterator[tuple[int, bytes]]:
  """Yields (number from 1 within the piece, line with its end).

  Args:
    piece: with `file.path`, `file.is_compressed`, and `start` and `stop` in
      bytes, which a compressed file does not have.
    corrupt: called as `corrupt(piece, number, reason=...)` for broken gzip.
  """
  number = 0
  opener = gzip.open if piece.file.is_compressed else open
  with opener(piece.file.path, 'rb') as file:
    if piece.start:
      # One byte back: if it ends a line, only that end is passed over.
      file.seek(piece.start - 1)
      file.readline()
    while piece.stop is None or file.tell() < piece.stop:
      try:
        line = file.readline()
      except (OSError, EOFError, zlib.error) as error:
        corrupt(piece, number + 1, reason=f'broken gzip: {_reason(error)}')
        return
      if not line:
        return
      number += 1
      yield number, line


def lines_before(piece: Any) -> int:
  """Lines of the file before those that the piece owns."""
  count = 0
  with open(piece.file.path, 'rb') as file:
    while file.tell() < piece.start and file.readline():
      count += 1
  return count


def pieces_of(files: Sequence[text_files.TextFile]) -> list[Piece]:
  """Cuts files into pieces small enough to read at once, in order.

  A plain file is cut about every 1 MiB (JSON lines: 4 MiB) and a Parquet file
  at its row groups; a compressed one cannot be cut.
  """
  pieces = []
  for file in files:
    if file.kind == 'parquet':
      groups = arrow_files.open_parquet(file.path).metadata.num_row_groups
      bounds = list(range(groups + 1))
    elif file.is_compressed:
      bounds = [0, None]
    else:
      step = TEXT_PIECE_BYTES if file.kind == 'text' else JSON_PIECE_BYTES
      # The last piece has no end: a file that grows is read to its end.
      bounds = [*range(0, max(os.path.getsize(file.path), 1), step), None]
    pieces.extend(
        Piece(file=file, start=start, stop=stop)
        for start, stop in zip(bounds, bounds[1:], strict=False)
    )
  return pieces


def split_pieces(
    files: Sequence[text_files.TextFile], *, held_out_fraction: float
) -> dict[str, list[Piece]]:
  """Splits text into 'train' and 'validation', whole files where it can.

  One file alone, if it is plain text or JSON lines, is cut at a line instead,
  its end held out: there is no other way to hold anything out.

  Args:
    files: at least one.
    held_out_fraction: fraction to hold out, 0 for none.

  Returns:
    Pieces by split, in order.

  Raises:
    ValueError: see `text_files.split_files`.
  """
  whole = [file for file in files if file.kind != 'parquet']
  can_cut = len(files) == 1 and whole and not whole[0].is_compressed
  if not can_cut or not 0.0 < held_out_fraction < 1.0:
    split = text_files.split_files(files, held_out_fraction=held_out_fraction)
    return {name: pieces_of(part) for name, part in split.items()}
  cut = _line_near(
      files[0].path,
      position=int(os.path.getsize(files[0].path) * (1 - held_out_fraction)),
  )
  pieces = pieces_of(files)
  return {
      'train': [
          dataclasses.replace(
              piece, stop=cut if piece.stop is None else min(piece.stop, cut)
          )
          for piece in pieces
          if piece.start < cut
      ],
      'validation': [
          dataclasses.replace(piece, start=max(piece.start, cut))
          for piece in pieces
          if piece.stop is None or piece.stop > cut
      ],
  }


def byte_counts(
    pieces: Sequence[Piece],
    *,
    reader: DocumentReader,
    max_bytes: int = 32 << 20,
) -> np.ndarray:
  """Counts each byte of the text, for its unigram entropy: [256].

  Args:
    pieces: where the text is.
    reader: how it is read.
    max_bytes: about as much is read; of larger text, pieces at even distances
      stand for all.
  """
  paths = {piece.file.path for piece in pieces}
  num_bytes = sum(os.path.getsize(path) for path in paths)
  every = max(1, math.ceil(num_bytes / max_bytes))
  counts = np.zeros(256, np.int64)
  for piece in pieces[::every]:
    for document in reader.read(piece):
      counts += np.bincount(np.frombuffer(document, np.uint8), minlength=256)
  return counts


def _line_near(path: str, *, position: int) -> int:
  """The first start of a line at or after the position, in bytes."""
  with open(path, 'rb') as file:
    file.seek(max(position - 1, 0))
    file.readline()
    if file.tell() < os.path.getsize(path):
      return file.tell()
  raise ValueError(
      f'{path} is one file without a line break after {position} bytes, so '
      'nothing of it can be held out: expected two files or more, or lines. '
      'Split the file, or set held_out_fraction = 0.'
  )
