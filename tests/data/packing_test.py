# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Packing loses nothing, overfills no row, and leaves little empty."""

from hypothesis import given
from hypothesis import strategies
import numpy as np
import pytest

from t5wild.data import packing

_LENGTHS = strategies.lists(
    strategies.tuples(strategies.integers(0, 20), strategies.integers(0, 9)),
    max_size=60,
)


@given(lengths=_LENGTHS)
def test_no_row_holds_more_than_it_can_and_none_is_empty(lengths):
  pairs = np.array(lengths, np.int64).reshape(-1, 2)
  rows = packing.assign_rows([pairs[:, 0], pairs[:, 1]], capacities=[20, 9])
  assert rows.shape == (len(lengths),)
  assert set(rows.tolist()) == set(range(int(rows.max(initial=-1)) + 1))
  for feature, capacity in enumerate([20, 9]):
    filled = np.bincount(rows, weights=pairs[:, feature], minlength=1)
    assert filled.max(initial=0) <= capacity


@given(lengths=_LENGTHS)
def test_no_two_rows_could_be_one(lengths):
  sizes = np.array([first for first, _ in lengths], np.int64)
  rows = packing.assign_rows([sizes], capacities=[20])
  filled = np.sort(np.bincount(rows, weights=sizes, minlength=1))
  if rows.max(initial=-1) > 0:
    assert filled[0] + filled[1] > 20


def _heavy_tailed(count: int, *, mean: float, longest: int, seed: int):
  numbers = np.random.default_rng(seed)
  sizes = np.exp(numbers.normal(mean, 1.2, count)).astype(np.int64)
  return np.clip(sizes, 2, longest)


@pytest.mark.parametrize('count', [1000, 5000])
def test_heavy_tailed_sequences_fill_rows(count):
  sizes = _heavy_tailed(count, mean=5.0, longest=1024, seed=0)
  rows = packing.assign_rows([sizes], capacities=[1024])
  assert sizes.sum() / 1024 / (rows.max() + 1) >= 0.97


def test_heavy_tailed_pairs_fill_the_scarcer_feature():
  sizes = np.random.default_rng(1).normal(size=4000)
  inputs = np.clip(np.exp(4.5 + 1.2 * sizes), 2, 512).astype(np.int64)
  noise = np.random.default_rng(2).normal(size=4000)
  targets = np.clip(np.exp(3 + 1.2 * sizes + 0.3 * noise), 1, 114)
  targets = targets.astype(np.int64)
  rows = packing.assign_rows([inputs, targets], capacities=[512, 114])
  fill = max(inputs.sum() / 512, targets.sum() / 114) / (rows.max() + 1)
  assert fill >= 0.96
