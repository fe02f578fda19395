# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Windows of the shuffled, mixed order, each packed into rows on its own.

The order of records never ends; windows divide it. The rows of a window are a
function of its number alone, so any is made without those before it.
"""

from collections.abc import Mapping, Sequence
import dataclasses

import numpy as np

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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Window:
  """The rows of one window.

  Attributes:
    rows: examples in rows.
    origins: int64 [examples, 3]: source, epoch and number of the record that
      each was made of, in the order of `rows`.
  """

  rows: model_rows.RowsOfExamples
  origins: np.ndarray


class Windows:
  """Makes windows by their number."""

  def __init__(
      self,
      sources: Sequence[cached_sources.CachedSource],
      *,
      rates: Sequence[float],
      layout: model_rows.Layout,
      seed: int,
      shuffle: bool,
      division: Division,
  ):
    """Takes what is mixed.

    Args:
      sources: the tasks.
      rates: records of each, in proportion.
      layout: what rows are made for.
      seed: of the order of rows.
      shuffle: whether rows are shuffled in their window.
      division: which records are a window's.
    """
    self._sources = sources
    self._interleave = index_order.Interleave(rates)
    self._layout = layout
    self._key = index_order.make_key('windows', seed)
    self._shuffle = shuffle
    self._division = division

  def records(self, number: int) -> list[np.ndarray]:
    """What a window is made of; nothing is read.

    Returns:
      int64 [records, 4] of each source that it has: source, epoch and number
      of the record, and its place in the endless order of the source.
    """
    start, count = self._division.span(number)
    places = self._interleave.places(start, count=count)
    found = []
    for index, source in enumerate(self._sources):
      counts = places.counts[places.sources == index]
      if counts.size:
        epochs, numbers = source.numbers(counts)
        found.append(
            np.stack(
                [np.full(counts.size, index), epochs, numbers, counts], axis=1
            )
        )
    return found

  def make(self, number: int) -> Window:
    """Makes a window."""
    parts, origins = [], []
    for records in self.records(number):
      traced = self._sources[records[0, 0]].examples(records[:, 3])
      parts.append(traced.examples)
      origins.append(records[traced.origins, :3])
    examples = {
        name: rows_lib.stack([part[name] for part in parts])
        for name in self._layout.features
    }
    return self._pack(examples, np.concatenate(origins), number=number)

  def _pack(
      self,
      examples: Mapping[str, rows_lib.Rows],
      origins: np.ndarray,
      *,
      number: int,
  ) -> Window:
    sizes = self._layout.sizes(examples)
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
    order = kept[np.argsort(row_of, kind='stable')]
    counts = np.bincount(row_of, minlength=num_rows)
    return Window(
        rows=model_rows.RowsOfExamples(
            examples={
                name: rows_lib.take(rows, order)
                for name, rows in examples.items()
            },
            row_starts=np.append(0, np.cumsum(counts)),
        ),
        origins=origins[order],
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
) -> Division:
  """Windows of about so many tokens, as the sources are mixed."""
  total = sum(rates)
  mean = sum(
      rate / total * source.tokens_per_record
      for rate, source in zip(rates, sources, strict=True)
  )
  wanted = int(window_tokens // max(mean, 1))
  wanted = min(max(wanted, _MIN_RECORDS), _MAX_RECORDS)
  if len(sources) > 1:
    return Division(epoch_records=wanted, epoch_windows=1)
  size = len(sources[0])
  return Division(epoch_records=size, epoch_windows=-(-size // wanted))
