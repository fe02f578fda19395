# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A reader over a live tf.data pipeline that resumes with the same bits.

Every so many batches it keeps a snapshot of the tf.data iterator. A saved
position is the newest snapshot and the number of batches since; on the way
back those few are read again, and the last one's checksum must agree. Where all
are read again, the first one's must too: other data are told at once.
TensorFlow is imported when a reader is made.
"""

from collections.abc import Callable, Mapping
import dataclasses
import logging
import threading
from typing import Any

import numpy as np

from t5wild.data import pipelines
from t5wild.data import reader_protocol
from t5wild.partitioning import distributed

# A snapshot holds the shuffle buffers; beyond this size it is not worth it.
_MAX_SNAPSHOT_BYTES = 256 << 20
_MEET_SECONDS = 300  # between the first and the last to have a first batch

@dataclasses.dataclass(frozen=True, kw_only=True)
class Share:
  """Which rows of the stream are this host's, and how the stream is divided.

  With `by` 'rows' every host reads the whole stream and keeps its rows of each
  batch; with 'files' the stream is this host's own.
  """

  by: str
  shard_id: int
  num_shards: int


class LiveReader:
  """Batches of a tf.data pipeline; see `reader_protocol.Reader`."""

  is_exact = True

  def __init__(
      self,
      make_dataset: Callable[[int], Any],
      *,
      source: str,
      seed: int,
      seed_was_drawn: bool,
      share: Share,
      snapshot_period: int | None = 200,
      on_changed_data: str = 'fail',
  ):
    """Builds the pipeline; nothing is read yet.

    Args:
      make_dataset: seed -> pipeline of batches, the same for the same seed.
      source: what is read, for messages.
      seed: seed of the order and of the objective.
      seed_was_drawn: whether no seed was asked for and this one was drawn.
      share: this host's part.
      snapshot_period: batches between snapshots, None for none: a position is
        then found again by reading from the start.
      on_changed_data: 'fail' or 'continue', for a resume that meets other
        data.
    """
    self._make_dataset = make_dataset
    self.source = self._source = source
    self._seed = self._given_seed = seed
    self._seed_was_drawn = seed_was_drawn
    self._share = share
    self._snapshot_period = snapshot_period
    self._on_changed_data = on_changed_data
    self._lock = threading.Lock()
    self._has_met = False
    self._iterator: pipelines.PipelineIterator | None = None
    self._start()
    self.element_spec = self._local_spec()
    self.promise = self._make_promise()

  def _start(self) -> None:
    """Goes to the first batch."""
    if self._iterator is not None:
      self._iterator.close()
    self._dataset = self._make_dataset(self._seed)
    self._iterator = pipelines.PipelineIterator(self._dataset)
    self._num_batches = 0
    self._checksum = 0
    self._first_checksum: int | None = None
    self._snapshot = b''
    self._snapshot_batches = 0
    if self._snapshot_period is not None:
      self._try_snapshot()  # finds out whether this pipeline allows it
      self._snapshot = b''

  def _local_spec(self) -> reader_protocol.ElementSpec:
    divide = self._share.num_shards if self._share.by == 'rows' else 1
    return {
        name: (
            (spec.shape[0] // divide, *spec.shape[1:]),
            np.dtype(spec.dtype.as_numpy_dtype),
        )
        for name, spec in self._dataset.element_spec.items()
    }

  def _make_promise(self) -> str:
    hosts = (
        'any number of hosts'
        if self._share.by == 'rows'
        else f'{self._share.num_shards} host(s)'
    )
    how = (
        'its first batches are read again'
        if self._snapshot_period is None
        else 'its place is kept in a snapshot every '
        f'{self._snapshot_period} batches'
    )
    seed = f'seed {self._seed}'
    if self._seed_was_drawn:
      seed = f'no seed was given, so {self._seed} was drawn and is saved'
    elif self._seed != self._given_seed:
      seed += f' as it was saved, not {self._given_seed}'
    return (
        f'A run resumed on {hosts} gets the same batches of {self._source}, '
        f'bit for bit ({seed}; {how}, and the last batch is checked).'
    )

  def __iter__(self) -> 'LiveReader':
    """Returns itself."""
    return self

  def __next__(self) -> reader_protocol.Batch:
    """Returns this host's rows of the next batch."""
    with self._lock:
      self._snapshot_if_due()
      batch = self._read()
      checksum = self._checksum
    if not self._has_met:
      self._has_met = True
      if self._share.by == 'rows':
        _check_alike(checksum, source=self._source)
    return self._own_rows(batch)

  def close(self) -> None:
    """Ends the pipeline; no batch comes after."""
    self._iterator.close()

  def _snapshot_if_due(self) -> None:
    # Before a batch, never after: the position then lies at least one batch
    # after the snapshot, and that batch is what a resume checks.
    if self._snapshot_period is None or not self._num_batches:
      return
    if self._num_batches - self._snapshot_batches >= self._snapshot_period:
      self._try_snapshot()

  def _read(self) -> reader_protocol.Batch:
    batch = next(self._iterator)
    if not self._num_batches:
      _check_not_empty(batch, source=self._source)
    self._num_batches += 1
    self._checksum = reader_protocol.checksum(batch)
    if self._num_batches == 1:
      self._first_checksum = self._checksum
    return batch

  def _own_rows(self, batch: reader_protocol.Batch) -> reader_protocol.Batch:
    if self._share.by != 'rows' or self._share.num_shards == 1:
      return batch
    return reader_protocol.slice_rows(
        batch,
        shard_id=self._share.shard_id,
        num_shards=self._share.num_shards,
    )

  def _try_snapshot(self) -> None:
    """Takes a snapshot, or says why there are none from now on."""
    try:
      snapshot = self._iterator.save()
    except Exception as error:  # noqa: BLE001 -- TensorFlow's many reasons
      self._no_snapshots(f'tf.data cannot save it: {str(error)[:200]}')
      return
    if len(snapshot) > _MAX_SNAPSHOT_BYTES:
      self._no_snapshots(f'one takes {len(snapshot)} bytes')
      return
    self._snapshot = snapshot
    self._snapshot_batches = self._num_batches

  def _no_snapshots(self, reason: str) -> None:
    self._snapshot_period = None
    logging.warning(
        'No snapshots of the position in %s (%s): a resumed run reads the '
        'batches since the last one again, which is as exact and slower.',
        self._source,
        reason,
    )

  def state_dict(self) -> dict[str, Any]:
    """Position after the batches handed out; see `reader_protocol.Reader`."""
    with self._lock:
      return {
          'kind': 'live',
          'source': self._source,
          'batches': self._num_batches,
          'checksum': self._checksum,
          'first_checksum': self._first_checksum,
          'seed': self._seed,
          'shard_by': self._share.by,
          'num_shards': self._share.num_shards,
          'shard_id': self._share.shard_id,
          'snapshot': self._snapshot,
          'snapshot_batches': self._snapshot_batches,
      }

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Goes to a saved position, and checks that it is the same one.

    Raises:
      ValueError: for a position of another kind of reader or of another
        number of hosts, or (unless told to continue) for data that changed.
    """
    self._check_state(state)
    with self._lock:
      if self._num_batches or self._seed != state['seed']:
        self._seed = state['seed']
        self.promise = self._make_promise()
        self._start()
      if state.get('source', self._source) != self._source:
        self._look_at_first_batch(state)
      self._restore_snapshot(state)
      self._read_again(state)

  def _check_state(self, state: Mapping[str, Any]) -> None:
    kind = state['kind']
    if kind != 'live':
      raise ValueError(
          f'the saved data position is of a {kind!r} reader: expected one of '
          "a live seqio task ('live'). Train on the data set of that run, or "
          'restore without the data state.'
      )
    saved = (state['shard_by'], state['num_shards'])
    own = (self._share.by, self._share.num_shards)
    if saved[0] != own[0] or (own[0] == 'files' and saved != own):
      raise ValueError(
          'the saved data position does not fit this run:\n'
          f'  saved: shard_by {saved[0]!r}, {saved[1]} host(s)\n'
          f'  now:   shard_by {own[0]!r}, {own[1]} host(s)\n'
          "Expected equal numbers of hosts ('files'), or 'rows' in both runs, "
          'which fits any number. Use as many hosts, or restore without the '
          'data state.'
      )

  def _look_at_first_batch(self, state: Mapping[str, Any]) -> None:
    """Refuses another task's data before its snapshot is tried.

    A task of another name may well be the same data.
    """
    if state['batches']:
      self._check_first_batch(self._read(), state)
      self._start()

  def _check_first_batch(
      self, batch: reader_protocol.Batch, state: Mapping[str, Any]
  ) -> None:
    expected = state.get('first_checksum')  # older checkpoints have none
    if expected is not None and self._on_changed_data == 'fail':
      reader_protocol.check_same_batch(
          batch, expected=expected, index=0, source=self._source
      )

  def _restore_snapshot(self, state: Mapping[str, Any]) -> None:
    if not state['snapshot']:
      return
    try:
      self._iterator.load(state['snapshot'])
    except Exception as error:  # noqa: BLE001 -- TensorFlow's many reasons
      logging.warning(
          'The snapshot of the position in %s does not load (%s): reading %d '
          'batches again instead.',
          self._source,
          str(error)[:200],
          state['batches'],
      )
      self._start()
      return
    self._num_batches = state['snapshot_batches']
    self._first_checksum = state.get('first_checksum')
    self._snapshot = state['snapshot']
    self._snapshot_batches = state['snapshot_batches']

  def _read_again(self, state: Mapping[str, Any]) -> None:
    batch = None
    while self._num_batches < state['batches']:
      batch = self._read()
      if self._num_batches == 1:
        self._check_first_batch(batch, state)
    reader_protocol.check_last_batch(
        batch,
        state=state,
        source=self._source,
        on_changed_data=self._on_changed_data,
    )


def _check_alike(checksum: int, *, source: str) -> None:
  """Compares the first batch, of which each process keeps its rows.

  Raises:
    reader_protocol.OtherDataError: On all, where one has read another.
  """
  if distributed.process_count() == 1:
    return
  read = distributed.meet(
      'first batch of the data', value=checksum, timeout_seconds=_MEET_SECONDS
  )
  others = [index for index, one in enumerate(read) if one != read[0]]
  if others:
    raise reader_protocol.OtherDataError(
        f'processes {others} read another first batch of {source} than process '
        '0: each makes all of it and keeps its own rows, so that examples '
        'would be trained on twice or never. Expected the same files, code and '
        'versions on all hosts: read from shared storage, or make the copies '
        'alike.'
    )


def _check_not_empty(batch: reader_protocol.Batch, *, source: str) -> None:
  """Refuses a first batch in which nothing is to be learned."""
  weights = batch.get('decoder_loss_weights')
  if weights is None or np.any(weights):
    return
  lengths = {name: array.shape[1:] for name, array in batch.items()}
  raise ValueError(
      f'the first batch of {source} has no target token: every target is '
      f'padding, at lengths {lengths}. Expected some; the lengths cut '
      'everything off, or the task gives empty targets. Raise '
      'TASK_FEATURE_LENGTHS["targets"], or look at the task\'s output.'
  )
