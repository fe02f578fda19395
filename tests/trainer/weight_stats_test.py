# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Statistics of parameters against numpy."""

import types

import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.trainer import weight_stats

OLD = np.array([[1.0, -2.0], [0.0, 4.0]], np.float32)
NEW = np.array([[1.5, -2.0], [0.5, 3.0]], np.float32)
GRADIENT = np.array([[3.0, 0.0], [0.0, 4.0]], np.float32)


def _values():
  def state(array):
    return types.SimpleNamespace(params={'a': {'kernel': jnp.asarray(array)}})

  metrics = weight_stats.WeightMetricsComputer().compute_metrics(
      {'a': {'kernel': jnp.asarray(GRADIENT)}}, state(OLD), state(NEW)
  )
  return {
      name: float(metric.replace_steps(1).compute())
      for name, metric in metrics.items()
  }


def _rms(x):
  return np.sqrt(np.mean(np.square(x)))


def test_names_are_t5x_names():
  assert sorted(_values()) == [
      'weight_gradient_norm',
      'weight_gradient_rms/a/kernel',
      'weight_max/a/kernel',
      'weight_rms/a/kernel',
      'weight_update_divided_by_weight_rms/a/kernel',
      'weight_update_rms/a/kernel',
  ]


@pytest.mark.parametrize(
    ('name', 'expected'),
    [
        ('weight_gradient_norm', 5.0),
        ('weight_gradient_rms/a/kernel', _rms(GRADIENT)),
        ('weight_max/a/kernel', 3.0),
        ('weight_rms/a/kernel', _rms(NEW)),
        ('weight_update_rms/a/kernel', _rms(NEW - OLD)),
        # The weight that is zero is left out, not divided by.
        (
            'weight_update_divided_by_weight_rms/a/kernel',
            _rms(np.array([0.5, 0.0, -0.25])),
        ),
    ],
)
def test_statistics(name, expected):
  assert _values()[name] == pytest.approx(expected, rel=1e-6)
