# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Finds tables: files of rows with named columns, by split, cut into pieces.

JSON lines, Parquet, Arrow, and TFRecord of tf.Example; JSON lines and TFRecord
also as .gz. Imports neither seqio nor TensorFlow.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
import hashlib
import os
import re

from t5wild.data import arrow_files
from t5wild.data import text_files

KINDS = ('jsonl', 'parquet', 'arrow', 'tfrecord')
TRAIN, VALIDATION = 'train', 'validation'

_JSON_PIECE_BYTES = 4 << 20
_ARROW_PIECE_BATCHES = 16
_BY_NAME = (
    (re.compile(r'\.(jsonl|ndjson|json)$'), 'jsonl'),
    (re.compile(r'\.parquet$'), 'parquet'),
    (re.compile(r'\.(arrow|feather)$'), 'arrow'),
    (re.compile(r'\.tfrec(ord)?s?(-\d+-of-\d+)?$'), 'tfrecord'),
)

Paths = str | Sequence[str]


@dataclasses.dataclass(frozen=True, order=True, kw_only=True)
class TableFile:
  """A file of rows.

  Attributes:
    name: path seen from what was asked for, by which rows are held out.
    path: where it is.
    kind: one of `KINDS`.
  """

  name: str
  path: str
  kind: str

  @property
  def is_compressed(self) -> bool:
    """Whether it is read through gzip."""
    return self.path.endswith('.gz')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Piece:
  """Part of a file: bytes of JSON lines, a row group, or record batches.

  `stop` None is the end of the file; files that cannot be cut are one piece.
  """

  file: TableFile
  start: int = 0
  stop: int | None = None


def kind_of(path: str) -> str | None:
  """One of `KINDS` by a file's name, None for another kind of file."""
  name = os.path.basename(path).lower().removesuffix('.gz')
  for pattern, kind in _BY_NAME:
    if pattern.search(name):
      return kind
  return None


def find_files(paths: Paths, *, kind: str | None = None) -> list[TableFile]:
  """Lists the tables of files, folders and globs, sorted by name.

  Args:
    paths: one or several.
    kind: of all of them, None to go by their names. In a folder, files of
      other kinds are passed over.

  Raises:
    FileNotFoundError: for a path without any.
    ValueError: for a file whose kind its name does not tell.
  """
  if kind not in (None, *KINDS):
    raise ValueError(
        f'kind is {kind!r}: expected one of {KINDS}, or None to go by the '
        'names of the files. Set it to one of them.'
    )
  found: list[TableFile] = []
  for path in [paths] if isinstance(paths, str | os.PathLike) else paths:
    path = os.path.expanduser(os.fspath(path))
    kinds = {
        (each.name, each.path): kind or kind_of(each.path)
        for each in text_files.find_text_files(path, suffixes=('',))
    }
    if os.path.isdir(path):
      kinds = {key: value for key, value in kinds.items() if value}
    unknown = sorted(key[1] for key, value in kinds.items() if not value)
    if unknown or not kinds:
      raise ValueError(
          f'{unknown[0] if unknown else path} is no table by its name: '
          'expected names that end in .jsonl, .parquet, .arrow or .tfrecord '
          '(-00000-of-00010 may follow, and .gz). Correct the path, or say '
          f'which kind it is (kind = one of {KINDS}).'
      )
    found += [
        TableFile(name=name, path=where, kind=value)
        for (name, where), value in kinds.items()
    ]
  return sorted(set(found))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table:
  """Rows of files, by split.

  Attributes:
    name: shown to users.
    files: of each split, in order.
    held_out_fraction: fraction of the rows of 'train' that are 'validation'
      instead, where there are no files of that split; by a hash of the row's
      file and place, so a row keeps its side when files come and go.
    kinds: 'text' or 'tokens', of columns of which that is known; of others the
      first rows tell.
    least_hash: a row with this hash is held out, whatever the fraction, so that
      of few rows one is.
  """

  name: str
  files: Mapping[str, tuple[TableFile, ...]]
  held_out_fraction: float = 0.0
  kinds: Mapping[str, str] = dataclasses.field(default_factory=dict)
  least_hash: float = -1.0

  def __post_init__(self):
    """Refuses what holds out nothing or all, and splits without a file."""
    if not 0.0 <= self.held_out_fraction < 1.0:
      raise ValueError(
          f'held_out_fraction is {self.held_out_fraction!r}: expected a '
          'fraction of the rows, from 0 (none) to below 1. Try 0.05.'
      )

  @property
  def holds_out(self) -> bool:
    """Whether 'validation' is a part of the files of 'train'."""
    return (
        self.held_out_fraction > 0
        and TRAIN in self.files
        and VALIDATION not in self.files
    )

  @property
  def splits(self) -> tuple[str, ...]:
    """Names of the splits."""
    return (*self.files, *([VALIDATION] if self.holds_out else []))

  def has_row(self, split: str, *, file: TableFile, key: int) -> bool:
    """Whether the row of a file at a place is in a split made of that file."""
    if not self.holds_out or split not in (TRAIN, VALIDATION):
      return True
    value = hash_of(file, key)
    is_held_out = value < self.held_out_fraction or value <= self.least_hash
    return is_held_out == (split == VALIDATION)

  def pieces(self, split: str) -> tuple[Piece, ...]:
    """The pieces of the files of a split, in order."""
    if split == VALIDATION and self.holds_out:
      split = TRAIN
    if split not in self.files:
      raise ValueError(
          f'{self.name} has no split {split!r}: expected one of '
          f'{list(self.splits)}. Choose one of them.'
      )
    return _pieces_of(tuple(self.files[split]))


def hash_of(file: TableFile, key: int) -> float:
  """A number from 0 to 1 that stands for a row, alike wherever the file is."""
  text = f'{file.name}:{key}'.encode('utf-8', 'surrogateescape')
  digest = hashlib.blake2b(text, digest_size=8).digest()
  return int.from_bytes(digest, 'big') / 2.0**64


@functools.lru_cache(maxsize=64)
def _pieces_of(files: tuple[TableFile, ...]) -> tuple[Piece, ...]:
  return tuple(
      Piece(file=file, start=start, stop=stop)
      for file in files
      for start, stop in _bounds(file)
  )


def _bounds(file: TableFile) -> list[tuple[int, int | None]]:
  if file.kind == 'parquet':
    opened = arrow_files.open_parquet(file.path)
    return [(n, n + 1) for n in range(opened.metadata.num_row_groups)]
  if file.kind == 'arrow':
    count = sum(1 for _ in arrow_files.read_arrow_batches(file.path))
    starts = list(range(0, count, _ARROW_PIECE_BATCHES))
  elif file.kind == 'jsonl' and not file.is_compressed:
    starts = list(range(0, os.path.getsize(file.path), _JSON_PIECE_BYTES))
  else:
    starts = [0]
  return list(zip(starts, [*starts[1:], None], strict=True)) if starts else []
