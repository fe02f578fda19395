# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of tokens of different lengths, one after the other in one array."""

from collections.abc import Sequence
import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rows:
  """Rows of different lengths.

  Attributes:
    values: int32 [tokens of all rows], row after row.
    lengths: int64 [rows].
  """

  values: np.ndarray
  lengths: np.ndarray

  def split(self) -> list[np.ndarray]:
    """The rows, each an array."""
    return np.split(self.values, np.cumsum(self.lengths)[:-1])


def from_matrix(matrix: np.ndarray) -> Rows:
  """Rows that are all of one length: [rows, length]."""
  num_rows, length = matrix.shape
  return Rows(
      values=matrix.reshape(-1), lengths=np.full(num_rows, length, np.int64)
  )


def no_tokens(num_rows: int) -> Rows:
  """Empty rows."""
  return Rows(
      values=np.zeros(0, np.int32), lengths=np.zeros(num_rows, np.int64)
  )


def stack(parts: Sequence[Rows]) -> Rows:
  """All rows of the parts, in order."""
  if not parts:
    return no_tokens(0)
  return Rows(
      values=np.concatenate([part.values for part in parts]),
      lengths=np.concatenate([part.lengths for part in parts]),
  )


def take(rows: Rows, order: np.ndarray) -> Rows:
  """The rows numbered `order`, int64 [rows]."""
  starts = np.cumsum(rows.lengths) - rows.lengths
  lengths = rows.lengths[order]
  return Rows(
      values=rows.values[ranges(starts[order], lengths)], lengths=lengths
  )


def part(rows: Rows, start: int, stop: int) -> Rows:
  """The rows from start to before stop; nothing is copied."""
  first = int(rows.lengths[:start].sum())
  lengths = rows.lengths[start:stop]
  return Rows(
      values=rows.values[first : first + int(lengths.sum())], lengths=lengths
  )


def cut_off(rows: Rows, length: int) -> Rows:
  """The rows without what lies beyond a length."""
  if rows.lengths.max(initial=0) <= length:
    return rows
  lengths = np.minimum(rows.lengths, length)
  starts = np.cumsum(rows.lengths) - rows.lengths
  return Rows(values=rows.values[ranges(starts, lengths)], lengths=lengths)


def ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
  """The numbers from each start on, as many as its length: int64 [sum]."""
  ends = np.cumsum(lengths)
  total = int(ends[-1]) if lengths.size else 0
  return np.arange(total) + np.repeat(starts - ends + lengths, lengths)


def join(*parts: Rows) -> Rows:
  """Joins the parts row by row: row i is the rows i of all parts in order."""
  num_rows = parts[0].lengths.size
  order = np.arange(len(parts) * num_rows).reshape(len(parts), num_rows)
  joined = take(stack(parts), order.T.reshape(-1))
  lengths = joined.lengths.reshape(num_rows, len(parts)).sum(1)
  return Rows(values=joined.values, lengths=lengths)


def prepend(tokens: Sequence[int], rows: Rows) -> Rows:
  """The same tokens in front of each row."""
  if not tokens:
    return rows
  front = np.broadcast_to(
      np.asarray(tokens, np.int32), (rows.lengths.size, len(tokens))
  )
  return join(from_matrix(front), rows)
