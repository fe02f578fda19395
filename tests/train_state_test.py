# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Train states: layout of the dict, axes, what is refused."""

from flax import linen as nn
import flax.core
from flax.linen import partitioning as flax_partitioning
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild import optimizers
from t5wild import train_state as train_state_lib

PartitionSpec = jax.sharding.PartitionSpec


class _Net(nn.Module):
  """A kernel with axes and a counter among the mutable variables."""

  @nn.compact
  def __call__(self, x):
    kernel = flax_partitioning.param_with_axes(
        'kernel', nn.initializers.ones, (4, 2), axes=('embed', 'mlp')
    )
    flax_partitioning.variable_with_axes(
        'statistics', 'mean', jnp.zeros, (2,), axes=('mlp',)
    )
    return x @ kernel


def _variables():
  return _Net().init(jax.random.PRNGKey(0), jnp.ones((1, 4)))


def _state(optimizer_def=None):
  return train_state_lib.FlaxOptimTrainState.create(
      optimizer_def or optimizers.Adafactor(), _variables()
  )


def test_train_state_follows_the_protocol():
  assert isinstance(_state(), train_state_lib.TrainState)


def test_state_dict_has_t5x_keys():
  nested = _state().state_dict()
  assert sorted(nested) == ['flax_mutables', 'state', 'target']
  assert sorted(nested['state']) == ['param_states', 'step']
  assert sorted(nested['state']['param_states']['kernel']) == [
      'm', 'v', 'v_col', 'v_row',
  ]
  assert nested['flax_mutables']['statistics']['mean'].shape == (2,)


@pytest.mark.parametrize(
    'optimizer_def', [optimizers.Adafactor(), optimizers.adamw()]
)
def test_restored_state_equals_the_saved_one(optimizer_def):
  state = _state(optimizer_def)
  grads = jax.tree.map(jnp.ones_like, state.params)
  new = state.apply_gradient(grads, 0.1, state.flax_mutables)
  assert int(new.step) == 1
  restored = state.restore_state(new.state_dict())
  assert jax.tree.structure(restored) == jax.tree.structure(new)
  jax.tree.map(np.testing.assert_array_equal, restored, new)


def test_update_replaces_the_mutables():
  state = _state()
  mutables = flax.core.freeze({'statistics': {'mean': jnp.ones(2)}})
  new = state.apply_gradient(state.params, 0.1, flax_mutables=mutables)
  np.testing.assert_array_equal(new.flax_mutables['statistics']['mean'], 1.0)


def test_replacements_leave_the_rest():
  state = _state()
  assert int(state.replace_step(jnp.asarray(7)).step) == 7
  zeros = jax.tree.map(jnp.zeros_like, state.params)
  replaced = state.replace_params(zeros)
  np.testing.assert_array_equal(replaced.params['kernel'], 0.0)
  assert replaced.step == state.step


def test_axes_cover_every_array():
  axes = _state(optimizers.adamw()).as_logical_axes()
  assert axes.params == {'kernel': PartitionSpec('embed', 'mlp')}
  adam = axes.param_states[0]
  assert adam.mu == adam.nu == axes.params
  assert axes.flax_mutables['statistics'] == {'mean': PartitionSpec('mlp')}
  assert axes.step is None


def test_axes_need_no_arrays():
  shapes = jax.eval_shape(_state)
  assert shapes.as_logical_axes().params == {
      'kernel': PartitionSpec('embed', 'mlp')
  }


def test_inference_state_restores_from_a_train_state():
  saved = _state().replace_step(jnp.asarray(5))
  state = train_state_lib.InferenceState.create(_variables())
  restored = state.restore_state(saved.state_dict())
  assert restored.step == 5
  np.testing.assert_array_equal(
      restored.params['kernel'], saved.params['kernel']
  )
  assert set(state.state_dict()) == {'target', 'state', 'flax_mutables'}
  axes = state.as_logical_axes()
  assert (axes.step, axes.params['kernel']) == (
      None,
      PartitionSpec('embed', 'mlp'),
  )


def test_inference_state_cannot_be_trained():
  state = train_state_lib.InferenceState.create(_variables())
  with pytest.raises(TypeError, match='FlaxOptimTrainState.create'):
    state.apply_gradient({}, 0.1)


def test_parameters_without_axes_are_named():
  variables = flax.core.unfreeze(_variables())
  variables['params']['bias'] = jnp.ones(2)
  with pytest.raises(ValueError, match=r"\['bias'\] in 'params' have no"):
    train_state_lib.FlaxOptimTrainState.create(
        optimizers.Adafactor(), variables
    )


def test_networks_without_axes_are_refused_where_axes_are_needed():
  variables = {'params': {'kernel': jnp.ones((2, 2))}}
  with pytest.raises(ValueError, match='param_with_axes'):
    train_state_lib.FlaxOptimTrainState.create(
        optimizers.Adafactor(), variables
    )
  state = train_state_lib.FlaxOptimTrainState.create(
      optimizers.sgd(), variables
  )
  with pytest.raises(ValueError, match='names no logical axes'):
    state.as_logical_axes()
