# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Checksums see every change; rows are divided without loss."""

import numpy as np
import pytest

from t5wild.data import reader_protocol


def batch():
  return {
      'a': np.arange(24, dtype=np.int32).reshape(6, 4),
      'b': np.ones((6, 2), np.float32),
  }


def test_checksum_does_not_depend_on_the_order_of_features():
  turned = dict(reversed(batch().items()))
  assert reader_protocol.checksum(turned) == reader_protocol.checksum(batch())


def test_checksum_sees_one_changed_value():
  changed = batch()
  changed['a'][3, 2] += 1
  assert reader_protocol.checksum(changed) != reader_protocol.checksum(batch())


def test_a_batch_that_changed_is_refused_with_both_sides():
  with pytest.raises(ValueError, match='(?s)batch 7 of x.*saved.*now.*Restore'):
    reader_protocol.check_same_batch(
        batch(), expected=1, index=7, source='x'
    )


@pytest.mark.parametrize('num_shards', [1, 2, 3, 6])
def test_hosts_share_the_rows_in_order_without_loss(num_shards):
  parts = [
      reader_protocol.slice_rows(
          batch(), shard_id=index, num_shards=num_shards
      )
      for index in range(num_shards)
  ]
  for name, array in batch().items():
    whole = np.concatenate([part[name] for part in parts])
    np.testing.assert_array_equal(whole, array)
