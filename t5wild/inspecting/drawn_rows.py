# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Rows as a model gets them, cut where anything changes: boundaries and masks.

Imports neither seqio nor TensorFlow.
"""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
from typing import Any

import numpy as np

from t5wild.data import reader_protocol
from t5wild.data import token_texts
from t5wild.inspecting import subject as subject_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class Span:
  """Neighbouring tokens of one example that are treated alike.

  Attributes:
    segment: number of the example in its row, from 1; 0 is padding.
    has_loss: whether the model is asked for these tokens.
    sees_ahead: whether they are attended in both directions.
    size: tokens.
    parts: (kind, text) as `token_texts.parts_of` gives them.
  """

  segment: int
  has_loss: bool
  sees_ahead: bool
  size: int
  parts: Sequence[tuple[str, str]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Side:
  """One sequence of a row.

  Attributes:
    name: 'encoder' or 'decoder'.
    spans: from left to right, padding included.
  """

  name: str
  spans: Sequence[Span]

  @property
  def length(self) -> int:
    """Tokens and padding."""
    return sum(span.size for span in self.spans)

  @property
  def num_tokens(self) -> int:
    """Without padding."""
    return sum(span.size for span in self.spans if span.segment)

  @property
  def num_segments(self) -> int:
    """Examples in it."""
    return max((span.segment for span in self.spans), default=0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mask:
  """Who sees whom in one row.

  Attributes:
    title: such as 'decoder sees decoder'.
    segments: int [queries, keys]: the example of a query that sees a key, else
      0; thinned to at most `most` each way.
    shape: (queries, keys) of the whole.
  """

  title: str
  segments: np.ndarray
  shape: tuple[int, int]


def draw(
    subject: subject_lib.Subject, batch: reader_protocol.Batch
) -> list[list[Side]]:
  """The sides of each row of a batch."""
  num_rows = len(batch['decoder_target_tokens'])
  return [list(_sides(subject, batch, row)) for row in range(num_rows)]


def _sides(
    subject: subject_lib.Subject, batch: reader_protocol.Batch, row: int
) -> Iterator[Side]:
  for name, feature, tokens in (
      ('encoder', 'inputs', 'encoder_input_tokens'),
      ('decoder', 'targets', 'decoder_target_tokens'),
  ):
    if tokens in batch:
      yield Side(
          name=name,
          spans=list(
              _spans(batch, row, name, vocabulary=subject.vocabularies[feature])
          ),
      )


def _spans(
    batch: reader_protocol.Batch, row: int, side: str, *, vocabulary: Any
) -> Iterator[Span]:
  is_encoder = side == 'encoder'
  tokens = batch[
      'encoder_input_tokens' if is_encoder else 'decoder_target_tokens'
  ][row]
  segments = _segments(batch, row, side)
  loss = np.zeros_like(tokens) if is_encoder else (
      batch['decoder_loss_weights'][row] > 0
  )
  ahead = _ahead(batch, row, side)
  marks = np.stack([segments, loss.astype(np.int64), ahead], axis=1)
  changes = np.flatnonzero((np.diff(marks, axis=0) != 0).any(axis=1)) + 1
  bounds = [0, *changes.tolist(), tokens.size]
  for start, stop in zip(bounds, bounds[1:], strict=False):
    segment, has_loss, sees_ahead = marks[start].tolist()
    yield Span(
        segment=segment,
        has_loss=bool(has_loss),
        sees_ahead=bool(sees_ahead),
        size=stop - start,
        parts=list(
            token_texts.parts_of(tokens[start:stop].tolist(), vocabulary)
        )
        if segment
        else [],
    )


def _segments(
    batch: reader_protocol.Batch, row: int, side: str
) -> np.ndarray:
  """Numbers of examples; where rows are not packed, 1 up to the last token."""
  packed = batch.get(f'{side}_segment_ids')
  if packed is not None:
    return packed[row].astype(np.int64)
  name = {
      'encoder': 'encoder_input_tokens', 'decoder': 'decoder_target_tokens'
  }[side]
  used = np.flatnonzero(batch[name][row])
  count = int(used[-1]) + 1 if used.size else 0
  return (np.arange(batch[name].shape[1]) < count).astype(np.int64)


def _ahead(batch: reader_protocol.Batch, row: int, side: str) -> np.ndarray:
  segments = _segments(batch, row, side)
  if side == 'encoder':
    return (segments > 0).astype(np.int64)
  causal = batch.get('decoder_causal_attention')
  if causal is None:
    return np.zeros_like(segments)
  return causal[row].astype(np.int64)


def masks(
    batch: reader_protocol.Batch, *, row: int, most: int = 96
) -> list[Mask]:
  """Who sees whom in a row, each way of attention."""
  names = [
      side for side in ('encoder', 'decoder')
      if f'{_TOKENS[side]}' in batch
  ]
  pairs = [(side, side) for side in names]
  if len(names) > 1:
    pairs.append(('decoder', 'encoder'))
  return [
      Mask(
          title=f'{query} sees {key}',
          segments=_mask(batch, row, query, key, most=most),
          shape=(
              batch[_TOKENS[query]].shape[1], batch[_TOKENS[key]].shape[1]
          ),
      )
      for query, key in pairs
  ]  # fmt: skip


_TOKENS: Mapping[str, str] = {
    'encoder': 'encoder_input_tokens', 'decoder': 'decoder_target_tokens'
}  # fmt: skip


def _mask(
    batch: reader_protocol.Batch, row: int, query: str, key: str, *, most: int
) -> np.ndarray:
  queries, keys = (_segments(batch, row, side) for side in (query, key))
  one = np.arange(0, queries.size, -(-queries.size // most))
  other = np.arange(0, keys.size, -(-keys.size // most))
  allowed = queries[one][:, None] == keys[other][None, :]
  allowed &= queries[one][:, None] > 0
  if query == key == 'decoder':
    ahead = _ahead(batch, row, 'decoder')
    is_past = one[:, None] >= other[None, :]
    both = (ahead[one][:, None] > 0) & (ahead[other][None, :] > 0)
    allowed &= is_past | both
  return np.where(allowed, queries[one][:, None], 0)
