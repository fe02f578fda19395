# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Rotary positions tell distances, and slow down for long texts."""

import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.networks import rotary

FREQUENCIES = rotary.Rotary(wavelength=100.0).frequencies


def test_products_of_rotated_heads_depend_on_their_distance_alone():
  random = np.random.RandomState(0)
  query, key = random.standard_normal((2, 1, 1, 1, 8)).astype(np.float32)

  def product(at, other):
    return jnp.sum(
        rotary.rotate(query, jnp.array([[at]]), FREQUENCIES(4))
        * rotary.rotate(key, jnp.array([[other]]), FREQUENCIES(4))
    )

  np.testing.assert_allclose(product(0, 0), np.sum(query * key), rtol=1e-6)
  np.testing.assert_allclose(product(12, 9), product(5, 2), rtol=1e-4)
  assert abs(product(5, 2) - product(2, 5)) > 0.1


def test_pairs_of_features_turn_at_their_own_speed():
  x = np.array([1.0, 1.0, 0.0, 0.0], np.float32).reshape(1, 1, 1, 4)
  turned = rotary.rotate(x, jnp.array([[1]]), FREQUENCIES(2))
  expected = [np.cos(1.0), np.cos(0.1), np.sin(1.0), np.sin(0.1)]
  np.testing.assert_allclose(turned[0, 0, 0], expected, rtol=1e-6)


def test_slowed_pairs_turn_as_many_times_as_slowly():
  slow = rotary.Rotary(wavelength=100.0, factor=8.0).frequencies(4)
  np.testing.assert_allclose(slow, FREQUENCIES(4) / 8.0, rtol=1e-6)


@pytest.mark.parametrize(
    ('pair', 'share'),
    # With a base of 10**4 pair i of 4 comes round in 2 pi 10**i positions: 159,
    # 15.9, 1.59 and 0.159 times in 1000; between 4 times and 1, in part.
    [(0, 1.0), (1, 1.0), (2, (1.5915494 - 1.0) / 3.0), (3, 0.0)],
)
def test_only_pairs_that_never_came_round_are_slowed_as_in_llama(pair, share):
  plain = rotary.Rotary().frequencies(4)[pair]
  slow = rotary.Rotary(factor=8.0, original_length=1000).frequencies(4)[pair]
  expected = plain * (share + (1.0 - share) / 8.0)
  np.testing.assert_allclose(slow, expected, rtol=1e-5)
