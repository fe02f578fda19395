# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Dense layers, dropout and MLP keep their formulas and laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.networks import layers


def normal(*shape, seed=0):
  random = np.random.RandomState(seed)
  return jnp.asarray(random.standard_normal(shape), jnp.float32)


def test_matrix_product_and_gradient_equal_those_of_einsum():
  x, kernel, target = normal(2, 5, 3), normal(3, 4, seed=1), normal(2, 5, 4)

  def total(fn):
    return jax.value_and_grad(
        lambda x, kernel: jnp.sum(fn(x, kernel) * target), (0, 1)
    )(x, kernel)

  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5),
      total(layers.contract_last_axis),
      total(lambda x, kernel: jnp.einsum('bli,io->blo', x, kernel)),
  )


def test_joined_and_separate_kernels_hold_the_same_numbers():
  x = normal(2, 5, 6)
  joined = layers.DenseGeneral((2, 4), kernel_axes=('embed', 'joined_kv'))
  separate = layers.DenseGeneral((2, 4), kernel_axes=('embed', 'heads', 'kv'))
  key = jax.random.PRNGKey(0)
  outputs, variables = joined.init_with_output(key, x)
  other_outputs, other_variables = separate.init_with_output(key, x)
  assert variables['params']['kernel'].shape == (6, 8)
  assert other_variables['params']['kernel'].shape == (6, 2, 4)
  np.testing.assert_array_equal(outputs, other_outputs)


def test_dropout_is_shared_along_the_length_and_keeps_the_mean():
  x = jnp.ones((8, 5, 2000))
  y = layers.Dropout(0.25).apply(
      {}, x, deterministic=False, rngs={'dropout': jax.random.PRNGKey(0)}
  )
  np.testing.assert_array_equal(y, np.broadcast_to(y[:, :1], y.shape))
  np.testing.assert_allclose(np.unique(y), [0, 1 / 0.75], rtol=1e-6)
  # 16,000 draws: the standard error of the mean is 0.005.
  np.testing.assert_allclose(y[:, 0].mean(), 1.0, atol=0.02)


def test_deterministic_dropout_needs_no_key():
  x = normal(2, 3, 4)
  y = layers.Dropout(0.25).apply({}, x, deterministic=True)
  np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize('broadcast_dims', [(-2,), ()])
def test_numbered_rows_are_drawn_by_their_number_alone(broadcast_dims):
  module = layers.Dropout(0.5, broadcast_dims=broadcast_dims)

  def draw(rows):
    return module.apply(
        {},
        jnp.ones((len(rows), 3, 64)),
        deterministic=False,
        dropout_rows=jnp.array(rows),
        rngs={'dropout': jax.random.PRNGKey(0)},
    )

  whole = draw([0, 1, 2, 3])
  np.testing.assert_array_equal(draw([3, 0]), whole[jnp.array([3, 0])])
  assert (whole[0] != whole[1]).any()


def test_gated_gelu_equals_its_formula_and_so_does_its_gradient():
  module = layers.MlpBlock(12, ('gelu', 'linear'), dtype=jnp.float32)
  x = normal(2, 3, 8)
  params = module.init(jax.random.PRNGKey(0), x, deterministic=True)['params']

  def formula(params, x):
    gate = jax.nn.gelu(x @ params['wi_0']['kernel'], approximate=True)
    return (gate * (x @ params['wi_1']['kernel'])) @ params['wo']['kernel']

  def block(params, x):
    return module.apply({'params': params}, x, deterministic=True)

  def total(fn):
    return jax.value_and_grad(
        lambda params, x: jnp.sum(jnp.sin(fn(params, x))), (0, 1)
    )(params, x)

  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5),
      total(block),
      total(formula),
  )


def test_single_activation_has_a_single_input_kernel():
  module = layers.MlpBlock(12, ('relu',))
  variables = module.init(
      jax.random.PRNGKey(0), normal(1, 2, 8), deterministic=True
  )
  assert set(variables['params']) == {'wi', 'wo'}
