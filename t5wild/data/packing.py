# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which examples share a row: the longest first, each where it fits best.

A function of the lengths alone. Examples are never split.
"""

from collections.abc import Sequence

import numpy as np


def assign_rows(
    lengths: Sequence[np.ndarray], *, capacities: Sequence[int]
) -> np.ndarray:
  """Packs examples into rows (best fit decreasing).

  An example takes room in each of one or two features, and fits a row only
  where all of it does. The examples come in the order of their room, that of
  each feature weighed by how scarce it is over all, and each goes to the row
  with the least room left in the scarcer feature that is enough.

  Args:
    lengths: int64 [examples] for each feature; none above its capacity.
    capacities: length of a row in each feature.

  Returns:
    int64 [examples], the number of each one's row, from 0 without gaps.
  """
  parts = sorted(
      zip(lengths, capacities, strict=True),
      key=lambda part: int(part[0].sum()) / part[1],
      reverse=True,
  )
  first, first_limit = parts[0]
  second, second_limit = parts[-1] if len(parts) > 1 else (first * 0, 1)
  rows = np.empty(first.size, np.int64)
  # Products of numbers and no sums of many: the same bits everywhere.
  size = first * (int(first.sum()) / first_limit**2)
  size = size + second * (int(second.sum()) / second_limit**2)
  order = np.argsort(-size, kind='stable')
  # What takes more than any other leaves free stands alone.
  alone = first > first_limit - int(first.min(initial=first_limit))
  alone |= second > second_limit - int(second.min(initial=second_limit))
  single = order[alone[order]]
  rows[single] = np.arange(single.size)
  shared = order[~alone[order]]
  rows[shared] = single.size + _best_fit(
      first[shared].tolist(),
      second[shared].tolist(),
      limits=(first_limit, second_limit),
  )
  return rows


def _best_fit(
    first: list[int], second: list[int], *, limits: tuple[int, int]
) -> np.ndarray:
  """Rows of examples in the order given: int64 [examples].

  Open rows lie on shelves by the room left in the first feature. An integer
  has a bit for each shelf with a row on it, so that the next one up is found
  at once.
  """
  shelves: list[list[tuple[int, int]]] = [[] for _ in range(limits[0] + 1)]
  occupied = 0
  rows = np.empty(len(first), np.int64)
  num_rows = 0
  for index, (one, two) in enumerate(zip(first, second, strict=True)):
    above = occupied >> one
    room, place = limits[0], None
    while above:
      shelf = one + (above & -above).bit_length() - 1
      place = _smallest_room(shelves[shelf], two)
      if place is not None:
        room = shelf
        break
      above &= above - 1
    if place is None:
      left, row = limits[1], num_rows
      num_rows += 1
    else:
      left, row = shelves[room].pop(place)
      if not shelves[room]:
        occupied ^= 1 << room
    rows[index] = row
    shelves[room - one].append((left - two, row))
    occupied |= 1 << (room - one)
  return rows


def _smallest_room(shelf: list[tuple[int, int]], needed: int) -> int | None:
  """Place on the shelf of the row with the least room that is enough."""
  best = None
  for place, (left, _) in enumerate(shelf):
    if left >= needed and (best is None or left < shelf[best][0]):
      best = place
  return best
