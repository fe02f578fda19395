# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The part of a run whose throughput is below what was usual before it."""

from __future__ import annotations

import dataclasses

import numpy as np

from t5wild.reports import episodes

_LEAST_RECORDS = 20  # of a curve that is judged
_SMOOTH = 5  # records of the median that is judged: one or two are no part
_LEAST_LENGTH = 3  # of a part, in such medians beyond the first
_APART = 3
_BEFORE = 101  # records that a part is held against
_LEAST_BEFORE = 8
# Deviations of the medians, as the curve has them elsewhere: of a part that is
# as short as can be, and of a long one.
_SWING_OF_SHORT = 5.0
_SWING_OF_LONG = 2.0
_MAD_TO_DEVIATION = 1.4826


@dataclasses.dataclass(frozen=True, kw_only=True)
class SlowPart:
  """Rows `first` to `last`, whose median is `share` of the usual one.

  Attributes:
    first: row.
    last: row, itself a part of it.
    share: of the usual median.
    is_to_the_end: whether it never recovers.
    is_held_against_before: whether `share` is of the median before the part;
      else, as where a run begins slowly, of the whole's.
  """

  first: int
  last: int
  share: float
  is_to_the_end: bool
  is_held_against_before: bool


def find(values: np.ndarray, *, share: float) -> SlowPart | None:
  """The part that lost most, longer than a record or two and than usual swing.

  Args:
    values: throughput, [records].
    share: of the usual median, below which it is slow.
  """
  if len(values) < _LEAST_RECORDS:
    return None
  smooth = episodes.rolling_median(values, window=_SMOOTH)
  parts = [
      *_against_before(values, smooth, share),
      *_against_all(values, smooth, share),
  ]
  parts = [p for p in parts if _is_beyond_swing(smooth, p)]
  # Of two that are the same part, the one that tells what was before.
  return max(
      parts,
      key=lambda p: (
          (1 - p.share) * (p.last - p.first), p.is_held_against_before
      ),
      default=None,
  )  # fmt: skip


def _against_before(
    values: np.ndarray, smooth: np.ndarray, share: float
) -> list[SlowPart]:
  """Parts that begin with a drop; each held against the median before it."""
  level, _ = episodes.before(values, window=_BEFORE)
  half = _SMOOTH // 2
  # The medians are centred: one of row r is of values up to r + 2.
  begins = np.flatnonzero(smooth < share * level[: len(smooth)])
  parts, row = [], _LEAST_BEFORE
  for begin in begins.tolist():
    if begin < row:
      continue
    usual = float(level[begin])
    is_slow = smooth[begin:] < share * usual
    _, length = episodes.runs(np.flatnonzero(is_slow), apart=_APART)[0]
    row = begin + length + 1
    if length >= _LEAST_LENGTH:
      parts.append(_part(values, smooth, begin + half, row - 1 + half, usual))
  return parts


def _against_all(
    values: np.ndarray, smooth: np.ndarray, share: float
) -> list[SlowPart]:
  usual = float(np.median(values))
  half = _SMOOTH // 2
  return [
      dataclasses.replace(
          _part(values, smooth, first + half, last + half, usual),
          is_held_against_before=False,
      )
      for first, last in episodes.runs(
          np.flatnonzero(smooth < share * usual), apart=_APART
      )
      if last - first >= _LEAST_LENGTH
  ]


def _part(
    values: np.ndarray, smooth: np.ndarray, first: int, last: int, usual: float
) -> SlowPart:
  is_to_the_end = last >= len(smooth) - 1 + _SMOOTH // 2
  if is_to_the_end:
    last = len(values) - 1
  inside = float(np.median(values[first : last + 1]))
  return SlowPart(
      first=first,
      last=last,
      share=inside / usual,
      is_to_the_end=is_to_the_end,
      is_held_against_before=True,
  )


def _is_beyond_swing(smooth: np.ndarray, part: SlowPart) -> bool:
  """Whether the medians elsewhere do not lie as low by their own swing."""
  half = _SMOOTH // 2
  elsewhere = np.ones(len(smooth), bool)
  elsewhere[max(0, part.first - 2 * half) : part.last + 1] = False
  logs = np.log(smooth[elsewhere & (smooth > 0)])
  if len(logs) < _LEAST_BEFORE or part.share <= 0:
    return True
  swing = _MAD_TO_DEVIATION * np.median(np.abs(logs - np.median(logs)))
  independent = max(1.0, (part.last - part.first + 1) / _SMOOTH)
  needed = max(_SWING_OF_LONG, _SWING_OF_SHORT / np.sqrt(independent))
  return -np.log(part.share) > needed * swing
