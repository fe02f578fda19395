# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Readers over what a user's `get_dataset_fn` gives.

A tf.data pipeline becomes a `live_reader.LiveReader`, with its snapshots. Of
any other iterable of numpy batches the position is kept in the best way that
it offers; `promise` says which, and `is_exact` whether it is sure.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
import dataclasses
from typing import Any

import numpy as np

from t5wild.data import live_reader
from t5wild.data import reader_protocol

# Ways in which an iterator gives and takes its state: ours, grain's.
_STATE_METHODS = (
    ('state_dict', 'load_state_dict'),
    ('get_state', 'set_state'),
)


def make_custom_reader(
    get_dataset_fn: Callable[..., Any],
    cfg: Any,
    *,
    data_layout: Any,
    feature_converter_cls: Callable[..., Any],
    draw_seed: Callable[[], int],
) -> reader_protocol.Reader:
  """Makes a reader of what a function of T5X's signature gives.

  Args:
    get_dataset_fn: called with (cfg, shard_id, num_shards,
      feature_converter_cls), as T5X calls it; gives batches of
      batch_size / num_shards rows: a tf.data.Dataset or any iterable of
      mappings to numpy arrays.
    cfg: handed to it; a seed of None is replaced by one that is saved.
    data_layout: batch_size, shard_id and num_shards of this host.
    feature_converter_cls: handed to it.
    draw_seed: gives a seed, the same on all hosts.

  Returns:
    A reader; see `reader_protocol.Reader`.

  Raises:
    ValueError: for batches of another size, or none.
    TypeError: for something that is no iterable of mappings.
  """
  seed_was_drawn = getattr(cfg, 'seed', 0) is None
  seed = draw_seed() if seed_was_drawn else getattr(cfg, 'seed', 0)
  source = getattr(get_dataset_fn, '__qualname__', repr(get_dataset_fn))

  def make(seed: int) -> Any:
    own = dataclasses.replace(cfg, seed=seed) if seed_was_drawn else cfg
    return get_dataset_fn(
        own,
        data_layout.shard_id,
        data_layout.num_shards,
        feature_converter_cls,
    )

  first = make(seed)
  share = live_reader.Share(
      by='files',
      shard_id=data_layout.shard_id,
      num_shards=data_layout.num_shards,
  )
  on_changed_data = getattr(cfg, 'on_changed_data', 'fail')
  if _is_tf_dataset(first):
    reader = live_reader.LiveReader(
        make,
        source=source,
        seed=seed,
        seed_was_drawn=seed_was_drawn,
        share=share,
        on_changed_data=on_changed_data,
    )
  else:
    reader = IterableReader(
        make,
        first,
        source=source,
        seed=seed,
        share=share,
        on_changed_data=on_changed_data,
    )
  _check_rows(reader, data_layout=data_layout, source=source)
  return reader


class IterableReader:
  """Batches of an iterable; see `reader_protocol.Reader`."""

  def __init__(
      self,
      make_iterable: Callable[[int], Iterable[Mapping[str, Any]]],
      first: Iterable[Mapping[str, Any]],
      *,
      source: str,
      seed: int,
      share: live_reader.Share,
      on_changed_data: str = 'fail',
  ):
    """Reads one batch, for its shapes.

    Args:
      make_iterable: seed -> a new iterable.
      first: what `make_iterable(seed)` has given.
      source: what is read, for messages.
      seed: handed to `make_iterable`.
      share: this host's part.
      on_changed_data: 'fail' or 'continue', for a resume that meets other
        data.
    """
    self._make_iterable = make_iterable
    self.source = self._source = source
    self._seed = seed
    self._share = share
    self._on_changed_data = on_changed_data
    self._start(first)
    self.element_spec = {
        name: (array.shape, array.dtype)
        for name, array in self._peek().items()
    }
    self.is_exact = self._state_methods is not None
    self.promise = self._make_promise()

  def _start(self, iterable: Iterable[Mapping[str, Any]]) -> None:
    """Goes to the first batch of an iterable."""
    if not isinstance(iterable, Iterable):
      raise TypeError(
          f'{self._source} gave a {type(iterable).__name__}: expected a '
          'tf.data.Dataset or an iterable of {feature: numpy array}. Return '
          'one from get_dataset_fn.'
      )
    self._iterator = iter(iterable)
    self._state_methods = _state_methods(self._iterator)
    # Before the peek: a state after it would skip that batch.
    self._state = self._own_state()
    self._peeked: reader_protocol.Batch | None = None
    self._num_batches = 0
    self._checksum = 0

  def _own_state(self) -> Any:
    if self._state_methods is None:
      return None
    return getattr(self._iterator, self._state_methods[0])()

  def _peek(self) -> reader_protocol.Batch:
    if self._peeked is None:
      try:
        self._peeked = _as_batch(next(self._iterator), source=self._source)
      except StopIteration:
        raise ValueError(
            f'{self._source} gave no batch: expected batches without end. '
            'Repeat the data, or look whether its source is empty.'
        ) from None
    return self._peeked

  def _make_promise(self) -> str:
    if self.is_exact:
      return (
          f'A run resumed goes on where the iterator of {self._source} says '
          'that it stood (its own saved state).'
      )
    return (
        f'{self._source} gives an iterable whose position cannot be saved: a '
        'resumed run reads the batches before again and compares the last one. '
        'It goes on exactly only if the function gives the same batches each '
        'time. Return a tf.data.Dataset, or an iterator with get_state and '
        'set_state, to be sure.'
    )

  def __iter__(self) -> Iterator[reader_protocol.Batch]:
    """Returns itself."""
    return self

  def __next__(self) -> reader_protocol.Batch:
    """Returns this host's rows of the next batch."""
    if self._peeked is not None:
      batch, self._peeked = self._peeked, None
    else:
      batch = _as_batch(next(self._iterator), source=self._source)
    self._num_batches += 1
    self._checksum = reader_protocol.checksum(batch)
    self._state = self._own_state()
    return batch

  def state_dict(self) -> dict[str, Any]:
    """Position after the batches handed out; see `reader_protocol.Reader`."""
    return {
        'kind': 'iterable',
        'batches': self._num_batches,
        'checksum': self._checksum,
        'seed': self._seed,
        'num_shards': self._share.num_shards,
        'shard_id': self._share.shard_id,
        'iterator': self._state,
    }

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Goes to a saved position, as exactly as `promise` says.

    Raises:
      ValueError: for a position of another kind of reader or of another number
        of hosts, or (unless told to continue) for data that changed.
    """
    saved = (state['kind'], state.get('num_shards'))
    own = ('iterable', self._share.num_shards)
    if saved != own:
      raise ValueError(
          f'the saved data position does not fit {self._source}:\n'
          f'  saved: a {saved[0]!r} reader on {saved[1]} host(s)\n'
          f"  now:   an 'iterable' reader on {own[1]} host(s)\n"
          'Expected the same. Use the data and the number of hosts of that '
          'run, or restore without the data state.'
      )
    self._seed = state['seed']
    self._start(self._make_iterable(self._seed))
    if self._state_methods is not None and state['iterator'] is not None:
      getattr(self._iterator, self._state_methods[1])(state['iterator'])
      self._state = state['iterator']
      self._num_batches = state['batches']
      self._checksum = state['checksum']
      return
    self._read_again(state)

  def _read_again(self, state: Mapping[str, Any]) -> None:
    batch = None
    while self._num_batches < state['batches']:
      batch = next(self)
    reader_protocol.check_last_batch(
        batch,
        state=state,
        source=self._source,
        on_changed_data=self._on_changed_data,
    )


def _is_tf_dataset(dataset: Any) -> bool:
  """Whether it is a tf.data pipeline; imports nothing to find out."""
  return any(
      kind.__module__.startswith('tensorflow.')
      for kind in type(dataset).__mro__
  ) and hasattr(dataset, 'element_spec')


def _state_methods(iterator: Any) -> tuple[str, str] | None:
  for names in _STATE_METHODS:
    if all(callable(getattr(iterator, name, None)) for name in names):
      return names
  return None


def _as_batch(element: Any, *, source: str) -> reader_protocol.Batch:
  if not isinstance(element, Mapping):
    raise TypeError(
        f'{source} gave a batch of type {type(element).__name__}: expected a '
        "mapping of features to arrays, such as {'encoder_input_tokens': ...}. "
        'Return such batches from get_dataset_fn.'
    )
  return {name: np.asarray(array) for name, array in element.items()}


def _check_rows(reader: Any, *, data_layout: Any, source: str) -> None:
  expected = data_layout.batch_size // data_layout.num_shards
  rows = {
      name: shape[0] if shape else None
      for name, (shape, _) in reader.element_spec.items()
  }
  # A pipeline may leave its number of rows open.
  if set(rows.values()) - {expected}:
    raise ValueError(
        f'{source} gives batches of {rows} rows: expected {expected} in each '
        f'feature, batch_size {data_layout.batch_size} over '
        f'{data_layout.num_shards} host(s). Batch by cfg.batch_size // '
        'num_shards, with drop_remainder=True.'
    )
