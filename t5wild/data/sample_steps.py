# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""In which steps of a run records were seen, by where they stand in the order.

The place of a record in each epoch is computed; of the windows between a line
of the ledger and that place only the rows are counted.
"""

from collections.abc import Iterable, Iterator, Sequence
import dataclasses
from typing import Any

import numpy as np

from t5wild.data import cached_lots
from t5wild.data import cached_phases
from t5wild.data import cached_reader
from t5wild.data import ledger

Origin = tuple[int, int, int]


@dataclasses.dataclass(frozen=True, kw_only=True, order=True)
class Wanted:
  """What of a cache is looked for.

  Attributes:
    source: number of the cache.
    number: of the record in it.
    part: start and end of the tokens of the record that are meant; None: all.
  """

  source: int
  number: int
  part: tuple[int, int] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sighting:
  """A record of one epoch, or a part of it, in one window of a phase.

  Attributes:
    origin: source, epoch and number of the record.
    steps: whose batches had something of what is meant, in order.
    steps_without: from whose batches something was left out, in order.
  """

  origin: Origin
  steps: tuple[int, ...]
  steps_without: tuple[int, ...]


class SampleSteps:
  """The order of a run, from its ledger."""

  def __init__(
      self,
      anchors: Sequence[ledger.Anchor],
      phases: cached_phases.Phases,
      *,
      num_records: Sequence[int],
  ):
    """Takes the lines of the ledger.

    Args:
      anchors: at least one.
      phases: where the rows of the run come from.
      num_records: of an epoch of each source.
    """
    self._anchors = anchors
    self._positions = [
        cached_reader.Position.of(anchor.state) for anchor in anchors
    ]
    self._last = self._positions[-1]
    self._windows = [
        phases.windows(self._last.ended[:number])
        for number in range(len(self._last.ended) + 1)
    ]
    # Where each phase ended: the last one where the run was saved last.
    self._ends = [
        *self._last.ended, (self._last.window, self._last.row)
    ]
    self._num_records = num_records
    self._num_rows: dict[tuple[int, int], int] = {}

  def find(self, wanted: Iterable[Wanted]) -> Iterator[Sighting]:
    """Yields when records, or parts of them, were seen; early ones first.

    Nothing after the last line of the ledger is known.
    """
    places: dict[tuple[int, int], dict[Origin, list[Any]]] = {}
    for each in wanted:
      for place, origin in self._places(each.source, each.number):
        of_window = places.setdefault(place, {})
        of_window.setdefault(origin, []).append(each.part)
    for phase, number in sorted(places):
      window = self._windows[phase].make(number)
      self._num_rows[phase, number] = window.num_rows
      for origin, parts in places[phase, number].items():
        found = self._sighting(window, (phase, number), origin, parts)
        if found.steps or found.steps_without:
          yield found

  def _places(
      self, source: int, number: int
  ) -> Iterator[tuple[tuple[int, int], Origin]]:
    """Yields ((phase, window), (source, epoch, number)) of a record."""
    for phase, windows in enumerate(self._windows):
      last, _ = self._ends[phase]
      most = windows.firsts_after(last, is_begun=True)[source]
      epochs = range(most // self._num_records[source] + 1)
      for origin in ((source, epoch, number) for epoch in epochs):
        found = windows.windows_with(source, count=windows.count_of(origin))
        yield from (
            ((phase, window), origin) for window in found if window <= last
        )

  def _sighting(
      self,
      window: cached_lots.Window,
      place: tuple[int, int],
      origin: Origin,
      parts: Sequence[tuple[int, int] | None],
  ) -> Sighting:
    phase, number = place
    count = self._windows[phase].count_of(origin)
    has_part = [
        cached_lots.is_of(window.lot, origin[0], count=count, part=part)
        for part in parts
    ]
    examples = np.flatnonzero(np.any(has_part, axis=0))
    rows = np.searchsorted(window.row_starts, examples, side='right') - 1
    seen, without = set(), set()
    for example, row in zip(examples.tolist(), rows.tolist(), strict=True):
      if (number, row) >= self._ends[phase]:
        continue  # not handed out, or in a later phase
      step = self._step_of(phase, number, row)
      if step is None:
        continue
      is_left_out = window.lot.excluded_from[example] <= step
      (without if is_left_out else seen).add(step)
    return Sighting(
        origin=origin,
        steps=tuple(sorted(seen)),
        steps_without=tuple(sorted(without)),
    )

  def _step_of(self, phase: int, number: int, row: int) -> int | None:
    """The step that was trained on a row of a window; None: passed over."""
    place = (phase, number, row)
    index = max(
        index
        for index, position in enumerate(self._positions)
        if (len(position.ended), position.window, position.row) <= place
    )
    anchor, position = self._anchors[index], self._positions[index]
    rows = 0
    start = (position.window, position.row)
    for passed in range(len(position.ended), phase):
      rows += self._rows_between(passed, start, self._ends[passed])
      start = (0, 0)
    rows += self._rows_between(phase, start, (number, row))
    step = anchor.step + 1 + rows // anchor.batch_size
    later = self._anchors[index + 1 : index + 2]
    return None if later and step > later[0].step else step

  def _rows_between(
      self, phase: int, start: tuple[int, int], stop: tuple[int, int]
  ) -> int:
    rows = stop[1] - start[1]
    for number in range(start[0], stop[0]):
      if (phase, number) not in self._num_rows:
        self._num_rows[phase, number] = (
            self._windows[phase].make(number).num_rows
        )
      rows += self._num_rows[phase, number]
    return rows
