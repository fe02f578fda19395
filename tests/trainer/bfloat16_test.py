# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""bfloat16 activations over float32 parameters, through a whole step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.trainer import train_function

_SCANNED = {
    'scan_layers': True,
    'remat_policy': 'full',
    'num_encoder_layers': 2,
    'num_decoder_layers': 2,
}
_CASES = [
    pytest.param({}, None, id='plain'),
    pytest.param({}, 2, id='accumulated', marks=pytest.mark.slow),
    pytest.param(_SCANNED, None, id='scanned', marks=pytest.mark.slow),
    pytest.param(
        _SCANNED, 2, id='scanned_accumulated', marks=pytest.mark.slow
    ),
]


def _make_model(make_run, config_changes, dtype):
  return make_run.model(
      config_changes=make_run.small | config_changes | {'dtype': dtype},
      loss_normalizing_factor='NUM_REAL_TARGET_TOKENS',
  )


def _dtypes(tree):
  return {x.dtype.name for x in jax.tree.leaves(tree)}


@pytest.mark.parametrize(('config_changes', 'num_microbatches'), _CASES)
def test_bfloat16_step_has_the_float32_loss_and_a_float32_state(
    make_run, config_changes, num_microbatches
):
  batch = make_run.batch()
  exact = _make_model(make_run, config_changes, jnp.float32)
  model = _make_model(make_run, config_changes, jnp.bfloat16)
  state = make_run.state(model, batch)
  rng = jax.random.PRNGKey(3)
  train = train_function.make(model, num_microbatches=num_microbatches)
  new_state, metrics = jax.jit(train)(state, batch, rng)
  expected, _ = jax.jit(exact.loss_fn)(
      state.params, exact.annotate_global_batch(batch), rng
  )
  # bfloat16 has 8 bits: each activation is rounded by up to 0.4 %.
  np.testing.assert_allclose(
      metrics['loss'].replace_steps(1).compute(), expected, rtol=0.01
  )
  assert _dtypes(new_state.params) == {'float32'}
  assert _dtypes(new_state.param_states) == {'float32'}
  for old, new in zip(
      jax.tree.leaves(state.params),
      jax.tree.leaves(new_state.params),
      strict=True,
  ):
    assert np.all(np.isfinite(new))
    assert np.any(old != new)


def test_gradients_of_bfloat16_microbatches_are_carried_in_float32(make_run):
  model = _make_model(make_run, {}, jnp.bfloat16)
  batch = make_run.batch()
  state = jax.eval_shape(lambda: make_run.state(model, batch))
  jaxpr = jax.make_jaxpr(train_function.make(model, num_microbatches=4))(
      state, batch, jax.ShapeDtypeStruct((2,), jnp.uint32)
  )
  (loop,) = (
      equation
      for equation in jaxpr.eqns
      if equation.primitive.name == 'scan' and equation.params['length'] == 4
  )
  # What a scan stacks grows by an axis on the way out, what it carries doesn't.
  inside = loop.params['jaxpr'].out_avals
  carried = [
      x
      for x, of_one_turn in zip(loop.outvars, inside, strict=True)
      if x.aval.shape == of_one_turn.shape
  ]
  shapes = sorted(x.aval.shape for x in carried)
  assert shapes == sorted(x.shape for x in jax.tree.leaves(state.params))
  assert {x.aval.dtype.name for x in carried} == {'float32'}
