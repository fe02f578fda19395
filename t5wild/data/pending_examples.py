# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Examples whose lengths are known, and whose tokens are made when needed.

Lengths decide how examples are packed; a host makes no more than its own rows.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
from typing import Protocol

import numpy as np

from t5wild.data import rows as rows_lib


class Pending(Protocol):
  """Some examples, found by their numbers.

  Attributes:
    lengths: tokens of each feature, int64 [examples].
  """

  lengths: Mapping[str, np.ndarray]

  def make(self, chosen: np.ndarray) -> Mapping[str, rows_lib.Rows]:
    """Makes examples by their numbers, int64 [rows], in that order."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Made:
  """Examples that are there; see `Pending`."""

  rows: Mapping[str, rows_lib.Rows]

  @functools.cached_property
  def lengths(self) -> Mapping[str, np.ndarray]:
    """See `Pending.lengths`."""
    return {name: rows.lengths for name, rows in self.rows.items()}

  def make(self, chosen: np.ndarray) -> Mapping[str, rows_lib.Rows]:
    """See `Pending.make`."""
    return {
        name: rows_lib.take(rows, chosen) for name, rows in self.rows.items()
    }


class Joined:
  """The examples of all parts, one after the other; see `Pending`."""

  def __init__(self, parts: Sequence[Pending], *, features: Sequence[str]):
    """Takes the parts, whose features are these."""
    self._parts = parts
    self._features = features
    self.lengths = {
        name: np.concatenate(
            [np.zeros(0, np.int64), *(part.lengths[name] for part in parts)]
        )
        for name in features
    }
    sizes = [part.lengths[features[0]].size for part in parts]
    self._ends = np.cumsum(sizes)
    self._starts = self._ends - sizes

  def make(self, chosen: np.ndarray) -> Mapping[str, rows_lib.Rows]:
    """See `Pending.make`."""
    part_of = np.searchsorted(self._ends, chosen, side='right')
    made, places = [], []
    for number in np.unique(part_of).tolist():
      wanted = np.flatnonzero(part_of == number)
      made.append(
          self._parts[number].make(chosen[wanted] - self._starts[number])
      )
      places.append(wanted)
    if len(made) == 1:
      return made[0]
    back = np.argsort(np.concatenate([*places, np.zeros(0, np.int64)]))
    return {
        name: rows_lib.take(rows_lib.stack([part[name] for part in made]), back)
        for name in self._features
    }
