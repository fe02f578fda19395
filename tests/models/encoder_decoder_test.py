# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The encoder-decoder model beyond T5X's numbers."""

from flax import core as flax_core
from flax import traverse_util
import jax
from jax import numpy as jnp
import numpy as np
import pytest

from t5wild.models import encoder_decoder

_SMALL = {
    'emb_dim': 8,
    'num_heads': 2,
    'head_dim': 4,
    'mlp_dim': 16,
    'num_encoder_layers': 1,
    'num_decoder_layers': 1,
    'dropout_rate': 0.3,
}
_SHAPES = {'encoder_input_tokens': (4, 6), 'decoder_input_tokens': (4, 5)}


def _make_batch():
  rng = np.random.RandomState(0)
  inputs = rng.randint(2, 384, size=(4, 6))
  targets = rng.randint(2, 384, size=(4, 5))
  targets *= np.arange(5) < np.asarray([[5], [2], [3], [4]])
  shifted = np.pad(targets, ((0, 0), (1, 0)))[:, :-1]
  return {
      'encoder_input_tokens': jnp.asarray(inputs),
      'decoder_input_tokens': jnp.asarray(shifted),
      'decoder_target_tokens': jnp.asarray(targets),
      'decoder_loss_weights': jnp.asarray(targets != 0, jnp.int32),
  }


@pytest.fixture(name='small', scope='module')
def small_fixture(make_model):
  """(a maker of small models, parameters)."""

  def make(*, config_changes=None, **kwargs):
    changes = _SMALL | (config_changes or {})
    return make_model(config_changes=changes, **kwargs)

  variables = jax.jit(
      lambda rng: make().get_initial_variables(rng, _SHAPES)
  )(jax.random.PRNGKey(0))
  return make, variables['params']


def test_initial_variables_hold_parameters_and_their_axes(small):
  make, _ = small
  shapes = _SHAPES | {
      'encoder_positions': (4, 6),
      'decoder_positions': (4, 5),
      'encoder_segment_ids': (4, 6),
      'decoder_segment_ids': (4, 5),
  }
  types = {'encoder_input_tokens': jnp.int32, 'decoder_segment_ids': jnp.int8}
  variables = jax.eval_shape(
      lambda rng: make().get_initial_variables(rng, shapes, types),
      jax.random.PRNGKey(0),
  )
  assert isinstance(variables, flax_core.FrozenDict)
  assert set(variables) == {'params', 'params_axes'}
  embedding = variables['params']['token_embedder']['embedding']
  assert embedding.shape == (384, 8)


@pytest.mark.parametrize('factor', [None, 'AVERAGE_PER_SEQUENCE'])
def test_dropout_and_loss_do_not_depend_on_the_microbatches(small, factor):
  make, params = small
  model = make(loss_normalizing_factor=factor)
  step = jax.jit(jax.value_and_grad(lambda p, b, k: model.loss_fn(p, b, k)[0]))
  key = jax.random.PRNGKey(3)
  batch = model.annotate_global_batch(_make_batch())
  whole, whole_gradient = step(params, batch, key)
  parts = [
      step(params, {name: value[rows] for name, value in batch.items()}, key)
      for rows in (slice(0, 2), slice(2, 4))
  ]
  np.testing.assert_allclose(sum(loss for loss, _ in parts), whole, rtol=1e-6)
  summed = jax.tree.map(jnp.add, *(gradient for _, gradient in parts))
  for path, expected in traverse_util.flatten_dict(
      flax_core.unfreeze(whole_gradient)
  ).items():
    ours = traverse_util.flatten_dict(flax_core.unfreeze(summed))[path]
    np.testing.assert_allclose(
        ours, expected, rtol=0, atol=1e-5 * np.abs(expected).max()
    )
  without, _ = step(params, batch, jax.random.PRNGKey(4))
  assert without != whole


def test_bfloat16_activations_give_float32_losses_near_the_exact_ones(small):
  make, params = small
  batch = _make_batch()
  exact, _ = jax.jit(make().eval_fn)(params, batch)
  low = make(config_changes={'dtype': jnp.bfloat16}, z_loss=0.0)
  (loss, metrics), gradient = jax.jit(
      jax.value_and_grad(low.loss_fn, has_aux=True)
  )(params, batch, None)
  assert loss.dtype == jnp.float32
  assert metrics['loss'].compute().dtype == jnp.float32
  assert {leaf.dtype for leaf in jax.tree.leaves(gradient)} == {
      jnp.dtype(jnp.float32)
  }
  # bfloat16 keeps 8 bits; the loss is about 6 nats a token.
  np.testing.assert_allclose(loss, exact, rtol=1e-2)


def _make_spy(calls):
  """A decoding function that notes its arguments."""

  def decode_fn(*, inputs, num_decodes, tokens_to_logits, cache, **kwargs):
    calls.append({'inputs': inputs, 'num_decodes': num_decodes} | kwargs)
    shape = (inputs.shape[0], num_decodes, inputs.shape[1])
    scores = jnp.broadcast_to(jnp.arange(num_decodes), shape[:2])
    return jnp.broadcast_to(scores[..., None], shape), scores

  return decode_fn


def _predict(model, params, **kwargs):
  return model.predict_batch_with_aux(params, _make_batch(), **kwargs)


def test_the_best_decode_is_the_last(small):
  make, params = small
  model = make(decode_fn=_make_spy([]))
  tokens, aux = _predict(model, params, num_decodes=3)
  np.testing.assert_array_equal(tokens, np.full((4, 5), 2))
  np.testing.assert_array_equal(aux['scores'], np.full((4,), 2))
  tokens, aux = _predict(
      model, params, num_decodes=3, return_all_decodes=True
  )
  assert tokens.shape == (4, 3, 5)
  np.testing.assert_array_equal(aux['scores'][0], [0, 1, 2])


def test_decoding_arguments_reach_the_decoding_function(small):
  make, params = small
  calls = []
  model = make(
      decode_fn=_make_spy(calls),
      default_decoder_params=encoder_decoder.DecoderParams(num_decodes=2),
  )
  given = {'alpha': 0.6}
  _predict(model, params, decoder_params=given, rng=jax.random.PRNGKey(5))
  _predict(model, params, decoder_params={'eos_id': 7}, num_decodes=1)
  assert calls[0]['num_decodes'] == 2
  assert calls[0]['alpha'] == 0.6
  assert calls[0]['eos_id'] == 1
  assert calls[0]['cache_offset'] == 0
  np.testing.assert_array_equal(calls[0]['decode_rng'], jax.random.PRNGKey(5))
  assert given == {'alpha': 0.6}
  assert calls[1]['eos_id'] == 7
  assert calls[1]['num_decodes'] == 1
  assert 'decode_rng' not in calls[1]


def test_a_prompt_is_forced_without_its_end_tokens(small):
  make, params = small
  calls = []
  model = make(decode_fn=_make_spy(calls))
  batch = _make_batch()
  batch['decoder_input_tokens'] = batch['decoder_input_tokens'].at[0, 2].set(1)
  model.predict_batch_with_aux(params, batch, prompt_with_targets=True)
  model.predict_batch_with_aux(params, batch)
  expected = np.array(batch['decoder_input_tokens'])
  expected[0, 2] = 0
  np.testing.assert_array_equal(calls[0]['inputs'], expected)
  assert not np.any(calls[1]['inputs'])


def test_two_keys_to_decode_with_are_refused(small):
  make, params = small
  key = jax.random.PRNGKey(0)
  with pytest.raises(ValueError, match='two keys'):
    _predict(
        make(), params, rng=key, decoder_params={'decode_rng': key}
    )


def test_a_number_of_decodes_below_one_is_refused():
  with pytest.raises(ValueError, match='num_decodes is 0'):
    encoder_decoder.DecoderParams(num_decodes=0)


def test_greedy_decodes_are_the_argmax_of_the_teacher_forced_logits(small):
  make, params = small
  model = make()
  batch = _make_batch()
  tokens, aux = jax.jit(model.predict_batch_with_aux)(params, batch)
  decoded = batch | {
      'decoder_input_tokens': jnp.pad(tokens, ((0, 0), (1, 0)))[:, :-1],
      'decoder_target_tokens': jnp.maximum(tokens, 1),
  }
  logits = jax.jit(model._compute_logits)(params, decoded)
  mask = np.asarray(tokens) != 0
  assert mask.any()
  np.testing.assert_array_equal(
      np.asarray(logits.argmax(-1))[mask], np.asarray(tokens)[mask]
  )
  decoded['decoder_target_tokens'] = tokens
  decoded['decoder_loss_weights'] = jnp.asarray(mask)
  scores = jax.jit(model.score_batch)(params, decoded)
  np.testing.assert_allclose(aux['scores'], scores, rtol=1e-5)


def test_intermediates_hold_targets_weights_and_token_scores(small):
  make, params = small
  model, batch = make(z_loss=0.1, label_smoothing=0.1), _make_batch()
  scores = model.score_batch(params, batch)
  same, intermediates = model.score_batch(
      params, batch, return_intermediates=True
  )
  np.testing.assert_array_equal(same, scores)
  decoder = intermediates['decoder']
  np.testing.assert_array_equal(
      decoder['target_tokens'][0], batch['decoder_target_tokens']
  )
  np.testing.assert_array_equal(
      decoder['loss_weights'][0], batch['decoder_loss_weights']
  )
  np.testing.assert_allclose(
      decoder['token_scores'][0].sum(-1), scores, rtol=1e-6
  )


def test_scores_without_weights_count_all_but_padding(small):
  make, params = small
  batch = _make_batch()
  weighted = make().score_batch(params, batch)
  del batch['decoder_loss_weights']
  np.testing.assert_array_equal(make().score_batch(params, batch), weighted)
