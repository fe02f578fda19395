# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Every example is in the batches once; what fills them up does not count."""

import numpy as np
import pytest
import seqio

from t5wild import data
from t5wild.data import whole_batches
from tests.end_to_end import copy_task

_TEXTS = copy_task.texts('validation')


def _open(*, rows=slice(None), **fields):
  cfg = data.DatasetConfig(**{
      'mixture_or_task_name': copy_task.copy_task(),
      'task_feature_lengths': {'inputs': 16, 'targets': 8},
      'split': 'validation',
      'batch_size': 8,
      'shuffle': True,
      'seed': None,
      **fields,
  })
  return whole_batches.open_whole_batches(
      cfg, rows=rows, feature_converter_cls=seqio.EncDecFeatureConverter
  )['t5wild_copy']


def _texts_of(batches):
  rows = np.concatenate([batch['decoder_target_tokens'] for batch in batches])
  texts = [copy_task.VOCABULARY.decode(row[row > 0].tolist()) for row in rows]
  return [text for text in texts if text]


def test_every_example_is_there_once_in_batches_of_one_size():
  batches = _open()
  for _ in range(2):
    found = list(batches)
    assert [len(b['decoder_target_tokens']) for b in found] == [8, 8]
    assert _texts_of(found) == _TEXTS
  filled_up = found[-1]['decoder_loss_weights'][len(_TEXTS) - 8:]
  assert not filled_up.any()


def test_hosts_have_their_rows_of_one_batch():
  halves = [list(_open(rows=np.arange(4) + 4 * i)) for i in range(2)]
  whole = list(_open())
  for first, second, both in zip(*halves, whole, strict=True):
    np.testing.assert_array_equal(
        np.concatenate(
            [first['encoder_input_tokens'], second['encoder_input_tokens']]
        ),
        both['encoder_input_tokens'],
    )


@pytest.mark.parametrize('pack', [False, True])
def test_targets_are_counted_in_tokens_and_bytes(pack):
  num_bytes = sum(map(len, _TEXTS))
  counts = _open(pack=pack).target_counts()
  assert counts.num_bytes == num_bytes
  assert counts.num_tokens == num_bytes + len(_TEXTS)  # and their ends


def test_without_lengths_they_are_the_longest_there_are():
  spec = _open(task_feature_lengths=None).element_spec
  longest = max(map(len, _TEXTS)) + 1
  assert spec['encoder_input_tokens'][0] == (8, longest)
