# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Windows of the shuffled, mixed order, each packed into rows on its own.

The order of records never ends; windows divide it. The rows of a window are a
function of its number alone, so any is made without those before it. Where
other rates begin, windows begin anew: with the examples of the rows that were
not handed out, then with the records that no window had come to.
"""

from collections.abc import Mapping, Sequence
import dataclasses

import numpy as np

from t5wild.data import cached_lots
from t5wild.data import cached_sources
from t5wild.data import index_order
from t5wild.data import model_rows
from t5wild.data import packing
from t5wild.data import random_words
from t5wild.data import rows as rows_lib

_MIN_RECORDS = 16
_MAX_RECORDS = 1 << 16


@dataclasses.dataclass(frozen=True, kw_only=True)
class Division:
  """How windows divide the order of records.

  Of one source each epoch is divided by itself, as evenly as can be, so that no
  record comes again before all others came. In a mixture epochs have different
  lengths, and all windows the same.

  Attributes:
    epoch_records: records of an epoch, or of some windows of a mixture.
    epoch_windows: windows of as many.
  """

  epoch_records: int
  epoch_windows: int

  def span(self, number: int) -> tuple[int, int]:
    """(first position, records) of a window."""
    epoch, place = divmod(number, self.epoch_windows)
    first, last = (
        each * self.epoch_records // self.epoch_windows
        for each in (place, place + 1)
    )
    return epoch * self.epoch_records + first, last - first

  def window_of(self, position: int) -> int:
    """The window that a position is in."""
    epoch, within = divmod(position, self.epoch_records)
    place = within * self.epoch_windows // self.epoch_records
    while (place + 1) * self.epoch_records // self.epoch_windows <= within:
      place += 1  # rounding down puts a window's end one record early
    return epoch * self.epoch_windows + place


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rest:
  """What windows leave to those that follow with other rates.

  Attributes:
    firsts: by source, the first record of its endless order that no window
      came to.
    carried: by source, examples that come before it: those of rows that were
      not handed out. Their places count from 0, without gaps.
  """

  firsts: tuple[int, ...]
  carried: Mapping[int, cached_lots.Lot]


class Windows:
  """Makes windows by their number."""

  def __init__(
      self,
      sources: Sequence[cached_sources.CachedSource],
      *,
      rates: Sequence[float],
      layout: model_rows.Layout,
      key: int,
      shuffle: bool,
      division: Division,
      rest: Rest | None = None,
  ):
    """Takes what is mixed.

    Args:
      sources: the tasks.
      rates: records of each, in proportion.
      layout: what rows are made for.
      key: of the order of rows.
      shuffle: whether rows are shuffled in their window.
      division: which records are a window's.
      rest: what windows of other rates left; None where these are the first.
    """
    self._sources = sources
    self._interleave = index_order.Interleave(rates)
    self._layout = layout
    self._key = key
    self._shuffle = shuffle
    self._division = division
    rest = rest or Rest(firsts=(0,) * len(sources), carried={})
    self._firsts = rest.firsts
    self._carried = rest.carried
    self._num_carried = [
        int(rest.carried[index].places.max(initial=-1)) + 1
        if index in rest.carried
        else 0
        for index in range(len(sources))
    ]

  def make(self, number: int) -> cached_lots.Window:
    """Makes a window."""
    start, count = self._division.span(number)
    mixed = self._interleave.places(start, count=count)
    lots = []
    for source in np.unique(mixed.sources).tolist():
      lots += self._lots(source, mixed.counts[mixed.sources == source])
    return self._pack(self._join(lots), number)

  def _join(self, lots: Sequence[cached_lots.Lot]) -> cached_lots.Lot:
    return cached_lots.join(lots, features=self._layout.features)

  def _lots(self, source: int, places: np.ndarray) -> list[cached_lots.Lot]:
    """The examples at some places of a source, one after the other."""
    lots = []
    num_carried = self._num_carried[source]
    if places[0] < num_carried:
      carried = self._carried[source]
      lots.append(
          carried.take(np.flatnonzero(np.isin(carried.places, places)))
      )
    places = places[places >= num_carried]
    if not places.size:
      return lots
    counts = places - num_carried + self._firsts[source]
    traced = self._sources[source].examples(counts)
    size = traced.firsts.size
    lots.append(
        cached_lots.Lot(
            pending=traced.pending,
            order=np.arange(size),
            sources=np.full(size, source),
            counts=counts[traced.firsts],
            extents=traced.extents,
            starts=traced.starts,
            stops=traced.stops,
            places=places[traced.firsts],
            excluded_from=traced.excluded_from,
        )
    )
    return lots

  def _pack(self, lot: cached_lots.Lot, number: int) -> cached_lots.Window:
    lengths = {
        name: lot.pending.lengths[name][lot.order]
        for name in self._layout.features
    }
    sizes = self._layout.sizes(lengths)
    # An example without a token takes part in nothing.
    kept = np.flatnonzero(sum(sizes) > 0)
    if self._shuffle:
      kept = kept[self._drawn_order(kept.size, number=number, stream=0)]
    if self._layout.pack:
      row_of = packing.assign_rows(
          [size[kept] for size in sizes], capacities=self._layout.capacities
      )
    else:
      row_of = np.arange(kept.size)
    num_rows = int(row_of.max(initial=-1)) + 1
    if self._shuffle and self._layout.pack:
      # Packing puts the longest first.
      drawn = self._drawn_order(num_rows, number=number, stream=1)
      row_of = drawn[row_of]
    counts = np.bincount(row_of, minlength=num_rows)
    return cached_lots.Window(
        lot=lot.take(kept[np.argsort(row_of, kind='stable')]),
        row_starts=np.append(0, np.cumsum(counts)),
    )

  def _ends(self, number: int, *, is_begun: bool) -> list[int]:
    """By source, how many places windows came to; a begun one is whole."""
    start, count = self._division.span(number)
    return self._interleave.counts_before(start + count * is_begun)

  def firsts_after(self, number: int, *, is_begun: bool) -> tuple[int, ...]:
    """By source, the first record in its order that no window came to."""
    return tuple(
        first + max(0, end - num_carried)
        for first, end, num_carried in zip(
            self._firsts,
            self._ends(number, is_begun=is_begun),
            self._num_carried,
            strict=True,
        )
    )

  def rest_after(self, number: int, *, row: int) -> Rest:
    """What is left where rows before this one of a window were handed out."""
    ends = self._ends(number, is_begun=row > 0)
    lots: dict[int, list[cached_lots.Lot]] = {}
    if row:
      window = self.make(number)
      left = window.lot.take(slice(window.row_starts[row], None))
      for source in np.unique(left.sources).tolist():
        of_it = left.take(np.flatnonzero(left.sources == source))
        lots[source] = [of_it.take(np.argsort(of_it.places, kind='stable'))]
    for source, carried in self._carried.items():
      unreached = carried.take(np.flatnonzero(carried.places >= ends[source]))
      lots.setdefault(source, []).append(unreached)
    return Rest(
        firsts=self.firsts_after(number, is_begun=row > 0),
        carried={
            source: cached_lots.renumbered(self._join(parts))
            for source, parts in lots.items()
            if sum(part.places.size for part in parts)
        },
    )

  def records_of(self, lot: cached_lots.Lot) -> list[np.ndarray]:
    """Each example's records: int64 [records, 3] of source, epoch, number."""
    counts = rows_lib.ranges(lot.counts, lot.extents)
    sources = np.repeat(lot.sources, lot.extents)
    found = np.empty((counts.size, 3), np.int64)
    for source in np.unique(sources).tolist():
      of_it = np.flatnonzero(sources == source)
      epochs, numbers = self._sources[source].numbers(counts[of_it])
      found[of_it] = np.stack(
          [np.full(of_it.size, source), epochs, numbers], axis=1
      )
    return np.split(found, np.cumsum(lot.extents)[:-1])

  def count_of(self, origin: tuple[int, int, int]) -> int:
    """Where a record of an epoch stands in the endless order of its source."""
    source, epoch, number = origin
    found = self._sources[source].places(np.array([number]), epoch=epoch)
    return int(found[0])

  def windows_with(self, source: int, *, count: int) -> list[int]:
    """Numbers of the windows that have examples of a record."""
    places = []
    if source in self._carried:
      carried = self._carried[source]
      is_of = cached_lots.is_of(carried, source, count=count)
      places = carried.places[is_of].tolist()
    if count >= self._firsts[source]:
      places.append(count - self._firsts[source] + self._num_carried[source])
    positions = [
        self._interleave.position_of(source, count=place) for place in places
    ]
    return sorted(
        {self._division.window_of(p) for p in positions if p is not None}
    )

  def _drawn_order(self, size: int, *, number: int, stream: int) -> np.ndarray:
    words = random_words.draw(
        (self._key, number), num_rows=size, words_per_row=1, stream=stream
    )
    return np.argsort(words[:, 0], kind='stable')


def divide(
    sources: Sequence[cached_sources.CachedSource],
    *,
    rates: Sequence[float],
    window_tokens: int,
    is_first: bool,
) -> Division:
  """Windows of about so many tokens, as the sources are mixed.

  Args:
    sources: the tasks.
    rates: records of each, in proportion.
    window_tokens: tokens of a window.
    is_first: whether these windows begin with the first record of each source.
  """
  total = sum(rates)
  mean = sum(
      rate / total * source.tokens_per_record
      for rate, source in zip(rates, sources, strict=True)
  )
  wanted = int(window_tokens // max(mean, 1))
  wanted = min(max(wanted, _MIN_RECORDS), _MAX_RECORDS)
  read = [s for s, rate in zip(sources, rates, strict=True) if rate > 0]
  if len(read) > 1 or not is_first:
    return Division(epoch_records=wanted, epoch_windows=1)
  size = len(read[0])
  return Division(epoch_records=size, epoch_windows=-(-size // wanted))
