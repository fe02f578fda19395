# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers of a subject: lengths, tokens, fill, duplicates, what is cut off."""

from collections.abc import Mapping, Sequence
import dataclasses
import hashlib
from typing import Any

import numpy as np

from t5wild.data import rows as rows_lib
from t5wild.data import token_texts
from t5wild.inspecting import subject as subject_lib

CONFLICTS = 'inputs with several targets'
_BINS = 24
_TOP_TOKENS = 15
_TOP_DUPLICATES = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lengths:
  """Lengths of a feature, or of documents.

  Attributes:
    name: of the feature.
    values: int64 [examples], before they are cut.
    limit: length of the feature, None for documents.
  """

  name: str
  values: np.ndarray
  limit: int | None

  @property
  def quantiles(self) -> dict[str, float]:
    """Least, median, mean, 90th and 99th of 100, most."""
    p50, p90, p99 = np.percentile(self.values, [50, 90, 99])
    return {
        'min': float(self.values.min()), 'median': float(p50),
        'mean': float(self.values.mean()), '90 %': float(p90),
        '99 %': float(p99), 'max': float(self.values.max()),
    }  # fmt: skip

  @property
  def num_truncated(self) -> int:
    """Examples that are longer than the limit."""
    return 0 if self.limit is None else int((self.values > self.limit).sum())

  @property
  def num_tokens_lost(self) -> int:
    """Tokens beyond the limit."""
    if self.limit is None:
      return 0
    return int(np.maximum(self.values - self.limit, 0).sum())

  @property
  def num_empty(self) -> int:
    """Examples without a token."""
    return int((self.values == 0).sum())

  def histogram(self) -> tuple[np.ndarray, np.ndarray]:
    """(counts [bins], edges [bins + 1])."""
    most = int(self.values.max(initial=1))
    width = -(-(most + 1) // _BINS)  # whole, so that bins are alike
    edges = np.arange(0, most + 1 + width, width)
    return np.histogram(self.values, edges)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tokens:
  """Which tokens a feature is made of.

  Attributes:
    name: of the feature.
    counts: int64 [ids], how often each occurs.
    num_ids: size of the vocabulary.
    num_unknown: occurrences of the unknown token, None if there is none.
    num_sentinels: occurrences of sentinels.
    num_out_of_range: ids beyond the vocabulary.
    top: the most frequent: (id, text, count).
  """

  name: str
  counts: np.ndarray
  num_ids: int
  num_unknown: int | None
  num_sentinels: int
  num_out_of_range: int
  top: Sequence[tuple[int, str, int]]

  @property
  def total(self) -> int:
    """Tokens in all."""
    return int(self.counts.sum())

  @property
  def num_distinct(self) -> int:
    """Ids that occur."""
    return int((self.counts > 0).sum())

  @property
  def entropy_bits(self) -> float:
    """Of a token drawn from all: bits."""
    shares = self.counts[self.counts > 0] / max(self.total, 1)
    return float(-(shares * np.log2(shares)).sum())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Duplicates:
  """What occurs more than once.

  Attributes:
    name: of what.
    count: how many were compared.
    num_repeats: how many equal an earlier one.
    worst: (number of the first one, times it occurs).
  """

  name: str
  count: int
  num_repeats: int
  worst: Sequence[tuple[int, int]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Statistics:
  """All numbers of a subject.

  Attributes:
    lengths: of each feature, and of documents.
    tokens: of each feature.
    fill: by way of packing: rows, and the filled part of each feature.
    duplicates: of documents, examples, and inputs with several targets.
  """

  lengths: Sequence[Lengths]
  tokens: Sequence[Tokens]
  fill: Mapping[str, tuple[int, Mapping[str, float]]]
  duplicates: Sequence[Duplicates]


def measure(subject: subject_lib.Subject) -> Statistics:
  """Counts all there is to count."""
  layout = subject.layout
  lengths = [
      Lengths(
          name=name, values=subject.examples[name].lengths,
          limit=layout.lengths[name],
      )
      for name in layout.features
  ]  # fmt: skip
  if subject.document_lengths is not None:
    lengths.append(
        Lengths(name='documents', values=subject.document_lengths, limit=None)
    )
  return Statistics(
      lengths=lengths,
      tokens=[
          _count_tokens(name, rows, subject.vocabularies[name])
          for name, rows in subject.cut_examples().items()
      ],
      fill={
          how: _fill(subject, how)
          for how in (
              subject_lib.ALONE, subject_lib.IN_ORDER, subject_lib.BEST_FIT
          )
      },
      duplicates=_find_duplicates(subject),
  )


def _count_tokens(name: str, rows: rows_lib.Rows, vocabulary: Any) -> Tokens:
  size = int(vocabulary.vocab_size)
  beyond = (rows.values >= size) | (rows.values < 0)
  counts = np.bincount(rows.values[~beyond], minlength=size)
  unknown = getattr(vocabulary, 'unk_id', None)
  first_sentinel = size - int(getattr(vocabulary, 'extra_ids', 0) or 0)
  order = np.argsort(-counts, kind='stable')[:_TOP_TOKENS]
  return Tokens(
      name=name,
      counts=counts,
      num_ids=size,
      num_unknown=None if unknown is None else int(counts[unknown]),
      num_sentinels=int(counts[first_sentinel:].sum()),
      num_out_of_range=int(beyond.sum()),
      top=[
          (int(token), token_texts.name_of(int(token), vocabulary),
           int(counts[token]))
          for token in order
          if counts[token]
      ],
  )  # fmt: skip


def _fill(
    subject: subject_lib.Subject, how: str
) -> tuple[int, dict[str, float]]:
  """(rows, filled part of each feature, or of both as one)."""
  rows = subject.rows(how)
  layout = subject.layout
  sizes = layout.sizes(
      {name: each.lengths for name, each in rows.examples.items()}
  )
  names = layout.features if len(sizes) > 1 else ('+'.join(layout.features),)
  return rows.num_rows, {
      name: float(size.sum()) / max(rows.num_rows * capacity, 1)
      for name, size, capacity in zip(
          names, sizes, layout.capacities, strict=True
      )
  }


def _find_duplicates(subject: subject_lib.Subject) -> list[Duplicates]:
  parts = {
      name: [row.tobytes() for row in subject.examples[name].split()]
      for name in subject.layout.features
  }
  whole = [_digest(*each) for each in zip(*parts.values(), strict=True)]
  found = [
      _repeats('documents', [_digest(each) for each in subject.documents]),
      _repeats('examples', whole),
  ]
  if 'inputs' in parts:
    found.append(_conflicts(parts['inputs'], parts['targets']))
  return [each for each in found if each.count]


def _digest(*parts: bytes) -> bytes:
  digest = hashlib.blake2b(digest_size=12)
  for part in parts:
    digest.update(len(part).to_bytes(8, 'little'))
    digest.update(part)
  return digest.digest()


def _repeats(name: str, digests: Sequence[bytes]) -> Duplicates:
  times: dict[bytes, list[int]] = {}
  for number, digest in enumerate(digests):
    times.setdefault(digest, [number, 0])[1] += 1
  worst = sorted(
      ((first, count) for first, count in times.values() if count > 1),
      key=lambda each: (-each[1], each[0]),
  )
  return Duplicates(
      name=name, count=len(digests), num_repeats=len(digests) - len(times),
      worst=worst[:_TOP_DUPLICATES],
  )  # fmt: skip


def _conflicts(inputs: Sequence[bytes], targets: Sequence[bytes]) -> Duplicates:
  """Inputs that are asked for different targets."""
  found: dict[bytes, tuple[int, set[bytes]]] = {}
  for number, (one, other) in enumerate(zip(inputs, targets, strict=True)):
    found.setdefault(one, (number, set()))[1].add(other)
  worst = sorted(
      ((first, len(each)) for first, each in found.values() if len(each) > 1),
      key=lambda each: (-each[1], each[0]),
  )
  return Duplicates(
      name=CONFLICTS, count=len(found),
      num_repeats=len(worst), worst=worst[:_TOP_DUPLICATES],
  )  # fmt: skip
