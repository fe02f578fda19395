# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Training batches from caches, in an order that hosts do not touch.

Rows come one after the other, window after window, a function of the seed and
the caches. A batch is the next `batch_size` of them, a host's share its part of
the batch, and a position two small numbers: any number of hosts, any batch
size goes on from it, and nothing is read again. Neither TensorFlow nor seqio.
"""

from collections.abc import Callable, Iterator, Mapping
import concurrent.futures
import logging
from typing import Any

import numpy as np

from t5wild.data import argument_checks
from t5wild.data import cached_windows
from t5wild.data import model_rows
from t5wild.data import reader_protocol
from t5wild.data import rows as rows_lib

_MOST_EMPTY_WINDOWS = 20


class CachedReader:
  """Batches of a mixture of caches; see `reader_protocol.Reader`."""

  is_exact = True

  def __init__(
      self,
      make_windows: Callable[[int], cached_windows.Windows],
      *,
      layout: model_rows.Layout,
      data_layout: Any,
      identity: Mapping[str, str],
      seed: int,
      seed_was_drawn: bool,
      source: str,
      on_changed_data: str = 'fail',
  ):
    """Reads nothing yet.

    Args:
      make_windows: seed -> where rows come from.
      layout: what rows are made for.
      data_layout: batch_size, shard_id and num_shards of this host.
      identity: fingerprints of what decides the rows, by what they are of.
      seed: of the order and of the objective.
      seed_was_drawn: whether no seed was asked for: that of a saved position
        is then taken.
      source: what is read, for messages.
      on_changed_data: 'fail' or 'continue', for a position in other data.
    """
    argument_checks.check_divisible(
        data_layout.batch_size, num_shards=data_layout.num_shards
    )
    self._make_windows = make_windows
    self._windows = make_windows(seed)
    self._seed_was_drawn = seed_was_drawn
    self._layout = layout
    self._batch_size = data_layout.batch_size
    share = self._batch_size // data_layout.num_shards
    self._own_rows = (
        data_layout.shard_id * share, (data_layout.shard_id + 1) * share
    )
    self._identity = dict(identity)
    self._seed = seed
    self._source = source
    self._on_changed_data = on_changed_data
    self._position = _Position(window=0, row=0, rows=0, batches=0)
    self._ahead = concurrent.futures.ThreadPoolExecutor(
        max_workers=1, thread_name_prefix='t5wild-cached-windows'
    )
    self._made: dict[int, concurrent.futures.Future] = {}
    self.element_spec = {
        name: ((share, *array.shape[1:]), array.dtype)
        for name, array in _no_rows(layout).items()
    }
    self.promise = (
        f'A run resumed goes on with the next row of {source}, bit for bit, on '
        'any number of hosts and with any batch size; none is lost or '
        f'repeated (seed {seed}; the position is a row of a window).'
    )

  def __iter__(self) -> Iterator[reader_protocol.Batch]:
    """Returns itself."""
    return self

  def __next__(self) -> reader_protocol.Batch:
    """Returns this host's rows of the next batch."""
    parts = []
    done = 0
    for window, start, stop in self._advance(self._batch_size):
      first = max(self._own_rows[0] - done, 0)
      last = min(self._own_rows[1] - done, stop - start)
      if first < last:
        parts.append(
            window.rows.make(start + first, start + last, layout=self._layout)
        )
      done += stop - start
    self._position = self._position.after(batches=1)
    return {
        name: np.concatenate([part[name] for part in parts])
        for name in parts[0]
    }

  @property
  def windows(self) -> cached_windows.Windows:
    """Where rows come from."""
    return self._windows

  def origins(self) -> list[np.ndarray]:
    """What the rows of the next batch are made of, without moving on.

    Returns:
      For each row of the global batch int64 [examples, 3]: source, epoch and
      number of the record.
    """
    before = self._position
    found = []
    for window, start, stop in self._advance(self._batch_size):
      bounds = window.rows.row_starts[start : stop + 1].tolist()
      found += [
          window.origins[first:last]
          for first, last in zip(bounds[:-1], bounds[1:], strict=True)
      ]
    self._position = before
    return found

  def skip(self, *, batches: int) -> None:
    """Passes over batches; their windows are made all the same."""
    for _ in range(batches):
      for _ in self._advance(self._batch_size):
        pass
      self._position = self._position.after(batches=1)

  def _advance(
      self, num_rows: int
  ) -> Iterator[tuple[cached_windows.Window, int, int]]:
    """Yields (window, first row, end) of the next rows, and moves past them."""
    empty = 0
    while num_rows:
      position = self._position
      window = self._window(position.window)
      there = window.rows.num_rows
      count = min(num_rows, there - position.row)
      if count:
        yield window, position.row, position.row + count
      num_rows -= count
      self._position = position.after(rows=count, of=there)
      empty = 0 if there else empty + 1
      if empty > _MOST_EMPTY_WINDOWS:
        raise ValueError(
            f'{empty} windows in a row of {self._source} have no example: '
            'expected some. The lengths cut everything off, or the objective '
            'drops it all (min_tokens): raise TASK_FEATURE_LENGTHS.'
        )

  def _window(self, number: int) -> cached_windows.Window:
    for old in [each for each in self._made if each < number]:
      del self._made[old]
    for wanted in (number, number + 1):
      if wanted not in self._made:
        self._made[wanted] = self._ahead.submit(self._windows.make, wanted)
    return self._made[number].result()

  def close(self) -> None:
    """Ends the thread that makes windows ahead."""
    self._ahead.shutdown(wait=True, cancel_futures=True)

  def state_dict(self) -> dict[str, Any]:
    """Position after the batches handed out, the same on all hosts."""
    return {
        'kind': 'cached',
        **self._position.as_dict(),
        'seed': self._seed,
        **self._identity,
    }

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Goes to a saved position, at once.

    Raises:
      ValueError: for a position of another kind of reader, or (unless told to
        continue) in other data.
    """
    if state['kind'] != 'cached':
      raise ValueError(
          f'the saved data position is of a {state["kind"]!r} reader: expected '
          "one of caches ('cached'). Train on the data set of that run, or "
          'restore without the data state.'
      )
    if self._seed_was_drawn and state['seed'] != self._seed:
      self._seed = state['seed']
      self._windows = self._make_windows(self._seed)
    own = {'seed': self._seed, **self._identity}
    differing = [key for key in own if state.get(key) != own[key]]
    if differing:
      message = (
          f'the saved data position is not one in {self._source}; what differs '
          'is the fingerprint of:\n'
          + ''.join(
              f'  {_MEANINGS.get(key, key)}: saved {state.get(key)}, now '
              f'{own[key]}\n'
              for key in differing
          )
          + 'Expected the same, or rows would be lost and repeated. Restore '
          'what has changed, or go on in the changed data: '
          'data.CachedDatasetConfig.on_changed_data = "continue".'
      )
      if self._on_changed_data == 'fail':
        raise ValueError(message)
      logging.warning('Going on with changed data: %s', message)
    self._made.clear()
    self._position = _Position(**{key: state[key] for key in _POSITION})


_POSITION = ('window', 'row', 'rows', 'batches')
_MEANINGS = {
    'caches': 'the records of the caches (CACHE_DIR)',
    'order': 'their order (seed, shuffle, rates, window_tokens)',
    'making': 'rows made of them (objective, lengths, packing, model)',
    'seed': 'the seed itself',
}


class _Position:
  """Where the next row is, and what came before; not changed, but replaced."""

  def __init__(self, *, window: int, row: int, rows: int, batches: int):
    self.window = window
    self.row = row
    self._rows = rows
    self._batches = batches

  def after(
      self, *, rows: int = 0, of: int | None = None, batches: int = 0
  ) -> '_Position':
    """The position after more rows of a window that has `of`."""
    row = self.row + rows
    is_over = of is not None and row >= of
    return _Position(
        window=self.window + is_over,
        row=0 if is_over else row,
        rows=self._rows + rows,
        batches=self._batches + batches,
    )

  def as_dict(self) -> dict[str, int]:
    return {
        'window': self.window,
        'row': self.row,
        'rows': self._rows,
        'batches': self._batches,
    }


def _no_rows(layout: model_rows.Layout) -> reader_protocol.Batch:
  """A batch of no rows, for its features and their lengths."""
  empty = model_rows.RowsOfExamples(
      examples={name: rows_lib.no_tokens(0) for name in layout.features},
      row_starts=np.zeros(1, np.int64),
  )
  return empty.make(0, 0, layout=layout)
