# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The metrics of a batch, counted by hand."""

from jax import numpy as jnp
import numpy as np
import pytest

from t5wild import metrics as metrics_lib
from t5wild.models import base_metrics

_TARGETS = np.asarray([[3, 1, 2, 0], [2, 1, 0, 0]])
_MASK = np.asarray([[1, 1, 1, 0], [1, 1, 0, 0]])


def _make_logits(predictions):
  return jnp.asarray(np.eye(5)[np.asarray(predictions)], jnp.float32)


def _compute(metrics):
  metrics = metrics_lib.set_time_metrics_duration(metrics, 2.0)
  return {name: float(metric.compute()) for name, metric in metrics.items()}


def test_metrics_of_a_batch():
  computed = _compute(
      base_metrics.compute_base_metrics(
          _make_logits([[3, 1, 4, 0], [4, 1, 0, 0]]),
          jnp.asarray(_TARGETS),
          jnp.asarray(_MASK),
          jnp.asarray(10.0),
          jnp.asarray(2.0),
          {'encoder': jnp.asarray([[1, 2, 0], [1, 1, 1]]), 'decoder': _MASK},
      )
  )
  num_devices = 8
  expected = {
      'accuracy': 3 / 5,
      'loss': 10.0,
      'loss_per_nonpadding_target_token': 2.0,
      'loss_per_all_target_tokens': 10 / 8,
      'timing/seqs_per_second': 1.0,
      'timing/seqs_per_second_per_core': 1 / num_devices,
      'timing/steps_per_second': 0.5,
      'timing/seconds': 2.0,
      'timing/seqs': 2,
      'timing/target_tokens_per_second': 4.0,
      'timing/target_tokens_per_second_per_core': 4 / num_devices,
      'non_padding_fraction/loss_weights': 5 / 8,
      'non_padding_fraction/encoder': 5 / 6,
      'non_padding_fraction/decoder': 5 / 8,
      'non_padding_fraction/overall': 10 / 14,
      'effective_batch_size/encoder': 3,
      'effective_batch_size/decoder': 2,
      'z_loss': 2.0,
      'z_loss_per_all_target_tokens': 2 / 8,
      'cross_ent_loss': 8.0,
      'cross_ent_loss_per_all_target_tokens': 1.0,
  }
  assert set(computed) == set(expected)
  for name, value in expected.items():
    np.testing.assert_allclose(computed[name], value, rtol=1e-6, err_msg=name)


def test_without_a_mask_every_target_counts():
  computed = _compute(
      base_metrics.compute_base_metrics(
          _make_logits(_TARGETS), jnp.asarray(_TARGETS), None, jnp.asarray(4.0)
      )
  )
  assert computed['accuracy'] == 1.0
  assert computed['loss_per_nonpadding_target_token'] == 0.5
  assert computed['non_padding_fraction/loss_weights'] == 1.0
  assert 'z_loss' not in computed
  assert 'non_padding_fraction/overall' not in computed


def test_features_of_no_length_are_left_out():
  metrics = base_metrics.compute_base_metrics(
      _make_logits(_TARGETS),
      jnp.asarray(_TARGETS),
      None,
      jnp.asarray(4.0),
      segment_ids={
          'decoder': jnp.asarray(_MASK),
          'images': jnp.zeros((2, 0), jnp.int32),
          'absent': None,
      },
  )
  assert 'effective_batch_size/decoder' in metrics
  assert 'effective_batch_size/images' not in metrics
  assert 'effective_batch_size/absent' not in metrics


@pytest.mark.parametrize(
    ('segment_ids', 'expected'),
    [
        ([[1, 1, 3, 3, 0, 0], [2, 2, 2, 2, 2, 2], [2, 7, 7, 7, 7, 0]], 5),
        ([[0, 0, 0]], 0),
        ([[1, 2, 3]], 3),
        ([[1, 1, 0]], 1),
    ],
)
def test_packed_examples_are_counted(segment_ids, expected):
  ids = jnp.asarray(segment_ids)
  assert base_metrics.count_packed_examples(ids) == expected
  is_single = len(set(segment_ids[0]) - {0}) <= 1 and len(segment_ids) == 1
  if is_single:
    assert base_metrics.count_packed_examples(ids != 0) == expected


def test_weighted_accuracy_sums_the_weights_of_hits():
  logits = _make_logits([[3, 1, 4, 0], [4, 1, 0, 0]])
  targets = jnp.asarray(_TARGETS)
  assert base_metrics.compute_weighted_accuracy(logits, targets) == 6
  assert (
      base_metrics.compute_weighted_accuracy(
          logits, targets, jnp.asarray(_MASK * 0.5)
      )
      == 1.5
  )
  with pytest.raises(ValueError, match=r'\(2, 4, 5\)[^()]*\(2, 3\)'):
    base_metrics.compute_weighted_accuracy(logits, targets[:, :3])
