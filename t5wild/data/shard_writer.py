# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes one shard of a cache: whole and on the disk, or not at all.

The file first, then a small JSON beside it that says what is in it; a shard is
done when that is there. What a killed writer left is written over.
"""

from collections.abc import Iterable, Iterator, Mapping
import contextlib
import dataclasses
import itertools
import json
import os

import numpy as np

from t5wild.data import fingerprints
from t5wild.data import record_cache
from t5wild.data import record_format

# A group of records is compressed together, and read together for one of them:
# as many as are about this long.
_GROUP_BYTES = 8192
_MAX_GROUP = 64
_SAMPLED = 256  # records by which their length is judged


class NotWrittenError(OSError):
  """A file of a cache could not be written; says what to do."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShardPlan:
  """What is the same for all shards.

  Attributes:
    folder: where they go.
    num_shards: how many there will be.
    schema: of the records.
    max_record_tokens: a longer document becomes several records; None for
      examples, which stay whole.
  """

  folder: str
  num_shards: int
  schema: record_format.Schema
  max_record_tokens: int | None

  def name(self, index: int) -> str:
    """File of a shard."""
    return f'data.array_record-{index:05d}-of-{self.num_shards:05d}'

  def is_done(self, index: int) -> bool:
    """Whether a shard is written."""
    return os.path.exists(self._summary(index))

  def _summary(self, index: int) -> str:
    return os.path.join(self.folder, f'{self.name(index)}.json')

  def load_summary(self, index: int) -> record_cache.Shard:
    """What is in a shard that is done."""
    with open(self._summary(index), encoding='utf-8') as file:
      return record_cache.Shard(**json.load(file))

  def write(
      self, index: int, documents: Iterable[Mapping[str, np.ndarray]]
  ) -> record_cache.Shard:
    """Writes a shard.

    Args:
      index: its number.
      documents: tokens by feature, of documents or of examples.

    Returns:
      What is in it.

    Raises:
      NotWrittenError: as on a full disk; nothing is left of it.
    """
    path = os.path.join(self.folder, self.name(index))
    temporary = f'{path}.tmp-{os.getpid()}'
    counts = _Counts(self.schema)
    try:
      _write_records(temporary, self._records(documents, counts=counts))
      _check_on_disk(temporary, num_records=counts.records)
      shard = record_cache.Shard(
          name=self.name(index),
          num_records=counts.records,
          num_documents=counts.documents,
          tokens=counts.tokens,
          num_bytes=os.path.getsize(temporary),
          sha256=fingerprints.of_file(temporary),
      )
      os.replace(temporary, path)
    except BaseException:
      with contextlib.suppress(OSError):
        os.remove(temporary)
      raise
    write_text(self._summary(index), json.dumps(dataclasses.asdict(shard)))
    return shard

  def _records(
      self, documents: Iterable[Mapping[str, np.ndarray]], *, counts: '_Counts'
  ) -> Iterator[bytes]:
    for number, document in enumerate(documents):
      counts.documents += 1
      pieces = list(self._cut(document))
      for piece, tokens in enumerate(pieces):
        counts.add(tokens)
        yield self.schema.encode(
            tokens,
            document=number,
            piece=piece,
            is_last=piece == len(pieces) - 1,
        )

  def _cut(
      self, document: Mapping[str, np.ndarray]
  ) -> Iterator[Mapping[str, np.ndarray]]:
    longest = max(len(tokens) for tokens in document.values())
    step = self.max_record_tokens or max(longest, 1)
    for start in range(0, longest, step):
      yield {
          name: tokens[start : start + step]
          for name, tokens in document.items()
      }


class _Counts:
  """What has gone into a shard."""

  def __init__(self, schema: record_format.Schema):
    self.records = 0
    self.documents = 0
    self.tokens = dict.fromkeys(schema.features, 0)

  def add(self, example: Mapping[str, np.ndarray]) -> None:
    self.records += 1
    for name in self.tokens:
      self.tokens[name] += len(example[name])


def _write_records(path: str, records: Iterator[bytes]) -> None:
  from array_record.python import array_record_module

  first = list(itertools.islice(records, _SAMPLED))
  mean = max(1, sum(map(len, first)) // max(len(first), 1))
  group = max(1, min(_MAX_GROUP, _GROUP_BYTES // mean))
  try:
    writer = array_record_module.ArrayRecordWriter(
        path, f'group_size:{group},zstd:1'
    )
    for record in itertools.chain(first, records):
      writer.write(record)
    writer.close()
  except RuntimeError as error:  # so it tells of a full disk
    raise NotWrittenError(_not_written(path, error)) from error


def _check_on_disk(path: str, *, num_records: int) -> None:
  """Makes sure that all bytes are on the disk, and can be read again."""
  from array_record.python import array_record_module

  with open(path, 'rb') as file:
    os.fsync(file.fileno())
  try:
    reader = array_record_module.ArrayRecordReader(path)
    found = reader.num_records()
    reader.close()
  except (RuntimeError, ValueError) as error:
    raise NotWrittenError(
        f'{path} cannot be read after it was written '
        f'({str(error).splitlines()[0][:300]}): expected {num_records} '
        'records. Is the disk full? Free some space and run the same command.'
    ) from error
  if found != num_records:
    raise NotWrittenError(
        f'{path} has {found} records after it was written: expected '
        f'{num_records}. Is the disk full? Free some space and run the same '
        'command.'
    )


def write_text(path: str, text: str) -> None:
  """Writes a small file whole, or not at all."""
  temporary = f'{path}.tmp-{os.getpid()}'
  try:
    with open(temporary, 'w', encoding='utf-8') as file:
      file.write(text)
      file.flush()
      os.fsync(file.fileno())
    os.replace(temporary, path)
  except BaseException as error:
    with contextlib.suppress(OSError):
      os.remove(temporary)
    if isinstance(error, OSError):
      raise NotWrittenError(_not_written(path, error)) from error
    raise


def _not_written(path: str, error: Exception) -> str:
  return (
      f'{path} could not be written: {str(error).splitlines()[0][:300]}. '
      'Expected a folder that this user may write, with space left. Free some, '
      'or choose another --out; the same command goes on.'
  )
