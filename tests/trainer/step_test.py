# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Steps against T5X's numbers, and the laws of microbatches."""

import functools

from flax import struct
from flax import traverse_util
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.trainer import step as step_lib
from tests.trainer import train_function


def _largest_difference(actual, expected):
  """Difference over the largest value, of the worst tensor."""
  flat = traverse_util.flatten_dict(actual, sep='/')
  assert flat.keys() == expected.keys()
  return max(
      np.max(np.abs(flat[path] - value)) / max(np.max(np.abs(value)), 1e-30)
      for path, value in expected.items()
  )


def _gradients(model, state, batch, rng, num_microbatches):
  @jax.jit
  def compute(state, batch):
    return step_lib.accumulate_grads_microbatched(
        model, state, batch, rng, num_microbatches
    )[:2]

  return compute(state, batch)


def test_microbatched_gradients_with_dropout_equal_t5x(t5x_run, make_run):
  model = make_run.model(config_changes=t5x_run.config_changes)
  state = make_run.state(
      model, t5x_run.batch, params=t5x_run.checkpoint_params
  )
  grads, _ = _gradients(model, state, t5x_run.batch, jax.random.PRNGKey(11), 2)
  assert _largest_difference(grads, t5x_run.gradients[2]) < 1e-5


@pytest.mark.slow
def test_whole_gradients_with_dropout_equal_t5x(t5x_run, make_run):
  model = make_run.model(config_changes=t5x_run.config_changes)
  state = make_run.state(
      model, t5x_run.batch, params=t5x_run.checkpoint_params
  )
  grads, _ = _gradients(
      model, state, t5x_run.batch, jax.random.PRNGKey(11), None
  )
  assert _largest_difference(grads, t5x_run.gradients[None]) < 1e-5


@pytest.mark.slow
def test_special_normaliser_is_per_microbatch_as_in_t5x(t5x_run, make_run):
  model = make_run.model(
      config_changes=t5x_run.config_changes,
      loss_normalizing_factor='NUM_REAL_TARGET_TOKENS',
  )
  state = make_run.state(
      model, t5x_run.batch, params=t5x_run.checkpoint_params
  )
  grads, _ = _gradients(model, state, t5x_run.batch, jax.random.PRNGKey(11), 2)
  norm = np.sqrt(sum(np.sum(np.square(g)) for g in jax.tree.leaves(grads)))
  expected = t5x_run.outputs['gradnorm/NUM_REAL_TARGET_TOKENS_microbatches_2']
  np.testing.assert_allclose(norm, expected, rtol=1e-5)


_PLAIN_AND_SCANNED = [
    pytest.param({}, id='plain'),
    pytest.param({'scan_layers': True}, id='scanned', marks=pytest.mark.slow),
]


@pytest.mark.parametrize('config_changes', _PLAIN_AND_SCANNED)
def test_global_gradient_does_not_depend_on_microbatches(
    make_run, config_changes
):
  model = make_run.model(
      config_changes=make_run.small | config_changes,
      loss_normalizing_factor='NUM_REAL_TARGET_TOKENS',
  )
  batch = make_run.batch()
  state = make_run.state(model, batch)
  whole, whole_metrics = _global_gradients(model, state, batch, None)
  whole = traverse_util.flatten_dict(whole, sep='/')
  for num_microbatches in (2, 8):
    parts, metrics = _global_gradients(model, state, batch, num_microbatches)
    # Sums of float32 in another order.
    assert _largest_difference(parts, whole) < 1e-5
    for name in ('cross_ent_loss', 'accuracy', 'loss'):
      np.testing.assert_allclose(
          _value(metrics[name]), _value(whole_metrics[name]), rtol=1e-5
      )
  other_key, _ = _global_gradients(model, state, batch, 2, seed=1)
  assert _largest_difference(other_key, whole) > 1e-2


@functools.cache
def _compiled_gradients(model, num_microbatches):
  @jax.jit
  def compute(state, batch, rng):
    return step_lib.accumulate_grads_microbatched(
        model,
        state,
        batch,
        rng,
        num_microbatches,
        microbatch_semantics='global',
    )[:2]

  return compute


def _global_gradients(model, state, batch, num_microbatches, *, seed=0):
  compute = _compiled_gradients(model, num_microbatches)
  return compute(state, batch, jax.random.PRNGKey(seed))


def _value(metric):
  if hasattr(metric, 'replace_steps'):
    metric = metric.replace_steps(1)
  return float(metric.compute())


class _LinearModel:
  """loss = sum of (x @ w + noise) with mutable counters; no global rows."""

  def loss_fn(self, params, batch, dropout_rng, flax_mutables=None):
    noise = jax.random.normal(dropout_rng, batch['x'].shape)
    loss = jnp.sum((batch['x'] + noise) @ params['w'])
    metrics = {'loss': _Total(loss)}
    if flax_mutables is None:
      return loss, metrics
    return loss, (metrics, {'count': flax_mutables['count'] + 1})

  def annotate_global_batch(self, batch):
    return batch


@struct.dataclass
class _Total:
  total: jax.Array

  def merge(self, other):
    return _Total(self.total + other.total)


class _State:

  def __init__(self, flax_mutables):
    self.params = {'w': jnp.ones((3,))}
    self.flax_mutables = flax_mutables


def test_mutables_pass_from_microbatch_to_microbatch():
  state = _State({'count': jnp.zeros((), jnp.int32)})
  _, _, mutables = step_lib.accumulate_grads_microbatched(
      _LinearModel(), state, {'x': jnp.ones((8, 3))}, jax.random.PRNGKey(0), 4
  )
  assert mutables['count'] == 4


def test_without_global_rows_microbatches_have_their_own_keys():
  grads, _, _ = step_lib.accumulate_grads_microbatched(
      _LinearModel(),
      _State({}),
      {'x': jnp.zeros((4, 3))},
      jax.random.PRNGKey(0),
      4,
      microbatch_semantics='global',
  )
  noise = [
      jax.random.normal(jax.random.fold_in(jax.random.PRNGKey(0), i), (1, 3))
      for i in range(4)
  ]
  np.testing.assert_allclose(grads['w'], sum(noise)[0], rtol=1e-5)


def test_bfloat16_gradients_are_summed_in_float32():
  state = _State({})
  state.params = {'w': jnp.ones((3,), jnp.bfloat16)}
  grads, _, _ = step_lib.accumulate_grads_microbatched(
      _LinearModel(),
      state,
      {'x': jnp.ones((8, 3), jnp.bfloat16)},
      jax.random.PRNGKey(0),
      8,
  )
  assert grads['w'].dtype == jnp.float32


def test_indivisible_batches_are_refused():
  with pytest.raises(ValueError, match='8 is not divisible by.*3 x 1'):
    step_lib.accumulate_grads_microbatched(
        _LinearModel(), _State({}), {'x': jnp.ones((8, 3))}, None, 3
    )


def test_unknown_semantics_are_refused():
  with pytest.raises(ValueError, match="'local', expected one of"):
    step_lib.accumulate_grads_microbatched(
        _LinearModel(), _State({}), {}, None, 1, microbatch_semantics='local'
    )


def _temporary_bytes(model, state, batch, num_microbatches, semantics):
  train = train_function.make(
      model, num_microbatches=num_microbatches, semantics=semantics
  )
  lowered = jax.jit(train, donate_argnums=0).lower(
      state, batch, jax.random.PRNGKey(0)
  )
  return lowered.compile().memory_analysis().temp_size_in_bytes


_MEMORY_CASES = {
    'much_parameters': ({'emb_dim': 256, 'mlp_dim': 512}, (16, 16, 16)),
    'much_activations': ({}, (16, 64, 32)),
    'long_rows': ({'emb_dim': 64, 'mlp_dim': 256}, (8, 256, 128)),
}
_SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ('case', 'semantics', 'scan_layers', 'dtype'),
    [
        ('much_parameters', 'global', False, jnp.float32),
        pytest.param('much_parameters', 't5x', True, jnp.float32, marks=_SLOW),
        pytest.param(
            'much_activations', 'global', False, jnp.float32, marks=_SLOW
        ),
        pytest.param(
            'much_activations', 'global', True, jnp.bfloat16, marks=_SLOW
        ),
        pytest.param('long_rows', 't5x', False, jnp.bfloat16, marks=_SLOW),
        pytest.param('long_rows', 'global', True, jnp.float32, marks=_SLOW),
    ],
)
def test_accumulation_costs_one_copy_of_the_parameters(
    make_run, case, semantics, scan_layers, dtype
):
  config_changes, (batch_size, inputs, targets) = _MEMORY_CASES[case]
  model = make_run.model(
      config_changes=make_run.small
      | config_changes
      | {'scan_layers': scan_layers, 'dtype': dtype}
  )
  batch = make_run.batch(batch_size, inputs, targets)
  state = jax.eval_shape(lambda: make_run.state(model, batch))
  one = {name: x[: batch_size // 4] for name, x in batch.items()}
  alone = _temporary_bytes(model, state, one, None, semantics)
  accumulated = _temporary_bytes(model, state, batch, 4, semantics)
  parameter_bytes = 4 * sum(x.size for x in jax.tree.leaves(state.params))
  assert accumulated <= alone + 1.1 * parameter_bytes


def test_norms_and_rate_are_measured(make_run):
  model = make_run.model(config_changes=make_run.small)
  batch = make_run.batch()
  state = make_run.state(model, batch)
  grads = jax.tree.map(lambda p: jnp.full_like(p, 0.5), state.params)
  size = sum(x.size for x in jax.tree.leaves(state.params))
  new, metrics = step_lib.apply_grads(state, grads, {}, 0.25, None)
  assert new.step == 1
  assert metrics['learning_rate'].compute() == 0.25
  assert metrics['learning_rate/current'].compute() == 0.25
  norm = metrics['weight_gradient_norm'].replace_steps(1).compute()
  np.testing.assert_allclose(norm, 0.5 * np.sqrt(size), rtol=1e-5)
  weights = np.concatenate([x.ravel() for x in jax.tree.leaves(state.params)])
  np.testing.assert_allclose(
      metrics['weight_norm'].replace_steps(1).compute(),
      np.linalg.norm(weights),
      rtol=1e-5,
  )
