# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Gradient norms by layer group."""

import numpy as np

from t5wild.reports import history as history_lib
from t5wild.reports import layer_groups


def _history(values):
  steps = np.array([10, 20])
  columns = {
      name: history_lib.Column(
          name=name, unit='', steps=steps, seconds=steps * 1.0,
          values=np.array(found),
      )
      for name, found in values.items()
  }  # fmt: skip
  return history_lib.History('x', columns, 'records')


def test_a_group_s_norm_is_that_of_all_its_values():
  rms = 'train/weight_gradient_rms/encoder/layers_3/mlp'
  history = _history({f'{rms}/wi': [3.0, 1.0], f'{rms}/wo': [4.0, 0.0]})
  counts = {'encoder/layers_3/mlp/wi': 4, 'encoder/layers_3/mlp/wo': 9}
  norms = layer_groups.gradient_norms(history, parameter_counts=counts)
  assert norms.title == 'Gradient norm by layer group'
  _, values = norms.by_group['encoder/layers_3']
  np.testing.assert_allclose(values, [np.sqrt(4 * 9 + 9 * 16), 2.0])


def test_without_sizes_the_title_says_what_is_shown():
  rms = 'train/weight_gradient_rms/encoder/layers_3/mlp'
  history = _history({f'{rms}/wi': [3.0, 1.0], f'{rms}/wo': [4.0, 0.0]})
  norms = layer_groups.gradient_norms(history, parameter_counts={})
  assert 'RMS, the largest of its parameters' in norms.title
  assert norms.by_group['encoder/layers_3'][1].tolist() == [4.0, 1.0]


def test_recorded_groups_come_as_they_are_and_in_order_of_layers():
  name = 'train/gradient_norm/'
  history = _history({
      f'{name}layers_10': [1.0, 2.0], f'{name}layers_9': [3.0, 4.0],
      f'{name}global': [9.0, 9.0],
  })  # fmt: skip
  norms = layer_groups.gradient_norms(history, parameter_counts={})
  assert list(norms.by_group) == ['layers_9', 'layers_10']
