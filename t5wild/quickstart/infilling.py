# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""How well corrupted text is filled in; plain NumPy over token ids."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import math

import numpy as np

_NUM_SPECIAL_IDS = 3  # padding, end of sequence, unknown
_NUM_BYTES = 256


@dataclasses.dataclass(frozen=True, kw_only=True)
class Matches:
  """How many spans were filled in to the letter.

  Attributes:
    num_spans: Spans compared.
    num_bytes: Ids in them.
    num_exact: Spans predicted exactly.
    num_most_frequent: Spans that the most frequent byte, repeated to the
      span's true length, would have matched: what a model that knows only
      byte frequencies could do at best.
  """

  num_spans: int
  num_bytes: int
  num_exact: int
  num_most_frequent: int

  @property
  def mean_span_bytes(self) -> float:
    """Mean length of a span."""
    return self.num_bytes / max(1, self.num_spans)

  @property
  def exact_fraction(self) -> float:
    """Fraction predicted exactly."""
    return self.num_exact / max(1, self.num_spans)

  @property
  def most_frequent_fraction(self) -> float:
    """Fraction that repeating the most frequent byte would match."""
    return self.num_most_frequent / max(1, self.num_spans)


def is_byte(ids: np.ndarray) -> np.ndarray:
  """True where an id of a byte vocabulary stands for a byte; any shape."""
  return (ids >= _NUM_SPECIAL_IDS) & (ids < _NUM_SPECIAL_IDS + _NUM_BYTES)


def byte_counts(ids: np.ndarray) -> np.ndarray:
  """Counts each byte among ids of any shape: [256]."""
  return np.bincount(
      ids[is_byte(ids)] - _NUM_SPECIAL_IDS, minlength=_NUM_BYTES
  )


def unigram_entropy(counts: np.ndarray) -> float:
  """Entropy of the byte frequencies, in nats per byte.

  H = -sum_b p_b ln p_b: the loss of the best model that sees no context.

  Args:
    counts: How often each byte occurs: [256].
  """
  p = counts[counts > 0] / counts.sum()
  return float(-(p * np.log(p)).sum())


def spans_of(
    ids: Iterable[int], *, first_sentinel: int
) -> dict[int, list[int]]:
  """Splits targets at their sentinels: sentinel id to the ids after it.

  Args:
    ids: Targets or a decode; what follows the end of sequence (1) or padding
      (0) is left out, and so is what comes before any sentinel.
    first_sentinel: Least id that is a sentinel.
  """
  spans: dict[int, list[int]] = {}
  current: list[int] | None = None
  for token in (int(one) for one in ids):
    if token in (0, 1):
      break
    if token >= first_sentinel:
      current = spans.setdefault(token, [])
    elif current is not None:
      current.append(token)
  return {sentinel: span for sentinel, span in spans.items() if span}


def compare(
    targets: Sequence[np.ndarray],
    decodes: Sequence[np.ndarray],
    *,
    first_sentinel: int,
    most_frequent_id: int,
) -> Matches:
  """Counts the spans of `targets` that `decodes` fill in exactly.

  Args:
    targets: Rows of target ids.
    decodes: Rows of decoded ids, in the same order.
    first_sentinel: Least id that is a sentinel.
    most_frequent_id: Id of the most frequent byte.
  """
  num_spans = num_bytes = num_exact = num_most_frequent = 0
  for target, decode in zip(targets, decodes, strict=True):
    predicted = spans_of(decode, first_sentinel=first_sentinel)
    true = spans_of(target, first_sentinel=first_sentinel)
    for sentinel, span in true.items():
      num_spans += 1
      num_bytes += len(span)
      num_exact += predicted.get(sentinel) == span
      num_most_frequent += span == [most_frequent_id] * len(span)
  return Matches(
      num_spans=num_spans,
      num_bytes=num_bytes,
      num_exact=num_exact,
      num_most_frequent=num_most_frequent,
  )


def filled_text(
    inputs: Iterable[int],
    spans: Mapping[int, Sequence[int]],
    *,
    first_sentinel: int,
    marks: tuple[str, str] = ('[', ']'),
) -> str:
  """The text with its gaps filled by `spans`, each between marks."""
  parts: list[str] = []
  run: list[int] = []

  def flush():
    parts.append(_text(run))
    run.clear()

  for token in (int(one) for one in inputs):
    if token in (0, 1):
      break
    if token < first_sentinel:
      run.append(token)
      continue
    flush()
    parts.append(marks[0] + _text(spans.get(token, ())) + marks[1])
  flush()
  return ''.join(parts)


def _text(ids: Sequence[int]) -> str:
  raw = bytes(
      token - _NUM_SPECIAL_IDS
      for token in ids
      if _NUM_SPECIAL_IDS <= token < _NUM_SPECIAL_IDS + _NUM_BYTES
  )
  return raw.decode('utf-8', errors='replace')


def nats_per_byte(scores: np.ndarray, num_bytes: int) -> float:
  """Loss per byte from log likelihoods that count bytes only.

  Args:
    scores: Log likelihood of each row, in nats, sentinels not counted.
    num_bytes: Number of bytes scored in all rows.
  """
  return float(-scores.sum() / num_bytes) if num_bytes else math.nan
