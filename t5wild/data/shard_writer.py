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
import tempfile
import time
import uuid

import numpy as np

from t5wild.data import fingerprints
from t5wild.data import places
from t5wild.data import record_cache
from t5wild.data import record_format

# A group of records is compressed together, and read together for one of them:
# as many as are about this long.
_GROUP_BYTES = 8192
_MAX_GROUP = 64
_TEMPORARY = '.tmp-'
_STALE_SECONDS = 3600.0
_SAMPLED = 256  # records by which their length is judged


class NotWrittenError(OSError):
  """A file of a cache could not be written; says what to do."""


class NotSentError(NotWrittenError):
  """It could not be written into a bucket."""


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
    """Whether a shard is written, and as large as it was then."""
    try:
      shard = self._load_summary(index)
    except (FileNotFoundError, ValueError, TypeError):  # or damaged since
      return False
    return places.num_bytes(self._path(index)) == shard.num_bytes

  def missing(self) -> list[int]:
    """Numbers of the shards that are not done."""
    done = places.side_by_side(
        self.is_done, list(range(self.num_shards)), folder=self.folder
    )
    return [index for index, is_done in enumerate(done) if not is_done]

  def load_summaries(self) -> list[record_cache.Shard]:
    """What is in the shards, once all are done."""
    return places.side_by_side(
        self._load_summary, list(range(self.num_shards)), folder=self.folder
    )

  def _path(self, index: int) -> str:
    return places.join(self.folder, self.name(index))

  def _summary(self, index: int) -> str:
    return f'{self._path(index)}.json'

  def _load_summary(self, index: int) -> record_cache.Shard:
    path = self._summary(index)
    if not places.exists(path):
      raise FileNotFoundError(path)
    return record_cache.Shard(**json.loads(places.read_text(path)))

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
    path = self._path(index)
    counts = _Counts(self.schema)
    with _temporary_for(path) as temporary:
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
      _bring_to(path, temporary)
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
    raise _not_written(path, error) from None


def _check_on_disk(path: str, *, num_records: int) -> None:
  """Makes sure that all bytes are on the disk, and can be read again."""
  from array_record.python import array_record_module

  try:
    with open(path, 'rb') as file:
      os.fsync(file.fileno())
  except OSError as error:
    raise _not_written(path, error) from None
  try:
    reader = array_record_module.ArrayRecordReader(path)
    found = reader.num_records()
    reader.close()
  except (RuntimeError, ValueError) as error:
    raise NotWrittenError(
        f'{path} cannot be read after it was written '
        f'({str(error).splitlines()[0][:300]}): expected {num_records} '
        'records. Is the disk full? Free some space and run the same command.'
    ) from None
  if found != num_records:
    raise NotWrittenError(
        f'{path} has {found} records after it was written: expected '
        f'{num_records}. Is the disk full? Free some space and run the same '
        'command.'
    )


def write_text(path: str, text: str) -> None:
  """Writes a small file whole, or not at all.

  Raises:
    NotWrittenError: it could not be.
  """
  try:
    if places.is_bucket(path):
      places.send_text(path, text)
      return
    with _temporary_for(path) as temporary:
      with open(temporary, 'w', encoding='utf-8') as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
      os.replace(temporary, path)
  except OSError as error:
    raise _not_written(path, error) from None


@contextlib.contextmanager
def _temporary_for(path: str) -> Iterator[str]:
  """A name to write under until all is there; what is left there is removed.

  Beside the file, or on this machine (TMPDIR) for one in a bucket.
  """
  folder, name = os.path.split(path)
  if places.is_bucket(path):
    folder = working_folder()
    os.makedirs(folder, mode=0o700, exist_ok=True)
  # Other processes may be writing the same file, other machines too.
  token = f'{os.getpid()}-{uuid.uuid4().hex[:8]}'
  temporary = os.path.join(folder, f'{name}{_TEMPORARY}{token}')
  try:
    yield temporary
  finally:
    with contextlib.suppress(OSError):
      os.remove(temporary)


def working_folder() -> str:
  """Where shards for buckets are written first."""
  return os.path.join(tempfile.gettempdir(), f't5wild_cache_{os.getuid()}')


def remove_leftovers(folder: str) -> list[str]:
  """Removes what killed writers left in a local folder; returns the names.

  Call it where nobody else is writing. In the working folder somebody may be:
  what was written to within the last hour stays there.
  """
  removed = []
  now = time.time()
  for name in places.names(folder):
    path = os.path.join(folder, name)
    if _TEMPORARY not in name:
      continue
    with contextlib.suppress(OSError):
      is_shared = folder == working_folder()
      if is_shared and now - os.stat(path).st_mtime < _STALE_SECONDS:
        continue
      os.remove(path)
      removed.append(name)
  return removed


def _bring_to(path: str, temporary: str) -> None:
  try:
    if places.is_bucket(path):
      places.send(path, temporary)
    else:
      os.replace(temporary, path)
  except OSError as error:
    raise _not_written(path, error) from None


def _not_written(path: str, error: Exception) -> NotWrittenError:
  reason = str(error).splitlines()[0][:300]
  if places.is_bucket(path):
    return NotSentError(
        f'{path} could not be written: {reason}. Expected a bucket that this '
        'machine reaches and may write. Mend its access, or choose another '
        '--out; the same command goes on.'
    )
  return NotWrittenError(
      f'{path} could not be written: {reason}. Expected a folder that this '
      'user may write, with space left. Free some, or choose another --out '
      '(TMPDIR where shards for a bucket are written first); the same command '
      'goes on.'
  )
