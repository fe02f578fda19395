# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The encoder-decoder model gives the numbers T5X itself gave."""

from flax import traverse_util
import jax
import numpy as np
import pytest

from t5wild import losses
from t5wild.decoding import greedy
from t5wild.models import base_metrics

_Z = 1e-4
_VARIANTS = {
    'base_z1e-4': {'z_loss': _Z},
    'z0': {},
    'ls0.1_z1e-4': {'z_loss': _Z, 'label_smoothing': 0.1},
    'const1000': {'z_loss': _Z, 'loss_normalizing_factor': 1000},
    'NUM_REAL_TARGET_TOKENS': {
        'z_loss': _Z,
        'loss_normalizing_factor': 'NUM_REAL_TARGET_TOKENS',
    },
    'NUM_TOTAL_TARGET_TOKENS': {
        'z_loss': _Z,
        'loss_normalizing_factor': 'NUM_TOTAL_TARGET_TOKENS',
    },
    'AVERAGE_PER_SEQUENCE': {
        'z_loss': _Z,
        'loss_normalizing_factor': 'AVERAGE_PER_SEQUENCE',
    },
}
# The project's promise: losses to 1e-6 relative, gradients to 1e-5 of each
# tensor's largest value (float32 sums in another order).
_LOSS_RTOL = 1e-6
_GRADIENT_RTOL = 1e-5


def _expected_metrics(t5x_run, variant):
  prefix = f'metrics/{variant}/'
  return {
      name.removeprefix(prefix): value
      for name, value in t5x_run.outputs.items()
      if name.startswith(prefix)
  }


def _assert_loss_and_metrics(t5x_run, variant, loss, metrics):
  np.testing.assert_allclose(
      loss, t5x_run.outputs[f'loss/{variant}'], rtol=_LOSS_RTOL
  )
  expected = _expected_metrics(t5x_run, variant)
  factor, _ = losses.get_loss_normalizing_factor_and_weights(
      _VARIANTS.get(variant, {}).get('loss_normalizing_factor'), t5x_run.batch
  )
  if factor is not None:  # T5X divides by it, then by the number of tokens.
    for name in expected:
      if 'loss_per_' in name:
        expected[name] = expected[name] * factor
  computed = {name: metrics[name].compute() for name in expected}
  jax.tree.map(
      lambda ours, theirs: np.testing.assert_allclose(
          ours, theirs, rtol=_LOSS_RTOL
      ),
      computed,
      expected,
  )
  ours_alone = ('timing/', base_metrics.OF_TRAINING)
  others = {name for name in metrics if not name.startswith(ours_alone)}
  assert others == set(expected)


def test_losses_and_metrics_of_a_packed_batch(t5x_run, monkeypatch):
  model = t5x_run.make_model()
  logits = jax.jit(model._compute_logits)(t5x_run.params, t5x_run.batch)
  np.testing.assert_allclose(logits, t5x_run.outputs['logits'], atol=2e-5)
  for variant, kwargs in _VARIANTS.items():
    model = t5x_run.make_model(**kwargs)
    # One compiled forward pass serves all variants.
    monkeypatch.setattr(model, '_compute_logits', lambda *_: logits)
    loss, metrics = model.eval_fn(t5x_run.params, t5x_run.batch)
    _assert_loss_and_metrics(t5x_run, variant, loss, metrics)


def test_loss_under_dropout(t5x_run):
  model = t5x_run.make_model(z_loss=_Z)
  loss, metrics = jax.jit(model.loss_fn)(
      t5x_run.params, t5x_run.batch, jax.random.PRNGKey(7)
  )
  _assert_loss_and_metrics(t5x_run, 'dropout_key7', loss, metrics)


def test_loss_and_gradient(t5x_run):
  model = t5x_run.make_model(z_loss=_Z)
  step = jax.jit(jax.value_and_grad(model.loss_fn, has_aux=True))
  (loss, metrics), gradient = step(t5x_run.params, t5x_run.batch, None)
  _assert_loss_and_metrics(t5x_run, 'base_z1e-4', loss, metrics)
  ours = traverse_util.flatten_dict(gradient, sep='/')
  theirs = dict(np.load(t5x_run.folder / 'grads_nodropout.npz'))
  assert set(ours) == set(theirs)
  for path, expected in theirs.items():
    np.testing.assert_allclose(
        ours[path],
        expected,
        rtol=0,
        atol=_GRADIENT_RTOL * np.abs(expected).max(),
        err_msg=path,
    )


@pytest.mark.slow
def test_initial_parameters(t5x_run):
  init_rng, _ = jax.random.split(jax.random.PRNGKey(42))
  shapes = {name: value.shape for name, value in t5x_run.batch.items()}
  variables = jax.jit(
      lambda rng: t5x_run.make_model().get_initial_variables(rng, shapes)
  )(init_rng)
  ours = traverse_util.flatten_dict(dict(variables['params']), sep='/')
  theirs = dict(np.load(t5x_run.folder / 'init_params_seed42.npz'))
  assert set(ours) == set(theirs)
  for path, expected in theirs.items():
    np.testing.assert_allclose(ours[path], expected, rtol=1e-6, atol=1e-8)


def test_scores(t5x_run):
  score_batch = jax.jit(t5x_run.make_model(z_loss=_Z).score_batch)
  for params, name in (
      (t5x_run.params, 'score_batch'),
      (t5x_run.noisy_params, 'noisy/score_batch'),
  ):
    np.testing.assert_allclose(
        score_batch(params, t5x_run.decode_batch),
        t5x_run.outputs[name],
        rtol=_LOSS_RTOL,
    )


def test_greedy_decodes(t5x_run):
  predict_batch = jax.jit(
      t5x_run.make_model(decode_fn=greedy.greedy_decode).predict_batch
  )
  for params, tag in (
      (t5x_run.params, 'greedy_temp0'),
      (t5x_run.noisy_params, 'noisy_greedy_temp0'),
  ):
    np.testing.assert_array_equal(
        predict_batch(params, t5x_run.decode_batch),
        t5x_run.outputs[f'decode/{tag}/tokens'],
    )


def test_greedy_decodes_of_a_prompt(t5x_run):
  model = t5x_run.make_model(decode_fn=greedy.greedy_decode)
  tokens, _ = jax.jit(
      lambda params, batch: model.predict_batch_with_aux(
          params, batch, prompt_with_targets=True
      )
  )(t5x_run.params, t5x_run.decode_batch)
  np.testing.assert_array_equal(
      tokens, t5x_run.outputs['decode/greedy_prompted/tokens']
  )
