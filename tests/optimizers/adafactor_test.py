# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Adafactor against T5X's numbers and against the paper's equations."""

from flax import traverse_util
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.optimizers import adafactor
from t5wild.optimizers import base

PartitionSpec = jax.sharding.PartitionSpec


def _fixture_definition(axes, **arguments):
  definition = adafactor.Adafactor(
      **{'min_dim_size_to_factor': 32} | arguments,
      logical_factor_rules=adafactor.standard_logical_factor_rules(),
  )
  definition.set_param_axes(axes)
  return definition


def _relative_to_largest(actual, expected):
  largest = np.max(np.abs(expected)) or 1.0
  return np.max(np.abs(np.asarray(actual) - expected)) / largest


def test_update_equals_t5x(t5x_update):
  definition = _fixture_definition(t5x_update.axes)
  optimizer = definition.create(t5x_update.before['target'])
  optimizer = optimizer.restore_state(t5x_update.before)
  new = jax.jit(lambda o, g: o.apply_gradient(g, learning_rate=0.01))(
      optimizer, t5x_update.gradients
  )
  flat = traverse_util.flatten_dict(new.state_dict(), sep='/')
  assert flat.keys() == t5x_update.after.keys()
  for path, expected in t5x_update.after.items():
    assert _relative_to_largest(flat[path], expected) < 1e-5, path


def test_state_dict_has_t5x_layout(t5x_update):
  definition = _fixture_definition(t5x_update.axes)
  optimizer = definition.create(t5x_update.before['target'])
  flat = traverse_util.flatten_dict(optimizer.state_dict(), sep='/')
  layout = {k: [list(v.shape), str(v.dtype)] for k, v in flat.items()}
  assert layout == t5x_update.shapes


def test_state_axes_have_the_rank_of_their_arrays(t5x_update):
  definition = _fixture_definition(t5x_update.axes, beta1=0.9)
  optimizer = definition.create(t5x_update.before['target'])
  axes = definition.derive_logical_axes(optimizer, t5x_update.axes)
  flat_axes = traverse_util.flatten_dict(axes.state_dict(), sep='/')
  flat = traverse_util.flatten_dict(optimizer.state_dict(), sep='/')
  assert flat_axes.keys() == flat.keys()
  for path, spec in flat_axes.items():
    if spec is None:
      assert flat[path].shape in ((), (1,)), path
    else:
      assert len(spec) == flat[path].ndim, path


def test_stacked_layers_update_as_each_layer_alone():
  rng = np.random.default_rng(0)
  stacked = rng.standard_normal((16, 3, 8), np.float32)
  grads = rng.standard_normal((16, 3, 8), np.float32)
  grads[:, 1] *= 100  # clipping and scale must not leak between layers

  def update(param, grad, axes):
    definition = adafactor.Adafactor(
        min_dim_size_to_factor=2,
        logical_factor_rules=adafactor.standard_logical_factor_rules(),
    )
    definition.set_param_axes({'w': PartitionSpec(*axes)})
    optimizer = definition.create({'w': jnp.asarray(param)})
    return optimizer.apply_gradient({'w': grad}, learning_rate=0.1).target['w']

  together = update(stacked, grads, ('embed', 'layers', 'mlp'))
  for layer in range(3):
    alone = update(stacked[:, layer], grads[:, layer], ('embed', 'mlp'))
    np.testing.assert_allclose(together[:, layer], alone, rtol=1e-6, atol=1e-7)


def _paper_step(param, grad, *, rate):
  """Algorithms 4 and 5 of the paper at t = 1 (decay 0), in float64."""
  square = grad**2 + 1e-30
  rows, columns = square.mean(axis=1), square.mean(axis=0)
  second = np.outer(rows, columns) / rows.mean()
  direction = grad / np.sqrt(second)
  direction /= max(1.0, np.sqrt((direction**2).mean()))
  scale = max(1e-3, np.sqrt((param**2).mean()))
  return param - rate * scale * direction


def test_first_step_follows_the_paper():
  rng = np.random.default_rng(1)
  param = rng.standard_normal((5, 7)).astype(np.float32)
  grad = rng.standard_normal((5, 7)).astype(np.float32)
  definition = adafactor.Adafactor(min_dim_size_to_factor=1)
  optimizer = definition.create({'w': jnp.asarray(param)})
  new = optimizer.apply_gradient({'w': grad}, learning_rate=0.05)
  expected = _paper_step(
      param.astype(np.float64), grad.astype(np.float64), rate=0.05
  )
  np.testing.assert_allclose(new.target['w'], expected, rtol=1e-5)


def _one_step(**arguments):
  definition = adafactor.Adafactor(**arguments)
  optimizer = definition.create({'w': jnp.full((4,), 2.0)})
  grads = {'w': jnp.array([1.0, -1.0, 1.0, jnp.nan])[:4]}
  return optimizer.apply_gradient(grads, learning_rate=0.5)


def test_skip_nan_updates_keeps_the_earlier_values():
  new = _one_step(skip_nan_updates=True, clipping_threshold=None)
  assert not np.isnan(new.target['w']).any()
  assert new.target['w'][3] == 2.0
  assert new.state.param_states['w'].v[3] == 0.0
  assert new.target['w'][0] == pytest.approx(1.0)


def test_parameter_scale_is_bounded():
  def moved(**arguments):
    definition = adafactor.Adafactor(**arguments)
    optimizer = definition.create({'w': jnp.full((4,), 8.0)})
    new = optimizer.apply_gradient({'w': jnp.ones(4)}, learning_rate=0.1)
    return float(8.0 - new.target['w'][0])

  assert moved() == pytest.approx(0.8, rel=1e-5)
  assert moved(max_parameter_scale=2.0) == pytest.approx(0.2, rel=1e-5)
  assert moved(epsilon2=20.0) == pytest.approx(2.0, rel=1e-5)
  by_path = adafactor.HParamMap([('^w$', False), ('.*', True)])
  assert moved(multiply_by_parameter_scale=by_path) == pytest.approx(
      0.1, rel=1e-5
  )


def test_weight_decay_is_a_fraction_of_the_weight():
  def decayed(**arguments):
    definition = adafactor.Adafactor(**arguments)
    optimizer = definition.create({'w': jnp.full((4,), 8.0)})
    new = optimizer.apply_gradient({'w': jnp.zeros(4)}, learning_rate=0.1)
    return float(new.target['w'][0])

  assert decayed(weight_decay_rate=0.25) == pytest.approx(6.0)
  assert decayed(weight_decay_rate_lr_exponent=2.0) == pytest.approx(7.92)
  both = {'weight_decay_rate': 0.5, 'weight_decay_rate_lr_exponent': 1.0}
  assert decayed(**both) == pytest.approx(7.6)


def test_momentum_averages_updates():
  definition = adafactor.Adafactor(beta1=0.75)
  optimizer = definition.create({'w': jnp.full((4,), 8.0)})
  new = optimizer.apply_gradient({'w': jnp.ones(4)}, learning_rate=0.1)
  assert new.state.param_states['w'].m[0] == pytest.approx(0.2, rel=1e-5)
  assert new.target['w'][0] == pytest.approx(7.8, rel=1e-5)


def test_global_norm_clipping_comes_before_the_statistics():
  definition = adafactor.Adafactor(global_norm_clip_threshold=1.0)
  optimizer = definition.create({'w': jnp.ones(4)})
  new = optimizer.apply_gradient({'w': jnp.full(4, 50.0)}, learning_rate=0.1)
  np.testing.assert_allclose(new.state.param_states['w'].v, 0.25, rtol=1e-5)


def test_step_offset_restarts_the_second_moment_decay():
  definition = adafactor.Adafactor(step_offset=100)
  optimizer = definition.create({'w': jnp.ones(4)})
  stale = optimizer.state.param_states['w'].replace(v=jnp.full(4, 1e6))
  for step in (100, 60):  # 60: a step before the offset counts as the offset
    state = base.OptimizerState(
        step=jnp.asarray(step), param_states={'w': stale}
    )
    new = optimizer.replace(state=state).apply_gradient(
        {'w': jnp.ones(4)}, learning_rate=0.1
    )
    np.testing.assert_allclose(new.state.param_states['w'].v, 1.0)


def test_bfloat16_parameters_stay_bfloat16():
  definition = adafactor.Adafactor()
  optimizer = definition.create({'w': jnp.ones((4,), jnp.bfloat16)})
  grads = {'w': jnp.ones((4,), jnp.bfloat16)}
  new = optimizer.apply_gradient(grads, learning_rate=0.1)
  assert new.target['w'].dtype == jnp.bfloat16
  assert new.state.param_states['w'].v.dtype == jnp.float32


def test_missing_learning_rate_names_the_mend():
  optimizer = adafactor.Adafactor().create({'w': jnp.ones(4)})
  with pytest.raises(ValueError, match='learning_rate_fn'):
    optimizer.apply_gradient({'w': jnp.ones(4)})


@pytest.mark.parametrize(
    ('arguments', 'error', 'words'),
    [
        ({'multiply_by_parameter_scale': 'yes'}, TypeError, "'yes'.*HParamMap"),
        ({'factor_map': {'w': None}}, TypeError, 'expected None or an HParam'),
        (
            {'factored': False, 'factor_map': adafactor.HParamMap([])},
            ValueError,
            'drop one of the two',
        ),
    ],
)
def test_bad_arguments_are_refused_when_built(arguments, error, words):
  with pytest.raises(error, match=words):
    adafactor.Adafactor(**arguments)


def test_equal_definitions_are_one_jit_key():
  one, other = adafactor.Adafactor(), adafactor.Adafactor()
  assert one == other
  assert hash(one) == hash(other)
  assert one != adafactor.Adafactor(decay_rate=0.5)
