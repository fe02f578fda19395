# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Users' data sources: one that fails, one that is slow on one host."""

import dataclasses
import os
import time

from t5wild.data import synthetic

_LAST_BATCH = 15


@dataclasses.dataclass(frozen=True, kw_only=True)
class BrokenConfig(synthetic.SyntheticConfig):
  """Batches that end in an error."""

  batch_size: int = 8
  task_feature_lengths: dict[str, int] = dataclasses.field(
      default_factory=lambda: {'inputs': 32, 'targets': 16}
  )
  vocab_size: int = 384

  def make_reader(self, **arguments):
    """A reader of the same batches that fails after some."""
    return _of_kind(_BrokenReader, super().make_reader(**arguments))


class _BrokenReader(synthetic.SyntheticReader):

  def __next__(self):
    if self._num_batches >= _LAST_BATCH:
      raise RuntimeError('the disk array of shard 7 is gone')
    return super().__next__()


@dataclasses.dataclass(frozen=True, kw_only=True)
class SlowConfig(BrokenConfig):
  """Batches that come late where the variable SLOW says by how much."""

  def make_reader(self, **arguments):
    """A reader of the same batches that waits before each."""
    return _of_kind(_SlowReader, super().make_reader(**arguments))


class _SlowReader(synthetic.SyntheticReader):

  def __next__(self):
    time.sleep(float(os.environ.get('SLOW', '0')))
    return super().__next__()


def _of_kind(kind, reader):
  return kind(
      reader._config, shard_id=reader._shard_id, num_shards=reader._num_shards
  )
