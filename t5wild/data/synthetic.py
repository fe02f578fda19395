# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Seeded random batches for benchmarks and tests: no text, no TensorFlow.

Batch i is a function of (seed, i) alone, so any position is reached at once,
and its rows are the same for any number of hosts.
"""

from collections.abc import Callable, Iterator, Mapping
import dataclasses
from typing import Any

import numpy as np

from t5wild.data import feature_converters
from t5wild.data import reader_protocol


@dataclasses.dataclass(frozen=True, kw_only=True)
class SyntheticConfig:
  """Random encoder-decoder batches; stands where a `DatasetConfig` does.

  Every row is full: no padding. With `segments` above 1 a row is packed of as
  many segments of about equal length, with segment ids and positions.
  """

  batch_size: int
  task_feature_lengths: Mapping[str, int]
  vocab_size: int
  seed: int = 0
  segments: int = 1

  def __post_init__(self):
    """Refuses what no batch could be made of."""
    shortest = min(self.task_feature_lengths.values())
    if not 1 <= self.segments <= shortest:
      raise ValueError(
          f'segments is {self.segments}: expected 1 to {shortest}, the '
          'shortest length. Set SyntheticConfig.segments within it.'
      )
    if self.vocab_size < 3:
      raise ValueError(
          f'vocab_size is {self.vocab_size}: expected at least 3 (padding, end '
          "of sequence, a token). Set it to the model's."
      )

  def make_reader(
      self,
      *,
      data_layout: Any,
      feature_converter_cls: Callable[..., Any] | None = None,
      start_batch: int = 0,
  ) -> 'SyntheticReader':
    """Makes the reader of this host's rows; the converter is not used."""
    del feature_converter_cls
    return SyntheticReader(
        dataclasses.replace(self, batch_size=data_layout.batch_size),
        shard_id=data_layout.shard_id,
        num_shards=data_layout.num_shards,
        start_batch=start_batch,
    )


class SyntheticReader:
  """Endless random batches; see `reader_protocol.Reader`."""

  is_exact = True

  def __init__(
      self,
      config: SyntheticConfig,
      *,
      shard_id: int = 0,
      num_shards: int = 1,
      start_batch: int = 0,
  ):
    """Starts at a batch; this host has an equal share of its rows."""
    if config.batch_size % num_shards:
      raise ValueError(
          f'batch_size {config.batch_size} does not divide over {num_shards} '
          f'hosts: expected a multiple of {num_shards}. Set batch_size to one.'
      )
    self._config = config
    self._shard_id = shard_id
    self._num_shards = num_shards
    self._num_batches = start_batch
    self.element_spec = {
        name: (array.shape, array.dtype)
        for name, array in self._rows(start_batch).items()
    }
    self.promise = (
        f'Synthetic batches are a function of seed {config.seed} and their '
        'number: a resumed run gets the same ones on any number of hosts.'
    )

  def __iter__(self) -> Iterator[reader_protocol.Batch]:
    """Returns itself."""
    return self

  def __next__(self) -> reader_protocol.Batch:
    """Returns this host's rows of the next batch."""
    batch = self._rows(self._num_batches)
    self._num_batches += 1
    return batch

  def state_dict(self) -> dict[str, Any]:
    """Position after the batches handed out."""
    return {
        'kind': 'synthetic',
        'batches': self._num_batches,
        'seed': self._config.seed,
    }

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Goes to a saved position.

    Raises:
      ValueError: for a position of another kind of reader or another seed.
    """
    saved = (state['kind'], state['seed'])
    own = ('synthetic', self._config.seed)
    if saved != own:
      raise ValueError(
          'the saved data position does not fit synthetic batches:\n'
          f'  saved: kind {saved[0]!r}, seed {saved[1]}\n'
          f'  now:   kind {own[0]!r}, seed {own[1]}\n'
          'Expected the same. Use the data set and seed of that run, or '
          'restore without the data state.'
      )
    self._num_batches = state['batches']

  def _rows(self, index: int) -> reader_protocol.Batch:
    return reader_protocol.slice_rows(
        make_batch(self._config, index=index),
        shard_id=self._shard_id,
        num_shards=self._num_shards,
    )


def make_batch(config: SyntheticConfig, *, index: int) -> reader_protocol.Batch:
  """Makes global batch `index`: int32 [batch, length] features."""
  key = np.array([config.seed, index], np.uint64)
  generator = np.random.Generator(np.random.Philox(key=key))
  shape = {
      name: (config.batch_size, length)
      for name, length in config.task_feature_lengths.items()
  }
  tokens = {
      name: generator.integers(2, config.vocab_size, shape[name], np.int32)
      for name in ('inputs', 'targets')
  }
  segments = {
      name: _segments(shape[name], count=config.segments) for name in tokens
  }
  batch = {
      'encoder_input_tokens': tokens['inputs'],
      'decoder_target_tokens': tokens['targets'],
      'decoder_input_tokens': feature_converters.shift_right(
          tokens['targets'], segment_ids=segments['targets'][0]
      ),
      'decoder_loss_weights': np.ones(shape['targets'], np.int32),
  }
  if config.segments == 1:
    return batch
  return {
      **batch,
      'encoder_segment_ids': segments['inputs'][0],
      'decoder_segment_ids': segments['targets'][0],
      'encoder_positions': segments['inputs'][1],
      'decoder_positions': segments['targets'][1],
  }


def _segments(
    shape: tuple[int, int], *, count: int
) -> tuple[np.ndarray, np.ndarray]:
  """(segment ids from 1, positions within them), int32 [batch, length]."""
  ids = np.arange(shape[1], dtype=np.int32) * count // shape[1] + 1
  starts = np.searchsorted(ids, ids)  # where each token's segment begins
  positions = np.arange(shape[1], dtype=np.int32) - starts.astype(np.int32)
  return (
      np.broadcast_to(ids, shape).copy(),
      np.broadcast_to(positions, shape).copy(),
  )
