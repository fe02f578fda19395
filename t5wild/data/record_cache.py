# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A finished cache of one split of a task: its manifest, and its records.

A folder of ArrayRecord files and `manifest.json`, which is written last: a
folder without one is being written, or was left half-way. Any record is found
by its number. No TensorFlow, no seqio.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
import json
import logging
import os
from typing import Any
import urllib.parse

import numpy as np

from t5wild.data import activities
from t5wild.data import fingerprints
from t5wild.data import places
from t5wild.data import record_format
from t5wild.data import shard_files

MANIFEST = shard_files.MANIFEST
PLAN = 'plan.json'
ROOT = 'cache.json'
LOCK = 'writing.lock'  # of who writes, or wrote, into the root
FORMAT = 1
BadCacheError = shard_files.BadCacheError
read_json = shard_files.read_json
_READER_OPTIONS = 'readahead_buffer_size:0,max_parallelism:0'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shard:
  """One file of a cache.

  Attributes:
    name: of the file, in the folder of the manifest.
    num_records: records in it.
    num_documents: documents that they are of.
    tokens: tokens by feature.
    num_bytes: size of the file.
    sha256: of its bytes.
  """

  name: str
  num_records: int
  num_documents: int
  tokens: Mapping[str, int]
  num_bytes: int
  sha256: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Manifest:
  """What is written about a cache.

  Attributes:
    task: name of the seqio task.
    split: of it.
    content: 'tokens', whose objective comes when they are read, or 'examples'.
    features: name to {'vocabulary', 'add_eos'}; 'vocabulary' is what
      `fingerprints.describe_vocabulary` gives.
    schema: how a record is laid out.
    task_description: what the task was made of, in words.
    shards: the files.
    versions: of the libraries that wrote them.
    objective: the task's own, in words, where its tokens are cached.
  """

  task: str
  split: str
  content: str
  features: Mapping[str, Mapping[str, Any]]
  schema: record_format.Schema
  task_description: Sequence[str]
  shards: Sequence[Shard]
  versions: Mapping[str, str]
  objective: str | None = None

  @property
  def num_records(self) -> int:
    """Records of all shards."""
    return sum(shard.num_records for shard in self.shards)

  @property
  def num_tokens(self) -> int:
    """Tokens of all features of all shards."""
    return sum(sum(shard.tokens.values()) for shard in self.shards)

  @property
  def task_fingerprint(self) -> str:
    """Of the task as it was when it was cached."""
    return fingerprints.of_value([
        self.task, self.split, self.content, list(self.task_description)
    ])

  @property
  def fingerprint(self) -> str:
    """Of all that decides what is read: the task, the bytes of the shards."""
    return fingerprints.of_value([
        self.task_fingerprint, [shard.sha256 for shard in self.shards]
    ])

  def to_json(self) -> str:
    """The text of the file."""
    return json.dumps(
        {
            'format': FORMAT,
            'num_records': self.num_records,
            'num_tokens': self.num_tokens,
            'task_fingerprint': self.task_fingerprint,
            **dataclasses.asdict(self),
        },
        indent=1,
    )


def read_manifest(folder: str | os.PathLike[str]) -> Manifest:
  """Reads the manifest of a cache.

  Raises:
    BadCacheError: for a folder that is no finished cache.
  """
  path = places.join(folder, MANIFEST)
  if not places.exists(path):
    raise BadCacheError(_why_unfinished(os.fspath(folder)))
  values = shard_files.read_json(
      path, wanted=_MANIFEST_WANTED, mend=_MANIFEST_MEND
  )
  try:
    if values['format'] != FORMAT:
      raise BadCacheError(
          f'{path} has the format {values["format"]}: expected {FORMAT}. Write '
          'the cache anew with this version (t5wild cache), or read it with '
          f'that which wrote it ({values.get("versions")}).'
      )
    return Manifest(
        **{
            **{key: values[key] for key in _PLAIN_FIELDS},
            'schema': record_format.Schema(
                features=tuple(values['schema']['features']),
                dtype=values['schema']['dtype'],
            ),
            'shards': [Shard(**shard) for shard in values['shards']],
        }
    )
  except (KeyError, TypeError) as error:
    raise BadCacheError(
        f'{path} is damaged ({type(error).__name__}: {error}): expected '
        f'{_MANIFEST_WANTED}. {_MANIFEST_MEND}'
    ) from None


_MANIFEST_WANTED = 'what `t5wild cache` wrote'
_MANIFEST_MEND = (
    'Copy it again; or delete it and run the same `t5wild cache` again, which '
    'keeps the shards and writes it anew.'
)


_PLAIN_FIELDS = (
    'task', 'split', 'content', 'features', 'task_description', 'versions',
    'objective',
)


def _why_unfinished(folder: str) -> str:
  plan = places.join(folder, PLAN)
  if not places.exists(plan):
    if places.exists(places.join(folder, LOCK)):
      return (
          f'the cache {folder!r} is still being written: no shard of it is '
          f'done, expected all and {MANIFEST}. {_WAIT}'
      )
    return (
        f'there is no cache in {folder!r}{places.seen_from(folder)} (no '
        f'{MANIFEST}): expected a folder that `t5wild cache --out` wrote. '
        'Correct the path (CACHE_DIR; --gin.CACHE_DIR=/whole/path names it '
        'from everywhere), or write one.'
    )
  num_shards = shard_files.read_json(
      plan,
      wanted='the plan of `t5wild cache`',
      mend='Delete that folder, and run `t5wild cache` again.',
  ).get('num_shards')
  done = sum(
      name.startswith('data.') and name.endswith('.json')
      for name in places.names(folder)
  )
  return (
      f'the cache {folder!r} is still being written: {done} of {num_shards} '
      f'shards are done, expected all and {MANIFEST}. {_WAIT}'
  )


_WAIT = (
    'Wait for `t5wild cache`, or run the same command again, which goes on '
    'where it was stopped.'
)


def quoted(name: str) -> str:
  """A task or a split as the name of a folder."""
  return urllib.parse.quote(name, safe='')


def split_folder(root: str, *, task: str, split: str) -> str:
  """Where a split of a task lies in a cache."""
  return places.join(root, quoted(task), quoted(split))


def folders_of(root: str) -> list[str]:
  """The caches of a root: its tasks' splits, or itself where it is one.

  Raises:
    BadCacheError: where there is none.
  """
  found = places.folders_with(root, any_of=(PLAN, MANIFEST), depth=2)
  if not found:
    raise BadCacheError(_why_unfinished(root))
  return found


class RecordCache:
  """The records of one split, found by their numbers."""

  def __init__(
      self, folder: str | os.PathLike[str], *, skip_bad_shards: bool = False
  ):
    """Opens nothing but the manifest, and checks that all files are there.

    Args:
      folder: where the cache lies.
      skip_bad_shards: leave out, and tell of, shards that are not what was
        written; every byte is read to find them.

    Raises:
      BadCacheError: for a missing or truncated shard, which is named, or no
        finished cache.
    """
    self.folder = os.fspath(folder)
    self.manifest = read_manifest(self.folder)
    self._files = shard_files.ShardFiles(self.folder)
    # As they were written, whichever are left out.
    self.shard_numbers = list(range(len(self.manifest.shards)))
    if skip_bad_shards:
      self._leave_out_bad_shards()
    self._files.check_sizes(self.manifest.shards)
    if not skip_bad_shards:  # which has read them all
      self._files.check_smallest(self.manifest.shards)
    counts = [shard.num_records for shard in self.manifest.shards]
    self._ends = np.cumsum(counts)
    self._starts = self._ends - counts

  def __len__(self) -> int:
    """Number of records."""
    return self.manifest.num_records

  def _leave_out_bad_shards(self) -> None:
    good, numbers = [], []
    for number, shard in enumerate(self.manifest.shards):
      try:
        self._files.check_sizes([shard])
        self._files.check_bytes(shard)
        good.append(shard)
        numbers.append(number)
      except BadCacheError as error:
        logging.warning('Left out, as asked for: %s', error)
    lost = sum(shard.num_records for shard in self.manifest.shards) - sum(
        shard.num_records for shard in good
    )
    if not good:
      raise BadCacheError(
          f'no shard of {self.folder} is whole: expected one of '
          f'{len(self.manifest.shards)}. {shard_files.MEND}'
      )
    if lost:
      logging.warning(
          '%s: %d of %d shards left out, with %d of %d records.',
          self.folder,
          len(self.manifest.shards) - len(good),
          len(self.manifest.shards),
          lost,
          self.manifest.num_records,
      )
    self.manifest = dataclasses.replace(self.manifest, shards=good)
    self.shard_numbers = numbers

  @functools.cached_property
  def _readers(self) -> list[Any]:
    return [None] * len(self.manifest.shards)

  def _reader(self, number: int) -> Any:
    if self._readers[number] is None:
      from array_record.python import array_record_module

      shard = self.manifest.shards[number]
      try:
        self._readers[number] = array_record_module.ArrayRecordReader(
            self._files.local(shard), _READER_OPTIONS
        )
      except (RuntimeError, ValueError, OSError) as error:
        raise BadCacheError(self._unreadable(shard, error)) from None
    return self._readers[number]

  def _unreadable(self, shard: Shard, error: Exception) -> str:
    return (
        f'the shard {self._files.path(shard)} cannot be read '
        f'({str(error).splitlines()[0][:300]}): expected {shard.num_records} '
        f'records with the SHA-256 {shard.sha256}. {shard_files.MEND}'
    )

  def locate(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(shard, record in it) of each record's number: int64 each."""
    shards = np.searchsorted(self._ends, numbers, side='right')
    return shards, numbers - self._starts[shards]

  def read(self, numbers: np.ndarray) -> record_format.Records:
    """Reads records, in the order asked for.

    Raises:
      BadCacheError: for a shard that cannot be read.
    """
    shards, places = self.locate(numbers)
    found: list[bytes] = [b''] * numbers.size
    touched = np.unique(shards).tolist()
    self._files.bring(
        self.manifest.shards[number]
        for number in touched
        if self._readers[number] is None
    )
    for number in touched:
      wanted = np.flatnonzero(shards == number)
      wanted = wanted[np.argsort(places[wanted], kind='stable')]
      shard = self.manifest.shards[number]
      reader = self._reader(number)
      try:
        with activities.doing(f'reading {self._files.path(shard)}'):
          records = reader.read(places[wanted].tolist())
      except (RuntimeError, ValueError, IndexError, OSError) as error:
        raise BadCacheError(self._unreadable(shard, error)) from None
      for place, record in zip(wanted.tolist(), records, strict=True):
        found[place] = record
    return self.manifest.schema.decode(found)

  def verify(self) -> None:
    """Reads every byte, and compares it with the manifest.

    Raises:
      BadCacheError: naming the first shard that is not what was written.
    """
    for number, shard in enumerate(self.manifest.shards):
      self._files.verified_copy(shard)
      if shard.num_records:
        self._verify_records(number, shard)

  def _verify_records(self, number: int, shard: Shard) -> None:
    counted = dict.fromkeys(self.manifest.schema.features, 0)
    first = int(self._starts[number])
    for start in range(first, first + shard.num_records, _VERIFIED_AT_ONCE):
      stop = min(start + _VERIFIED_AT_ONCE, first + shard.num_records)
      records = self.read(np.arange(start, stop))
      for name, rows in records.features.items():
        counted[name] += int(rows.lengths.sum())
    if counted != dict(shard.tokens):
      raise BadCacheError(
          f'the shard {self._files.path(shard)} holds {counted} tokens: '
          f'expected {dict(shard.tokens)}, as {MANIFEST} says. '
          f'{shard_files.MEND}'
      )


_VERIFIED_AT_ONCE = 4096
