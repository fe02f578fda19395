# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Fewer points, and no spike hidden."""

import math

from hypothesis import given
from hypothesis import strategies
import numpy as np
import pytest

from t5wild.reports import downsample

_VALUES = strategies.lists(
    strategies.floats(-1e6, 1e6)
    | strategies.sampled_from([math.nan, math.inf, -math.inf]),
    min_size=1,
    max_size=300,
)


@given(_VALUES, strategies.integers(1, 40), strategies.integers(1, 1000))
def test_the_extremes_and_ends_stay_and_nothing_is_invented(
    values, num_buckets, stride
):
  values = np.array(values)
  steps = np.arange(len(values)) * stride
  curve = downsample.curve(steps, values, num_buckets=num_buckets)
  finite = np.isfinite(values)
  original = set(zip(steps[finite].tolist(), values[finite].tolist(),
                     strict=True))  # fmt: skip
  kept = list(zip(curve.steps.tolist(), curve.values.tolist(), strict=True))
  assert set(kept) <= original
  assert curve.steps.tolist() == sorted(set(curve.steps.tolist()))
  assert len(kept) <= 2 * num_buckets + 2
  if finite.any():
    assert curve.values.max() == values[finite].max()
    assert curve.values.min() == values[finite].min()
    assert curve.steps[0] == steps[finite][0]
    assert curve.steps[-1] == steps[finite][-1]
  assert curve.num_not_finite == (~finite).sum()
  if not finite.all():
    bad = steps[~finite]
    assert curve.not_finite[0][0] == bad[0]
    assert curve.not_finite[-1][0] == bad[-1]


@pytest.mark.parametrize('place', [0, 1, 4999, 50_000, 99_998, 99_999])
def test_a_spike_of_one_step_stays_wherever_it_is(place):
  values = np.ones(100_000)
  values[place] = 7.0
  curve = downsample.curve(np.arange(100_000), values, num_buckets=400)
  assert curve.values[curve.steps == place].tolist() == [7.0]
  assert len(curve.steps) <= 802


def test_means_are_those_of_the_buckets():
  steps = np.arange(1000)
  values = np.random.default_rng(0).normal(size=1000)
  curve = downsample.curve(steps, values, num_buckets=10)
  buckets = np.minimum(steps * 10 // 999, 9)
  expected = [values[buckets == b].mean() for b in range(10)]
  np.testing.assert_allclose(curve.means, expected)


def test_a_bucket_of_the_map_shows_its_largest_value():
  steps = np.array([1, 2, 3, 4, 5, 6])
  values = np.array([1.0, 9.0, 2.0, math.nan, math.inf, 3.0])
  edges = np.array([0.0, 3.0, 4.0, 6.0])
  largest = downsample.extreme_by_bucket(steps, values, edges)
  np.testing.assert_array_equal(largest, [9.0, math.nan, math.inf])


def test_no_buckets_are_refused():
  with pytest.raises(ValueError, match='num_buckets = 0; expected at least 1'):
    downsample.curve(np.arange(3), np.ones(3), num_buckets=0)
