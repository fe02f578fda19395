# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Records of a cache that are of a document, or have a text in them."""

import bisect
from collections.abc import Callable, Iterator
import dataclasses
import itertools

import numpy as np

from t5wild.data import exclusions
from t5wild.data import fingerprints
from t5wild.data import record_cache
from t5wild.data import token_texts
from t5wild.data import vocabularies

_AT_ONCE = 4096  # records
_NO_BYTE = 0xFF  # is in no text
# Finds a text in tokens: (start, end) of those that have it, each time.
Finder = Callable[[np.ndarray], Iterator[tuple[int, int]]]


@dataclasses.dataclass(frozen=True, kw_only=True, order=True)
class Place:
  """Where a text stands in a cache, or a part of it.

  Attributes:
    number: of the record.
    feature: of the record.
    start: its first token in the record.
    stop: the end of its tokens.
  """

  number: int
  feature: str
  start: int
  stop: int


def vocabulary_of(
    cache: record_cache.RecordCache, feature: str
) -> fingerprints.StoredVocabulary:
  """The vocabulary of a feature; of the targets where it has none."""
  found = cache.manifest.features
  return fingerprints.StoredVocabulary(
      found.get(feature, found['targets'])['vocabulary']
  )


def with_text(cache: record_cache.RecordCache, text: str) -> list[Place]:
  """Where a text stands in the records, in order.

  A text may begin in one piece of a document and end in the next: each has a
  part of it then.
  """
  return sorted({
      place
      for name in cache.manifest.schema.features
      for place in _with_text_in(cache, name, text)
  })


def _with_text_in(
    cache: record_cache.RecordCache, name: str, text: str
) -> Iterator[Place]:
  find = _finder(text, vocabulary_of(cache, name))
  # Tokens of it that the piece before may have; none is less than a byte.
  most = len(_bytes_of(text)) - 1
  before: list[tuple[int, np.ndarray]] = []  # pieces with the last of them
  for number, piece, tokens in _records(cache, name):
    before = before if piece else []
    for start, stop in find(tokens):
      yield Place(number=number, feature=name, start=start, stop=stop)
    yield from _over_the_edges([*before, (number, tokens)], most, name, find)
    before = _last_of([*before, (number, tokens)], most)


def _last_of(
    pieces: list[tuple[int, np.ndarray]], most: int
) -> list[tuple[int, np.ndarray]]:
  """The last pieces that have so many tokens together."""
  kept: list[tuple[int, np.ndarray]] = []
  for number, tokens in reversed(pieces):
    if sum(each.size for _, each in kept) >= most:
      break
    kept.insert(0, (number, tokens))
  return kept


def _over_the_edges(
    pieces: list[tuple[int, np.ndarray]], most: int, name: str, find: Finder
) -> Iterator[Place]:
  """Where a text stands that begins before the last piece and ends in it."""
  *_, (_, last) = pieces
  sizes = [tokens.size for _, tokens in pieces]
  edge = sum(sizes[:-1])
  if not edge:
    return
  first = max(edge - most, 0)
  joined = np.concatenate([tokens for _, tokens in pieces])
  for start, stop in find(joined[first : edge + min(most, last.size)]):
    if not start + first < edge < stop + first:
      continue
    for (number, tokens), begin in zip(
        pieces, itertools.accumulate([0, *sizes[:-1]]), strict=True
    ):
      part = (
          max(start + first - begin, 0), min(stop + first - begin, tokens.size)
      )
      if part[0] < part[1]:
        yield Place(number=number, feature=name, start=part[0], stop=part[1])


def _finder(text: str, vocabulary: fingerprints.StoredVocabulary) -> Finder:
  if token_texts.is_bytes(vocabulary):
    wanted = _bytes_of(text)
    return lambda tokens: _in_bytes(tokens, wanted)
  return lambda tokens: _in_pieces(tokens, text, vocabulary)


def _bytes_of(text: str) -> bytes:
  return text.encode('utf-8', 'surrogateescape')


def _in_bytes(
    tokens: np.ndarray, wanted: bytes
) -> Iterator[tuple[int, int]]:
  data = tokens - vocabularies.NUM_SPECIAL_IDS
  data = np.where((data < 0) | (data > _NO_BYTE), _NO_BYTE, data)
  held = data.astype(np.uint8).tobytes()
  start = held.find(wanted)
  while start >= 0:
    yield start, start + len(wanted)
    start = held.find(wanted, start + 1)


def _in_pieces(
    tokens: np.ndarray, text: str, vocabulary: fingerprints.StoredVocabulary
) -> Iterator[tuple[int, int]]:
  ends = np.flatnonzero(tokens == vocabulary.eos_id).tolist()
  # What stands behind an end of sequence begins a text of its own.
  for begin, end in itertools.pairwise([-1, *ends, tokens.size]):
    ids = tokens[begin + 1 : end].tolist()
    for start, stop in _in_run(ids, text, vocabulary.decode):
      yield begin + 1 + start, begin + 1 + stop


def _in_run(
    ids: list[int], text: str, decode: Callable[[list[int]], str]
) -> Iterator[tuple[int, int]]:
  """Tokens that have a text, by halving: only a decoder knows where it is."""
  start, size = 0, 1
  while start < len(ids):
    if text not in decode(ids[start : start + size]):
      if start + size >= len(ids):
        return
      size *= 2
      continue
    stop = bisect.bisect_left(
        range(start, start + size),
        True,
        key=lambda end: text in decode(ids[start:end]),
    ) + start  # fmt: skip
    first = bisect.bisect_left(
        range(start, stop),
        True,
        key=lambda begin: text not in decode(ids[begin:stop]),
    ) + start - 1  # fmt: skip
    yield first, stop
    start, size = first + 1, 1


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
