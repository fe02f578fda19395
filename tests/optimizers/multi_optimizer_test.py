# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Several optimizers, each for its part of the parameters."""

from flax import traverse_util
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild import optimizers

PartitionSpec = jax.sharding.PartitionSpec

PARAMS = {
    'prompt': {'kernel': jnp.full((4, 4), 2.0)},
    'layer': {'kernel': jnp.full((4, 4), 2.0), 'scale': jnp.ones(4)},
}
AXES = {
    'prompt': {'kernel': PartitionSpec('embed', 'mlp')},
    'layer': {
        'kernel': PartitionSpec('embed', 'mlp'),
        'scale': PartitionSpec('embed'),
    },
}


def _where(words):
  return traverse_util.ModelParamTraversal(lambda path, _: words in path)


def _grads():
  return jax.tree.map(jnp.ones_like, PARAMS)


def test_each_part_updates_as_alone_and_the_rest_stays():
  multi = optimizers.MultiOptimizer([
      (_where('prompt'), optimizers.Adafactor()),
      (_where('scale'), optimizers.Adafactor(clipping_threshold=0.5)),
  ])
  new = multi.create(PARAMS).apply_gradient(_grads(), learning_rate=0.1)
  alone = (
      optimizers.Adafactor()
      .create({'w': PARAMS['prompt']['kernel']})
      .apply_gradient({'w': jnp.ones((4, 4))}, learning_rate=0.1)
  )
  np.testing.assert_array_equal(
      new.target['prompt']['kernel'], alone.target['w']
  )
  np.testing.assert_allclose(new.target['layer']['scale'], 0.95, rtol=1e-5)
  np.testing.assert_array_equal(new.target['layer']['kernel'], 2.0)
  assert new.state.step == 1
  assert new.state.param_states['layer']['kernel'] is None


def test_state_dict_restores_without_untrained_states():
  multi = optimizers.MultiOptimizer(
      [(_where('prompt'), optimizers.Adafactor())]
  )
  optimizer = multi.create(PARAMS)
  new = optimizer.apply_gradient(_grads(), learning_rate=0.1)
  nested = new.state_dict()
  assert list(nested['state']['param_states']) == ['prompt']
  restored = optimizer.restore_state(nested)
  jax.tree.map(np.testing.assert_array_equal, restored, new)


def test_axes_reach_each_part():
  rules = optimizers.adafactor.standard_logical_factor_rules()
  multi = optimizers.MultiOptimizer([(
      _where('prompt'),
      optimizers.Adafactor(
          logical_factor_rules=rules, min_dim_size_to_factor=2
      ),
  )])
  multi.set_param_axes(AXES)
  axes = multi.derive_logical_axes(multi.create(PARAMS), AXES)
  state = axes.state.param_states['prompt']['kernel']
  assert (state.v_row, state.v_col) == (
      PartitionSpec('embed'),
      PartitionSpec('mlp'),
  )
  assert axes.state.param_states['layer'] == {'kernel': None, 'scale': None}
  assert axes.target == AXES


def test_global_norm_counts_trained_parameters_only():
  multi = optimizers.MultiOptimizer(
      [(_where('scale'), optimizers.Adafactor(clipping_threshold=None))],
      global_norm_clip_threshold=1.0,
  )
  new = multi.create(PARAMS).apply_gradient(_grads(), learning_rate=0.1)
  np.testing.assert_allclose(
      new.state.param_states['layer']['scale'].v, 0.25, rtol=1e-5
  )


def test_overlapping_parts_are_refused():
  multi = optimizers.MultiOptimizer([
      (_where('kernel'), optimizers.Adafactor()),
      (_where('prompt'), optimizers.Adafactor()),
  ])
  with pytest.raises(ValueError, match='prompt/kernel is selected by'):
    multi.create(PARAMS)


def test_optax_parts_are_refused_with_the_way_out():
  multi = optimizers.MultiOptimizer([(_where('kernel'), optimizers.adam())])
  with pytest.raises(ValueError, match='multi_transform'):
    multi.create(PARAMS)
