# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Records of a cache that are of a document, or have a text in them."""

import bisect
from collections.abc import Iterator

import numpy as np

from t5wild.data import exclusions
from t5wild.data import fingerprints
from t5wild.data import record_cache

_AT_ONCE = 4096  # records


def vocabulary_of(
    cache: record_cache.RecordCache, feature: str
) -> fingerprints.StoredVocabulary:
  """The vocabulary of a feature; of the targets where it has none."""
  found = cache.manifest.features
  return fingerprints.StoredVocabulary(
      found.get(feature, found['targets'])['vocabulary']
  )


def with_text(cache: record_cache.RecordCache, text: str) -> list[int]:
  """Numbers of the records whose decoded tokens have a text in them.

  A text may begin in one piece of a document and end in the next: both have it.
  """
  return sorted({
      number
      for name in cache.manifest.schema.features
      for number in _with_text_in(cache, name, text)
  })


def _with_text_in(
    cache: record_cache.RecordCache, name: str, text: str
) -> Iterator[int]:
  decode = vocabulary_of(cache, name).decode
  most = len(text.encode('utf-8')) - 1  # tokens of it that two pieces share
  before = np.zeros(0, np.int32)
  for number, piece, tokens in _records(cache, name):
    tail = before[max(before.size - most, 0) :] if piece else before[:0]
    if tail.size and text in decode([*tail, *tokens[:most]]):
      yield from (number - 1, number)
    if text in decode(tokens.tolist()):
      yield number
    before = tokens


def _records(
    cache: record_cache.RecordCache, name: str
) -> Iterator[tuple[int, int, np.ndarray]]:
  """Yields the number, the piece of its document and the tokens of each."""
  for start in range(0, len(cache), _AT_ONCE):
    numbers = np.arange(start, min(start + _AT_ONCE, len(cache)))
    read = cache.read(numbers)
    yield from zip(
        numbers.tolist(),
        read.pieces.tolist(),
        read.features[name].split(),
        strict=True,
    )


def of_document(
    cache: record_cache.RecordCache, document: exclusions.Document
) -> list[int]:
  """Numbers of the records of a document, which stand side by side."""
  index = cache.shard_numbers.index(document.shard)
  counts = [shard.num_records for shard in cache.manifest.shards]
  first = sum(counts[:index])

  def number_at(place: int) -> int:
    return int(cache.read(np.array([place])).documents[0])

  places = range(first, first + counts[index])
  start, stop = (
      bisect.bisect_left(places, wanted, key=number_at)
      for wanted in (document.number, document.number + 1)
  )
  return list(places[start:stop])
