# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Fewer points for a picture, none of them a spike's."""

from __future__ import annotations

import dataclasses
import math

import numpy as np


@dataclasses.dataclass(frozen=True, kw_only=True)
class Curve:
  """A curve as it is drawn.

  Attributes:
    num_points: how many there were.
    steps: of the points kept: of each bucket the lowest and the highest, and
      the first and the last of all; in order.
    values: theirs; finite.
    mean_steps: the middle of each bucket, empty where all points were kept.
    means: the mean of each bucket; what smoothing starts from.
    not_finite: (step, value) of points that are NaN or infinite: the first and
      the last of each bucket.
    num_not_finite: how many there were.
  """

  num_points: int
  steps: np.ndarray
  values: np.ndarray
  mean_steps: np.ndarray
  means: np.ndarray
  not_finite: list[tuple[float, float]]
  num_not_finite: int


def curve(steps: np.ndarray, values: np.ndarray, *, num_buckets: int) -> Curve:
  """Keeps the lowest and the highest value of each bucket.

  Args:
    steps: increasing, [points]; or hours, or whatever else is across.
    values: [points]; may hold NaN and infinities.
    num_buckets: equal parts of the range of steps; up to two points of each
      remain.
  """
  if num_buckets < 1:
    raise ValueError(
        f'num_buckets = {num_buckets}; expected at least 1; a picture needs '
        'some hundred.'
    )
  is_finite = np.isfinite(values)
  bad = np.flatnonzero(~is_finite)
  good_steps, good = steps[is_finite], values[is_finite]
  empty = np.array([])
  if len(good) <= 2 * num_buckets:
    kept, mean_steps, means = np.arange(len(good)), empty, empty
  else:
    kept, mean_steps, means = _thinned(good_steps, good, num_buckets)
  return Curve(
      num_points=len(steps),
      steps=good_steps[kept],
      values=good[kept],
      mean_steps=mean_steps,
      means=means,
      not_finite=_ends_of_buckets(steps[bad], values[bad], num_buckets),
      num_not_finite=len(bad),
  )


def extreme_by_bucket(
    steps: np.ndarray, values: np.ndarray, edges: np.ndarray
) -> np.ndarray:
  """The largest value between each two edges; NaN where there is none.

  Infinities count, so that a bucket that holds one shows it.

  Args:
    steps: increasing, [points].
    values: [points].
    edges: increasing, [buckets + 1]; each bucket has its upper edge.
  """
  largest = np.full(len(edges) - 1, math.nan)
  bucket = np.searchsorted(edges, steps, side='left') - 1
  bucket = np.clip(bucket, 0, len(largest) - 1)
  known = ~np.isnan(values)
  starts = np.flatnonzero(np.diff(bucket[known], prepend=-1))
  if len(starts):
    largest[bucket[known][starts]] = np.maximum.reduceat(values[known], starts)
  return largest


def _buckets(steps: np.ndarray, num_buckets: int) -> np.ndarray:
  """The bucket of each step, [points]; not all buckets need have one."""
  first, span = steps[0], (steps[-1] - steps[0]) or 1
  part = (steps - first) * num_buckets // span
  return np.minimum(part, num_buckets - 1).astype(np.int64)


def _thinned(
    steps: np.ndarray, values: np.ndarray, num_buckets: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Rows that are kept, and the buckets' middles and means."""
  bucket = _buckets(steps, num_buckets)
  starts = np.flatnonzero(np.diff(bucket, prepend=-1))
  counts = np.diff(starts, append=len(steps))
  # Sorted by bucket and then by value, each bucket begins with its lowest and
  # ends with its highest.
  by_value = np.lexsort((values, bucket))
  kept = np.unique(
      np.concatenate((
          by_value[starts],
          by_value[starts + counts - 1],
          [0, len(steps) - 1],
      ))
  )
  means = np.add.reduceat(values, starts) / counts
  middles = np.add.reduceat(steps, starts) / counts
  return kept, middles, means


def _ends_of_buckets(
    steps: np.ndarray, values: np.ndarray, num_buckets: int
) -> list[tuple[float, float]]:
  if not len(steps):
    return []
  bucket = _buckets(steps, num_buckets)
  starts = np.flatnonzero(np.diff(bucket, prepend=-1))
  ends = np.append(starts[1:] - 1, len(steps) - 1)
  rows = np.unique(np.concatenate((starts, ends)))
  return [(steps[row].item(), float(values[row])) for row in rows]
