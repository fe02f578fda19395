# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The contract, through the smallest model that keeps it."""


from flax import linen as nn
import gin
import jax
from jax import numpy as jnp
import numpy as np
import pytest

from t5wild import losses
from t5wild.models import base
from tests import gin_registry


class _Table(nn.Module):
  """A user's network, unaware of `dropout_rows`."""

  @nn.compact
  def __call__(self, tokens):
    calls = self.variable('counters', 'calls', lambda: jnp.zeros(()))
    calls.value = calls.value + 1
    return nn.Embed(7, 7)(tokens)


class _RowTable(nn.Module):
  """A network that takes `dropout_rows`."""

  def __call__(self, tokens, dropout_rows=None):
    del dropout_rows
    return tokens


class _TableModel(base.BaseTransformerModel):
  """A user's model: `_compute_logits` has T5X's arguments only."""

  def _compute_logits(self, params, batch, dropout_rng=None):
    del dropout_rng
    return params['table'][batch['decoder_input_tokens']]

  def predict_batch_with_aux(self, params, batch, rng=None):
    del rng
    return self._compute_logits(params, batch).argmax(-1), {'extra': 1}

  def score_batch(self, params, batch, return_intermediates=False):
    raise NotImplementedError

  def get_initial_variables(self, rng, input_shapes, input_types=None):
    raise NotImplementedError


class _MutableModel(_TableModel):
  """A model whose network has variables besides its parameters."""

  def _compute_logits(
      self, params, batch, dropout_rng=None, mutable=False, other_variables=None
  ):
    return self.module.apply(
        {'params': params, **other_variables},
        batch['decoder_input_tokens'],
        mutable=mutable,
    )


def _make_model(cls=_TableModel, module=None, **kwargs):
  return cls(module or _Table(), None, None, None, **kwargs)


def _make_batch(rows=4):
  rng = np.random.RandomState(0)
  targets = rng.randint(1, 7, size=(rows, 5))
  lengths = 1 + np.arange(rows) % 5
  targets *= np.arange(5) < lengths[:, None]
  return {
      'encoder_input_tokens': jnp.asarray(targets),
      'decoder_input_tokens': jnp.asarray(np.roll(targets, 1, axis=1)),
      'decoder_target_tokens': jnp.asarray(targets),
      'decoder_loss_weights': jnp.asarray(targets != 0, jnp.int32),
  }


def _make_params():
  table = np.random.RandomState(1).normal(size=(7, 7))
  return {'table': jnp.asarray(table, jnp.float32)}


def test_eval_is_the_loss_without_dropout():
  model, params, batch = _make_model(), _make_params(), _make_batch()
  loss, metrics = jax.jit(model.eval_fn)(params, batch)
  assert loss == jax.jit(model.loss_fn)(params, batch, None)[0]
  assert metrics['loss'].compute() == loss


def test_predictions_are_the_first_of_those_with_aux():
  model, params, batch = _make_model(), _make_params(), _make_batch()
  predictions, aux = model.predict_batch_with_aux(params, batch)
  np.testing.assert_array_equal(
      model.predict_batch(params, batch), predictions
  )
  assert aux == {'extra': 1}


@pytest.mark.parametrize(
    'factor', [None, 3.0, *losses.SpecialLossNormalizingFactor]
)
def test_annotated_microbatches_add_up_to_the_whole_batch(factor):
  model = _make_model(loss_normalizing_factor=factor, z_loss=0.01)
  params, batch = _make_params(), _make_batch()
  step = jax.jit(jax.value_and_grad(lambda p, b: model.loss_fn(p, b, None)[0]))
  whole, whole_gradient = step(params, batch)
  annotated = model.annotate_global_batch(batch)
  halves = [
      step(params, {name: value[rows] for name, value in annotated.items()})
      for rows in (slice(0, 2), slice(2, 4))
  ]
  np.testing.assert_allclose(sum(loss for loss, _ in halves), whole, rtol=1e-6)
  np.testing.assert_allclose(
      sum(gradient['table'] for _, gradient in halves),
      whole_gradient['table'],
      atol=1e-6,
  )


@pytest.mark.parametrize('factor', [3.0, 'NUM_REAL_TARGET_TOKENS'])
def test_loss_per_token_does_not_depend_on_the_normaliser(factor):
  params, batch = _make_params(), _make_batch()
  model = _make_model(loss_normalizing_factor=factor, z_loss=0.01)
  _, metrics = model.eval_fn(params, batch)
  _, plain = _make_model(z_loss=0.01).eval_fn(params, batch)
  names = [name for name in plain if 'loss_per_' in name]
  assert len(names) == 4
  for name in names:
    np.testing.assert_allclose(
        metrics[name].compute(), plain[name].compute(), rtol=1e-6
    )


def test_only_special_normalisers_annotate_one():
  batch = _make_batch()
  for factor in (None, 3.0):
    annotated = _make_model(
        loss_normalizing_factor=factor
    ).annotate_global_batch(batch)
    assert 'global_loss_normalizer' not in annotated
  annotated = _make_model(
      loss_normalizing_factor='NUM_TOTAL_TARGET_TOKENS'
  ).annotate_global_batch(batch)
  np.testing.assert_array_equal(
      annotated['global_loss_normalizer'], np.full((4,), 20.0, np.float32)
  )


def test_rows_are_numbered_for_networks_that_take_them():
  batch = _make_batch()
  annotated = _make_model(module=_RowTable()).annotate_global_batch(batch)
  np.testing.assert_array_equal(annotated['global_row'], np.arange(4))
  assert annotated['global_row'].dtype == jnp.int32
  assert 'global_row' not in _make_model().annotate_global_batch(batch)


def test_annotating_leaves_the_batch_alone():
  batch = _make_batch()
  before = dict(batch)
  _make_model(
      loss_normalizing_factor='NUM_REAL_TARGET_TOKENS'
  ).annotate_global_batch(batch)
  assert set(batch) == set(before)


def test_mutables_are_handed_on_and_given_back():
  model, batch = _make_model(_MutableModel), _make_batch()
  variables = model.module.init(
      jax.random.PRNGKey(0), batch['decoder_input_tokens']
  )
  mutables = {'counters': variables['counters']}
  params = variables['params']
  loss, (metrics, after) = model.loss_fn(params, batch, None, mutables)
  assert after['counters']['calls'] == mutables['counters']['calls'] + 1
  assert metrics['loss'].compute() == loss
  eval_loss, eval_metrics = model.eval_fn(params, batch, mutables)
  assert eval_loss == loss
  assert set(eval_metrics) == set(metrics)


@pytest.mark.parametrize(
    ('kwargs', 'message'),
    [
        ({'label_smoothing': 1.0}, r'label_smoothing is 1\.0'),
        ({'z_loss': -1e-4}, r'z_loss is -0\.0001'),
        ({'loss_normalizing_factor': 0}, 'loss_normalizing_factor is 0'),
        ({'loss_normalizing_factor': 'TOKENS'}, "'TOKENS'.*did you mean"),
    ],
)
def test_a_loss_that_is_none_is_refused_when_built(kwargs, message):
  with pytest.raises(ValueError, match=message):
    _make_model(**kwargs)


@pytest.mark.parametrize(
    'given',
    [
        {'label_smoothing': 0.1},
        {'z_loss': 0.5},
        {'loss_normalizing_factor': 2.0},
        {'loss_normalizing_factor': None},
    ],
)
def test_what_loss_fn_is_given_comes_before_the_constructors(given):
  built = {'label_smoothing': 0.2, 'z_loss': 1.0, 'loss_normalizing_factor': 7}
  params, batch = _make_params(), _make_batch()
  loss, _ = _make_model(**built).loss_fn(params, batch, None, **given)
  expected, _ = _make_model(**{**built, **given}).loss_fn(params, batch, None)
  assert loss == expected
  assert loss != _make_model(**built).loss_fn(params, batch, None)[0]


@pytest.fixture
def empty_gin():
  """gin has no bindings before and after, nor these classes."""
  gin_registry.forget()
  yield
  gin_registry.forget()


def test_what_gin_binds_of_a_loss_fn_is_what_is_differentiated(empty_gin):
  gin.parse_config([
      'from __gin__ import dynamic_registration',
      f'import {__name__} as own',
      'own._TableModel.loss_fn.z_loss = 0.5',
  ])
  model = gin.get_configurable(_TableModel)(_Table(), None, None, None)
  params, batch = _make_params(), _make_batch()
  step = jax.value_and_grad(model.loss_fn, has_aux=True)
  (loss, _), _ = step(params, batch, None, None)
  assert loss == _make_model(z_loss=0.5).loss_fn(params, batch, None)[0]
  assert loss != _make_model().loss_fn(params, batch, None)[0]


def test_vocabularies_are_reached_by_functions_for_gin():
  model = _TableModel(_Table(), 'in', 'out', None, decode_fn=len)
  assert base.get_input_vocabulary(model) == 'in'
  assert base.get_output_vocabulary(model) == 'out'
  assert model.decode_fn is len
