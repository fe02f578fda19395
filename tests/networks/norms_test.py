# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Norms keep their formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.networks import norms

X = np.random.RandomState(0).normal(1.0, 2.0, (2, 3, 8)).astype(np.float32)
SCALE = np.linspace(0.5, 1.5, 8).astype(np.float32)


@pytest.mark.parametrize('scale_from_one', [False, True])
def test_rms_norm_divides_by_the_root_mean_square(scale_from_one):
  norm = norms.RmsNorm(scale_from_one=scale_from_one)
  y, variables = norm.init_with_output(jax.random.PRNGKey(0), X)
  root = np.sqrt(np.mean(np.square(X), axis=-1, keepdims=True))
  np.testing.assert_allclose(y, X / root, rtol=1e-5)
  start = 0.0 if scale_from_one else 1.0
  np.testing.assert_array_equal(variables['params']['scale'], np.full(8, start))
  y = norm.apply({'params': {'scale': SCALE}}, X)
  scale = SCALE + scale_from_one
  np.testing.assert_allclose(y, X / root * scale, rtol=1e-5)


@pytest.mark.parametrize('use_bias', [False, True])
def test_layer_norm_has_the_mean_of_its_bias_and_its_scale_for_deviation(
    use_bias,
):
  norm = norms.LayerNorm(use_bias=use_bias)
  y, variables = norm.init_with_output(jax.random.PRNGKey(0), X)
  np.testing.assert_allclose(y.mean(-1), np.zeros((2, 3)), atol=1e-6)
  np.testing.assert_allclose(y.std(-1), np.ones((2, 3)), rtol=1e-5)
  params = {'scale': SCALE} | ({'bias': 2 * SCALE} if use_bias else {})
  assert set(variables['params']) == set(params)
  scaled = norm.apply({'params': params}, X)
  np.testing.assert_allclose(
      scaled, y * SCALE + params.get('bias', 0.0), rtol=1e-5, atol=1e-6
  )


def test_norms_compute_in_float32_and_give_their_type():
  x = jnp.asarray(X * 1e3, jnp.bfloat16)  # squares that bfloat16 rounds hard
  for norm in (norms.RmsNorm(dtype='bfloat16'), norms.LayerNorm(
      dtype='bfloat16'
  )):
    y, variables = norm.init_with_output(jax.random.PRNGKey(0), x)
    assert y.dtype == jnp.bfloat16
    assert variables['params']['scale'].dtype == jnp.float32
    exact, _ = type(norm)().init_with_output(jax.random.PRNGKey(0), x)
    np.testing.assert_allclose(
        y.astype(jnp.float32), exact, rtol=2**-7, atol=1e-2
    )
