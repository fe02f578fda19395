# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Training batches from caches, in an order that hosts do not touch.

Rows come one after the other, window after window, a function of the seed and
the caches. A batch is the next `batch_size` of them, a host's share its part of
the batch, and a position a few small numbers: any number of hosts, any batch
size goes on from it, and nothing is read again. Neither TensorFlow nor seqio.
"""

from collections.abc import Callable, Iterator, Mapping
import concurrent.futures
import dataclasses
import logging
from typing import Any

import numpy as np

from t5wild.data import argument_checks
from t5wild.data import cached_identity
from t5wild.data import cached_lots
from t5wild.data import cached_phases
from t5wild.data import model_rows
from t5wild.data import reader_protocol
from t5wild.data import rows as rows_lib

KIND = 'cached'
_MOST_EMPTY_WINDOWS = 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Position:
  """Where the next row is, and what came before.

  Attributes:
    window: of the phase that is read.
    row: of the window.
    rows: handed out.
    batches: handed out.
    step: of the run, for which the last batch was.
    ended: the window and row that came next, of each phase that is over.
  """

  window: int = 0
  row: int = 0
  rows: int = 0
  batches: int = 0
  step: int = 0
  ended: cached_phases.Ended = ()

  @classmethod
  def of(cls, state: Mapping[str, Any]) -> 'Position':
    """The position of a saved state; the oldest knew of no phases."""
    return cls(
        **{key: state[key] for key in ('window', 'row', 'rows', 'batches')},
        step=state.get('step', state['batches']),
        ended=tuple(tuple(each) for each in state.get('ended', ())),
    )

  def after(self, *, rows: int, of: int) -> 'Position':
    """The position after more rows of a window that has `of`."""
    row = self.row + rows
    is_over = row >= of
    return dataclasses.replace(
        self,
        window=self.window + is_over,
        row=0 if is_over else row,
        rows=self.rows + rows,
    )

  def in_next_phase(self) -> 'Position':
    """The first row of the phase that follows."""
    return dataclasses.replace(
        self, window=0, row=0, ended=(*self.ended, (self.window, self.row))
    )

  def as_dict(self) -> dict[str, Any]:
    """In numbers and lists."""
    return {
        **dataclasses.asdict(self),
        'ended': [list(each) for each in self.ended],
    }


class CachedReader:
  """Batches of a mixture of caches; see `reader_protocol.Reader`."""

  is_exact = True

  def __init__(
      self,
      make_phases: Callable[[int], cached_phases.Phases],
      *,
      layout: model_rows.Layout,
      data_layout: Any,
      identity: cached_identity.Identity,
      seed: int,
      seed_was_drawn: bool,
      source: str,
      on_changed_data: str = 'fail',
  ):
    """Reads nothing yet.

    Args:
      make_phases: seed -> where rows come from.
      layout: what rows are made for.
      data_layout: batch_size, shard_id and num_shards of this host.
      identity: of what decides the rows up to the batch of each step.
      seed: of the order and of the objective.
      seed_was_drawn: whether no seed was asked for: that of a saved position
        is then taken.
      source: what is read, for messages.
      on_changed_data: 'fail' or 'continue', for a position in other data.
    """
    argument_checks.check_divisible(
        data_layout.batch_size, num_shards=data_layout.num_shards
    )
    self._make_phases = make_phases
    self._phases = make_phases(seed)
    self._seed_was_drawn = seed_was_drawn
    self._layout = layout
    self._batch_size = data_layout.batch_size
    share = self._batch_size // data_layout.num_shards
    self._own_rows = (
        data_layout.shard_id * share, (data_layout.shard_id + 1) * share
    )
    self._identity = identity
    self._seed = seed
    self.source = self._source = source
    self._on_changed_data = on_changed_data
    self._position = Position()
    self._ahead = concurrent.futures.ThreadPoolExecutor(
        max_workers=1, thread_name_prefix='t5wild-cached-windows'
    )
    self._made: dict[int, concurrent.futures.Future] = {}
    self.element_spec = {
        name: ((share, *array.shape[1:]), array.dtype)
        for name, array in _no_rows(layout).items()
    }
    self.changes_in_words = ''

  @property
  def promise(self) -> str:
    """See `reader_protocol.Reader`."""
    return (
        f'A run resumed goes on with the next row of {self._source}, bit for '
        'bit, on any number of hosts and with any batch size; none is lost or '
        f'repeated (seed {self._seed}; the position is a row of a window).'
        f'{self.changes_in_words}'
    )

  def __iter__(self) -> Iterator[reader_protocol.Batch]:
    """Returns itself."""
    return self

  def __next__(self) -> reader_protocol.Batch:
    """Returns this host's rows of the next batch."""
    parts = []
    done = 0
    step = self._position.step + 1
    for window, start, stop in self._advance():
      first = max(self._own_rows[0] - done, 0)
      last = min(self._own_rows[1] - done, stop - start)
      if first < last:
        parts.append(
            window.make(
                start + first, start + last, step=step, layout=self._layout
            )
        )
      done += stop - start
    return {
        name: np.concatenate([part[name] for part in parts])
        for name in parts[0]
    }

  @property
  def phases(self) -> cached_phases.Phases:
    """Where rows come from."""
    return self._phases

  @property
  def position(self) -> Position:
    """After the batches handed out."""
    return self._position

  def records(self) -> list[list[np.ndarray]]:
    """What the next batch is made of, without moving on.

    Returns:
      For each row of the global batch, and each example in it, int64
      [records, 3]: source, epoch and number of the records that it is of.
    """
    step = self._position.step + 1
    rows: list[list[np.ndarray]] = []
    for windows, window, start, stop in self._next_parts():
      lot, row_starts = window.at(start, stop, step=step)
      examples = windows.records_of(lot)
      bounds = row_starts.tolist()
      rows += [
          examples[first:last]
          for first, last in zip(bounds[:-1], bounds[1:], strict=True)
      ]
    return rows

  def origins(self) -> list[np.ndarray]:
    """The same, with all records of a row together: int64 [records, 3]."""
    none = np.zeros((0, 3), np.int64)
    return [np.concatenate([none, *examples]) for examples in self.records()]

  def examples(self) -> list[list[dict[str, np.ndarray]]]:
    """Tokens by feature of each example of each row of the next batch."""
    step = self._position.step + 1
    rows: list[list[dict[str, np.ndarray]]] = []
    for _, window, start, stop in self._next_parts():
      rows += window.examples(start, stop, step=step)
    return rows

  def left_out(self) -> np.ndarray:
    """Records of the examples that the next batch has not: [records, 3]."""
    step = self._position.step + 1
    found = [np.zeros((0, 3), np.int64)]
    for windows, window, start, stop in self._next_parts():
      lot = window.left_out(start, stop, step=step)
      if lot.counts.size:
        found += windows.records_of(lot)
    return np.concatenate(found)

  def _next_parts(self) -> list[tuple[Any, cached_lots.Window, int, int]]:
    """What `_advance` yields for the next batch, each with its phase."""
    before = self._position
    parts = []
    for window, start, stop in self._advance():
      windows = self._phases.windows(self._position.ended)
      parts.append((windows, window, start, stop))
    if self._position.ended != before.ended:
      self._made.clear()  # windows of another phase
    self._position = before
    return parts

  def start_at(self, step: int) -> None:
    """Says after which step of the run the next batch is trained on.

    Without it steps are counted from the first batch of the data. Rates and
    exclusions begin by the steps of the run.
    """
    self._position = dataclasses.replace(self._position, step=step)

  def skip(self, *, batches: int) -> None:
    """Passes over batches; their windows are made all the same."""
    for _ in range(batches):
      for _ in self._advance():
        pass

  def _advance(self) -> Iterator[tuple[cached_lots.Window, int, int]]:
    """Yields (window, first row, end) of a batch's rows, and moves past it."""
    while len(self._position.ended) < self._phases.num_begun(
        self._position.step + 1
    ):
      self._position = self._position.in_next_phase()
      self._made.clear()
    empty = 0
    num_rows = self._batch_size
    while num_rows:
      position = self._position
      window = self._window(position.window)
      count = min(num_rows, window.num_rows - position.row)
      if count:
        yield window, position.row, position.row + count
      num_rows -= count
      self._position = position.after(rows=count, of=window.num_rows)
      empty = 0 if window.num_rows else empty + 1
      if empty > _MOST_EMPTY_WINDOWS:
        raise ValueError(
            f'{empty} windows in a row of {self._source} have no example: '
            'expected some. The lengths cut everything off, or the objective '
            'drops it all (min_tokens): raise TASK_FEATURE_LENGTHS.'
        )
    self._position = dataclasses.replace(
        self._position,
        batches=self._position.batches + 1,
        step=self._position.step + 1,
    )

  def _window(self, number: int) -> cached_lots.Window:
    for old in [each for each in self._made if each < number]:
      del self._made[old]
    ended = self._position.ended
    for wanted in (number, number + 1):
      if wanted not in self._made:
        self._made[wanted] = self._ahead.submit(self._make, ended, wanted)
    return self._made[number].result()

  def _make(
      self, ended: cached_phases.Ended, number: int
  ) -> cached_lots.Window:
    # In one thread alone: it opens the files of the caches.
    return self._phases.windows(ended).make(number)

  def close(self) -> None:
    """Ends the thread that makes windows ahead."""
    self._ahead.shutdown(wait=True, cancel_futures=True)

  def state_dict(self) -> dict[str, Any]:
    """Position after the batches handed out, the same on all hosts."""
    return {
        'kind': KIND,
        # One file in a checkpoint serves them all.
        reader_protocol.OF_ALL_HOSTS: True,
        **self._position.as_dict(),
        'seed': self._seed,
        **self._identity.at(self._position.step),
        cached_identity.WORDS: self._identity.words_at(self._position.step),
    }

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Goes to a saved position, at once.

    Raises:
      ValueError: for a position of another kind of reader, or (unless told to
        continue) in other data.
    """
    if state['kind'] != KIND:
      raise ValueError(
          f'the saved data position is of a {state["kind"]!r} reader: expected '
          "one of caches ('cached'). Train on the data set of that run, or "
          'restore without the data state.'
      )
    if self._seed_was_drawn and state['seed'] != self._seed:
      self._seed = state['seed']
      self._phases = self._make_phases(self._seed)
    position = Position.of(state)
    own = {'seed': self._seed, **self._identity.at(position.step)}
    message = cached_identity.difference(
        state,
        own,
        source=self._source,
        words=self._identity.words_at(position.step),
        step=position.step,
    )
    if message:
      if self._on_changed_data == 'fail':
        raise ValueError(message)
      logging.warning('Going on with changed data: %s', message)
      ended = position.ended[: self._phases.num_begun(position.step)]
      position = dataclasses.replace(position, ended=ended)
    self._made.clear()
    self._position = position


def _no_rows(layout: model_rows.Layout) -> reader_protocol.Batch:
  """A batch of no rows, for its features and their lengths."""
  empty = model_rows.RowsOfExamples(
      examples={name: rows_lib.no_tokens(0) for name in layout.features},
      row_starts=np.zeros(1, np.int64),
  )
  return empty.make(0, 0, layout=layout)
