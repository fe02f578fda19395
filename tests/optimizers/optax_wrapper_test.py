# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Wrapped optax optimizers: rates, sharding of the state, checkpoints."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from t5wild import optimizers
from t5wild.optimizers import optax_wrapper

PartitionSpec = jax.sharding.PartitionSpec

PARAMS = {'a': {'kernel': jnp.ones((2, 5)), 'scale': jnp.ones(5)}}
GRADS = jax.tree.map(lambda p: 0.5 * p, PARAMS)
AXES = {
    'a': {
        'kernel': PartitionSpec('embed', 'mlp'),
        'scale': PartitionSpec('mlp'),
    }
}
ALL = [
    'adabelief', 'adagrad', 'adam', 'adamw', 'fromage', 'lamb', 'lars', 'lion',
    'muon', 'noisy_sgd', 'radam', 'rmsprop', 'sgd', 'yogi',
]


def _make(name, **arguments):
  if name == 'noisy_sgd':
    arguments |= {'key': 0}
  return getattr(optimizers, name)(**arguments)


def _is_key(x):
  return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def _raised(x):
  return x if _is_key(x) else x + jnp.ones_like(x)


def _assert_equal(x, y):
  if _is_key(x):
    x, y = jax.random.key_data(x), jax.random.key_data(y)
  np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize('name', ['adamw', 'lars', 'lion', 'muon', 'sgd'])
def test_trainer_rate_equals_own_rate(name):
  own = _make(name, learning_rate=0.03).create(PARAMS)
  follows = _make(name).create(PARAMS)
  for _ in range(2):
    own = own.apply_gradient(GRADS, learning_rate=0.7)
    follows = follows.apply_gradient(GRADS, learning_rate=0.03)
  jax.tree.map(
      lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6),
      own.target,
      follows.target,
  )
  assert own.state.step == 2


@pytest.mark.parametrize('name', ALL)
def test_state_arrays_lie_like_their_parameter(name):
  definition = _make(name)
  optimizer = definition.create(PARAMS)
  axes = definition.derive_logical_axes(optimizer, AXES)
  assert axes.target == AXES
  arrays = jax.tree_util.tree_leaves_with_path(optimizer.state.param_states)
  specs = dict(
      jax.tree_util.tree_leaves_with_path(
          axes.state.param_states, is_leaf=lambda x: x is None
      )
  )
  for path, array in arrays:
    wanted = {(2, 5): AXES['a']['kernel'], (5,): AXES['a']['scale']}
    assert specs[path] == wanted.get(array.shape), path


@pytest.mark.parametrize('name', ALL)
def test_state_dict_restores_and_holds_no_empty_dicts(name):
  optimizer = _make(name).create(PARAMS)
  new = jax.tree.map(_raised, optimizer)
  nested = new.state_dict()
  for _, leaf in jax.tree_util.tree_leaves_with_path(
      nested, is_leaf=lambda x: isinstance(x, dict) and not x
  ):
    assert not isinstance(leaf, dict)
  restored = optimizer.restore_state(nested)
  jax.tree.map(_assert_equal, restored, new)


def test_adamw_follows_its_equations():
  rate, b1, b2, eps, decay = 0.1, 0.9, 0.999, 1e-8, 0.01
  w, g = 2.0, 0.3
  optimizer = optimizers.adamw(
      b1=b1, b2=b2, eps=eps, weight_decay=decay
  ).create({'w': jnp.full(1, w)})
  m = v = 0.0
  for t in (1, 2):
    optimizer = optimizer.apply_gradient(
        {'w': jnp.full(1, g)}, learning_rate=rate
    )
    m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
    corrected = (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)
    w -= rate * (corrected + decay * w)
    np.testing.assert_allclose(optimizer.target['w'], w, rtol=1e-5)


def test_lion_moves_by_the_sign():
  optimizer = optimizers.lion(weight_decay=0.0).create({'w': jnp.ones(2)})
  new = optimizer.apply_gradient(
      {'w': jnp.array([3.0, -7.0])}, learning_rate=0.25
  )
  np.testing.assert_allclose(new.target['w'], [0.75, 1.25])


def test_global_norm_is_clipped_before_the_transformation():
  optimizer = optimizers.sgd(global_norm_clip_threshold=1.0).create(
      {'w': jnp.zeros(2)}
  )
  new = optimizer.apply_gradient(
      {'w': jnp.array([30.0, 40.0])}, learning_rate=1.0
  )
  np.testing.assert_allclose(new.target['w'], [-0.6, -0.8], rtol=1e-6)
  small = optimizer.apply_gradient(
      {'w': jnp.array([0.3, 0.0])}, learning_rate=1.0
  )
  np.testing.assert_allclose(small.target['w'], [-0.3, 0.0], rtol=1e-6)


def test_chain_takes_a_list_and_keeps_its_own_rate():
  optimizer = optimizers.chain(
      [optax.clip(0.5), optax.sgd(learning_rate=0.1)]
  ).create({'w': jnp.zeros(1)})
  new = optimizer.apply_gradient({'w': jnp.full(1, 9.0)}, learning_rate=100.0)
  np.testing.assert_allclose(new.target['w'], -0.05, rtol=1e-6)


def test_masked_states_are_sharded_where_they_exist():
  definition = optimizers.chain([
      optax.masked(
          optax.trace(0.9), {'a': {'kernel': True, 'scale': False}}
      )
  ])
  axes = definition.derive_logical_axes(definition.create(PARAMS), AXES)
  leaves = jax.tree.leaves(axes.state.param_states)
  assert leaves == [AXES['a']['kernel']]


def test_any_transformation_can_be_wrapped():
  def halving(learning_rate, *, factor=0.5):
    return optax.chain(optax.scale(factor), optax.sgd(learning_rate))

  definition = optimizers.wrap_optax_optimizer(halving)(factor=0.25)
  new = definition.create({'w': jnp.zeros(1)}).apply_gradient(
      {'w': jnp.ones(1)}, learning_rate=1.0
  )
  np.testing.assert_allclose(new.target['w'], -0.25)


def test_signature_tells_what_gin_may_bind():
  parameters = inspect.signature(optimizers.adamw).parameters
  assert parameters['learning_rate'].default is None
  assert 'global_norm_clip_threshold' in parameters
  assert 'weight_decay' in parameters
  with pytest.raises(TypeError, match='wieght_decay'):
    optimizers.adamw(wieght_decay=0.1)


def test_missing_state_names_the_lacking_leaves():
  optimizer = optimizers.adam().create(PARAMS)
  with pytest.raises(ValueError, match='lacks.*mu/a/kernel'):
    optimizer.restore_state(optimizers.sgd().create(PARAMS).state_dict())


def test_missing_learning_rate_names_the_mend():
  optimizer = optimizers.adam().create(PARAMS)
  with pytest.raises(ValueError, match='learning_rate_fn'):
    optimizer.apply_gradient(GRADS)


def test_wrapper_needs_one_source():
  with pytest.raises(ValueError, match='drop one'):
    optax_wrapper.OptaxWrapper()
