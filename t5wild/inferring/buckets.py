# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which examples make a batch: a few static shapes, and little padding."""

from collections.abc import Mapping, Sequence

# A shape is a multiple of it, which matrix units like.
_STEP = 8
# Features of other names may not be cut to a shape of their own.
_KNOWN = frozenset({'inputs', 'targets'})

Lengths = Mapping[str, int]


def make_buckets(
    lengths: Mapping[str, int | Sequence[int]],
    *,
    num_buckets: int,
    whole: Sequence[str] = (),
) -> list[dict[str, int | Sequence[int]]]:
  """Returns the shapes to compile for, the full lengths being the last.

  Each is half as long as the next one, in multiples of 8. Data of other
  features than 'inputs' and 'targets' has one shape.

  Args:
    lengths: Full length of each task feature.
    num_buckets: The most shapes there may be.
    whole: Features that keep their full length in every shape.

  Raises:
    ValueError: `num_buckets` is below 1.
  """
  if num_buckets < 1:
    raise ValueError(
        f'num_buckets is {num_buckets}: expected at least 1 shape of batches. '
        'Set infer.num_buckets = 4, or 1 for full lengths throughout.'
    )
  if not lengths.keys() <= _KNOWN:
    num_buckets = 1
  buckets = [dict(lengths)]
  for power in range(1, num_buckets):
    shorter = {
        name: length if name in whole else _rounded(length >> power, length)
        for name, length in lengths.items()
    }
    if shorter != buckets[0]:
      buckets.insert(0, shorter)
  return buckets


def _rounded(length: int, most: int) -> int:
  return min(most, max(_STEP, -(-length // _STEP) * _STEP))


def choose(sizes: Lengths, buckets: Sequence[Lengths]) -> int:
  """Returns the first bucket that holds an example; the last holds any.

  Args:
    sizes: Number of tokens of each feature that decides.
    buckets: From `make_buckets`.
  """
  for index, bucket in enumerate(buckets[:-1]):
    if all(size <= bucket[name] for name, size in sizes.items()):
      return index
  return len(buckets) - 1


def plan(chosen: Sequence[int], *, batch_size: int) -> dict[int, list[int]]:
  """Returns bucket -> examples, full batches but for the longest one.

  What a bucket has over its full batches goes to the next longer one in use:
  so all of them together pad less than one batch.

  Args:
    chosen: Bucket of each example.
    batch_size: Examples of a batch.
  """
  by_bucket: dict[int, list[int]] = {}
  for example, bucket in enumerate(chosen):
    by_bucket.setdefault(bucket, []).append(example)
  planned, carried = {}, []
  used = sorted(by_bucket)
  for bucket in used:
    examples = carried + by_bucket[bucket]
    full = len(examples) - len(examples) % batch_size
    if bucket == used[-1]:
      full = len(examples)
    if full:
      planned[bucket] = examples[:full]
    carried = examples[full:]
  return planned
