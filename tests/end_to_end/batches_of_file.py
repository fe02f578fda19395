# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A user's data source: batches that lie in a file, one after the other."""

import dataclasses
import functools

import numpy as np

from t5wild.data import custom_reader
from t5wild.data import live_reader
from t5wild.data import synthetic


@dataclasses.dataclass(frozen=True, kw_only=True)
class FileConfig(synthetic.SyntheticConfig):
  """Batches of a file of numpy's, each feature [batches, rows, ...]."""

  path: str = ''

  def make_reader(self, *, data_layout, **unused):
    """A reader of this host's rows."""
    del unused
    make = functools.partial(_batches, self.path, data_layout)
    return custom_reader.IterableReader(
        make,
        make(0),
        source=self.path,
        seed=0,
        share=live_reader.Share(
            by='files',
            shard_id=data_layout.shard_id,
            num_shards=data_layout.num_shards,
        ),
    )


def write(path, *, count=40, nan_at=None, spike_at=None) -> None:
  """Writes batches that are soon learnt; batches are counted from 1.

  Args:
    path: of the file.
    count: batches.
    nan_at: batch with a loss weight that is no number.
    spike_at: batch of tokens that no other batch has.
  """
  cfg = synthetic.SyntheticConfig(
      batch_size=8, task_feature_lengths={'inputs': 32, 'targets': 16},
      vocab_size=20,
  )  # fmt: skip
  batches = [synthetic.make_batch(cfg, index=index) for index in range(count)]
  found = {name: np.stack([b[name] for b in batches]) for name in batches[0]}
  weights = found['decoder_loss_weights'].astype(np.float32)
  if nan_at is not None:
    weights[nan_at - 1, 3, 2] = np.nan
  if spike_at is not None:
    for name in found:
      if name.endswith('tokens'):
        found[name][spike_at - 1] += 200
  np.savez(path, **(found | {'decoder_loss_weights': weights}))


def _batches(path, data_layout, seed):
  del seed
  found = dict(np.load(path))
  count, rows = found['decoder_target_tokens'].shape[:2]
  share = rows // data_layout.num_shards
  own = slice(
      data_layout.shard_id * share, (data_layout.shard_id + 1) * share
  )
  return [
      {name: array[index, own] for name, array in found.items()}
      for index in range(count)
  ]
