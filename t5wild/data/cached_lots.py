# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Examples of a window, in its rows, and the records that each is of."""

from collections.abc import Mapping, Sequence
import dataclasses
import itertools

import numpy as np

from t5wild.data import model_rows
from t5wild.data import pending_examples
from t5wild.data import reader_protocol
from t5wild.data import rows as rows_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lot:
  """Examples, and where each comes from.

  Attributes:
    pending: the examples.
    order: int64 [examples], their numbers in `pending`.
    sources: int64 [examples], numbers of the sources.
    counts: int64 [examples], of the first record that each is of, in the
      endless order of its source.
    extents: int64 [examples], how many records from there on it is of.
    starts: int64 [examples], its first token in the first of them.
    stops: int64 [examples], the end of its tokens in the last of them.
    places: int64 [examples], of that record in the order of its source, as
      the windows count it.
    excluded_from: int64 [examples], the step from which on each is left out.
  """

  pending: pending_examples.Pending
  order: np.ndarray
  sources: np.ndarray
  counts: np.ndarray
  extents: np.ndarray
  starts: np.ndarray
  stops: np.ndarray
  places: np.ndarray
  excluded_from: np.ndarray

  def take(self, chosen: np.ndarray) -> 'Lot':
    """Some of them, int64 [chosen] or a slice."""
    return Lot(
        pending=self.pending,
        **{name: getattr(self, name)[chosen] for name in _PER_EXAMPLE},
    )

  def made(self) -> Mapping[str, rows_lib.Rows]:
    """Their tokens by feature."""
    return self.pending.make(self.order)


_PER_EXAMPLE = (
    'order', 'sources', 'counts', 'extents', 'starts', 'stops', 'places',
    'excluded_from',
)  # fmt: skip


def join(lots: Sequence[Lot], *, features: Sequence[str]) -> Lot:
  """The examples of all, one after the other."""
  parts = {
      name: np.concatenate([getattr(lot, name) for lot in lots])
      for name in _PER_EXAMPLE
  }
  if len(lots) > 1:
    parts['order'] = np.arange(parts['places'].size)
    pending = pending_examples.Joined(
        [_whole(lot) for lot in lots], features=features
    )
  else:
    pending = lots[0].pending
  return Lot(pending=pending, **parts)


def is_of(
    lot: Lot,
    source: int,
    *,
    count: int,
    part: tuple[int, int] | None = None,
) -> np.ndarray:
  """Which examples have something of a record: bool [examples].

  Args:
    lot: the examples.
    source: of the record.
    count: its place in the endless order of its source.
    part: start and end of the tokens of it that are meant; None: all.
  """
  lasts = lot.counts + lot.extents - 1
  found = (lot.sources == source) & (lot.counts <= count) & (count <= lasts)
  if part is None:
    return found
  start, stop = part
  begins_before = (lot.counts < count) | (lot.starts < stop)
  ends_after = (lasts > count) | (lot.stops > start)
  return found & begins_before & ends_after


def _whole(lot: Lot) -> pending_examples.Pending:
  if lot.order.size == next(iter(lot.pending.lengths.values())).size and (
      lot.order == np.arange(lot.order.size)
  ).all():
    return lot.pending
  return pending_examples.Made(rows=lot.made())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Window:
  """The rows of one window.

  Attributes:
    lot: its examples, in the order of the rows.
    row_starts: int64 [rows + 1], the first example of each row.
  """

  lot: Lot
  row_starts: np.ndarray

  @property
  def num_rows(self) -> int:
    """Rows there are."""
    return self.row_starts.size - 1

  def make(
      self, start: int, stop: int, *, step: int, layout: model_rows.Layout
  ) -> reader_protocol.Batch:
    """Makes rows start to stop, as they are in a batch of a step."""
    lot, row_starts = self.at(start, stop, step=step)
    rows = model_rows.RowsOfExamples(
        examples=lot.made(), row_starts=row_starts
    )
    return rows.make(0, stop - start, layout=layout)

  def examples(
      self, start: int, stop: int, *, step: int
  ) -> list[list[dict[str, np.ndarray]]]:
    """Tokens by feature of each example of each row of a batch of a step."""
    lot, row_starts = self.at(start, stop, step=step)
    made = {name: rows.split() for name, rows in lot.made().items()}
    return [
        [
            {name: made[name][example] for name in made}
            for example in range(first, last)
        ]
        for first, last in itertools.pairwise(row_starts.tolist())
    ]

  def left_out(self, start: int, stop: int, *, step: int) -> Lot:
    """What a batch of a step has not of rows start to stop."""
    lot = self.lot.take(slice(*self.row_starts[[start, stop]]))
    return lot.take(np.flatnonzero(lot.excluded_from <= step))

  def at(self, start: int, stop: int, *, step: int) -> tuple[Lot, np.ndarray]:
    """(examples of rows start to stop in a batch of a step, row starts)."""
    bounds = self.row_starts[start : stop + 1]
    lot = self.lot.take(slice(bounds[0], bounds[-1]))
    bounds = bounds - bounds[0]
    is_kept = lot.excluded_from > step
    if is_kept.all():
      return lot, bounds
    # The places of others stay: their rows, and their order in them.
    return (
        lot.take(np.flatnonzero(is_kept)),
        np.append(0, np.cumsum(is_kept))[bounds],
    )


def renumbered(lot: Lot) -> Lot:
  """The same with places from 0 without gaps; they must be in order."""
  is_new = np.append(True, np.diff(lot.places) != 0)[: lot.places.size]
  return dataclasses.replace(lot, places=np.cumsum(is_new) - 1)
