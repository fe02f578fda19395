# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Vital signs of a step, held against numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild import metrics as metrics_lib
from t5wild import train_state as train_state_lib
from t5wild.models import base_metrics
from t5wild.trainer import metric_values
from t5wild.trainer import vital_signs


def _values(metrics, *, num_steps=1):
  return metric_values.compute_values(
      jax.device_get(metrics), duration_seconds=1.0, num_steps=num_steps
  )


def _state(params):
  return train_state_lib.InferenceState.create({'params': params})


@pytest.fixture
def gradients():
  rng = np.random.default_rng(0)
  return {
      'encoder': {
          'layers_0': {'a': rng.normal(size=(3, 4)), 'b': rng.normal(size=5)},
          'layers_1': {'a': rng.normal(size=(3, 4))},
      },
      'embedding': rng.normal(size=(7, 2)),
  }


def _signs(gradients, *, step=0.5):
  old = jax.tree.map(lambda g: jnp.ones(g.shape), gradients)
  new = jax.tree.map(lambda p: p * (1 + step), old)
  gradients = jax.tree.map(jnp.float32, gradients)
  return vital_signs.of_update(gradients, _state(old), _state(new))


def test_norms_are_those_of_each_layers_gradients(gradients):
  values = _values(_signs(gradients))
  layer = gradients['encoder']['layers_0']
  expected = np.sqrt(np.sum(layer['a'] ** 2) + np.sum(layer['b'] ** 2))
  assert values['gradient_norm/encoder/layers_0'] == pytest.approx(
      expected, rel=1e-6  # float32 sums
  )
  assert values['gradient_norm/embedding'] == pytest.approx(
      np.linalg.norm(gradients['embedding']), rel=1e-6
  )
  assert len([n for n in values if n.startswith('gradient_norm/')]) == 3


def test_ratio_is_that_of_the_update_to_the_weights_before_it(gradients):
  values = _values(_signs(gradients, step=0.25))
  assert values['update_to_weight_ratio'] == pytest.approx(0.25, rel=1e-6)


def test_parameters_whose_gradients_are_not_finite_are_counted(gradients):
  assert _values(_signs(gradients))['non_finite/gradients'] == 0
  gradients['embedding'][3, 1] = np.nan
  gradients['encoder']['layers_0']['b'][2] = np.inf
  assert _values(_signs(gradients))['non_finite/gradients'] == 2


def test_over_steps_norms_are_averaged_by_name(gradients):
  one = _signs(gradients)['gradient_norm']
  two = _signs(jax.tree.map(lambda g: 3 * g, gradients))['gradient_norm']
  merged = _values({'gradient_norm': one.merge(two)}, num_steps=2)
  for name, value in _values({'gradient_norm': one}).items():
    assert merged[name] == pytest.approx(2 * value, rel=1e-6)


def test_entropy_and_largest_logit_are_those_of_tokens_that_count():
  rng = np.random.default_rng(1)
  logits = rng.normal(size=(2, 3, 5)) * 3
  logits[1, 2] = 99.0  # of a token that does not count
  mask = np.array([[1.0, 0.5, 0.0], [2.0, 1.0, 0.0]])
  values = _values(base_metrics.compute_logit_metrics(logits, mask))
  softmax = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
  entropies = -(softmax * np.log(softmax)).sum(-1)
  assert values['logits/entropy'] == pytest.approx(
      entropies[mask > 0].mean(), rel=1e-5  # float32
  )
  assert values['logits/max'] == pytest.approx(logits[mask > 0].max(), rel=1e-6)


def test_masked_classes_do_not_make_the_entropy_nan():
  logits = np.array([[[0.0, -np.inf, 0.0]]])
  values = _values(base_metrics.compute_logit_metrics(logits, None))
  assert values['logits/entropy'] == pytest.approx(np.log(2), rel=1e-6)


def test_largest_of_microbatches_is_the_largest_of_all():
  first, second = (
      metrics_lib.Maximum.from_model_output(jnp.asarray(x))
      for x in ([1.0, 7.0], [2.0])
  )
  assert float(first.merge(second).compute()) == 7.0


def test_averages_of_other_kinds_are_not_merged():
  one = metrics_lib.AveragesPerStep(total=jnp.ones(2), names=('a', 'b'))
  with pytest.raises(TypeError, match='expected two metrics of one type'):
    one.merge(metrics_lib.AveragePerStep.from_model_output(1.0))
