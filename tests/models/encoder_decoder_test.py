# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The encoder-decoder model beyond T5X's numbers."""

import types

from flax import core as flax_core
from flax import linen as nn
import jax
from jax import numpy as jnp
import numpy as np
import pytest

from t5wild.decoding import beam
from t5wild.decoding import greedy
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
  dtypes = {'encoder_input_tokens': jnp.int32, 'decoder_segment_ids': jnp.int8}
  variables = jax.eval_shape(
      lambda rng: make().get_initial_variables(rng, shapes, dtypes),
      jax.random.PRNGKey(0),
  )
  assert isinstance(variables, flax_core.FrozenDict)
  assert set(variables) == {'params', 'params_axes'}
  embedding = variables['params']['token_embedder']['embedding']
  assert embedding.shape == (384, 8)


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


class _Network(nn.Module):
  """The least a network can be: noise by row, and a cache."""

  def __call__(
      self,
      encoder_input_tokens,
      decoder_input_tokens,
      *_,
      dropout_rows=None,
      enable_dropout=True,
      **__,
  ):
    encoded = self.encode(encoder_input_tokens)
    logits = self.decode(encoded, encoder_input_tokens, decoder_input_tokens)
    if not enable_dropout:
      return logits
    key = self.make_rng('dropout')
    keys = jax.vmap(lambda row: jax.random.fold_in(key, row))(dropout_rows)
    noise = jax.vmap(lambda key: jax.random.normal(key, logits.shape[1:]))(keys)
    return logits + noise

  def encode(self, encoder_input_tokens, enable_dropout=True):
    del enable_dropout
    return encoder_input_tokens[..., None]

  def decode(self, encoded, inputs, decoder_input_tokens, *_, **__):
    del encoded, inputs
    if self.is_mutable_collection('cache'):
      self.put_variable('cache', 'cached_key', decoder_input_tokens * 0)
    return jax.nn.one_hot(decoder_input_tokens, 384)


def _make_spied_model(calls, **kwargs):
  """A model whose decoding function notes its arguments."""

  def decode_fn(*, inputs, num_decodes, **kwargs):
    calls.append({'inputs': inputs, 'num_decodes': num_decodes} | kwargs)
    shape = (inputs.shape[0], num_decodes, inputs.shape[1])
    scores = jnp.broadcast_to(jnp.arange(num_decodes), shape[:2])
    return jnp.broadcast_to(scores[..., None], shape), scores

  vocabulary = types.SimpleNamespace(eos_id=1, pad_id=0, vocab_size=384)
  return encoder_decoder.EncoderDecoderModel(
      _Network(), vocabulary, vocabulary, None, decode_fn=decode_fn, **kwargs
  )


def test_loss_and_dropout_do_not_depend_on_the_microbatch_of_a_row():
  model = _make_spied_model(
      [], loss_normalizing_factor='AVERAGE_PER_SEQUENCE', z_loss=0.1
  )
  loss_fn = jax.jit(lambda *args: model.loss_fn(*args)[0])
  batch = model.annotate_global_batch(_make_batch())
  key = jax.random.PRNGKey(3)

  def loss_of(*rows):
    rows = jnp.asarray(rows)
    return loss_fn({}, {name: x[rows] for name, x in batch.items()}, key)

  whole = loss_of(0, 1, 2, 3)
  np.testing.assert_allclose(loss_of(0, 1) + loss_of(2, 3), whole, rtol=1e-6)
  np.testing.assert_allclose(loss_of(3, 0) + loss_of(1, 2), whole, rtol=1e-6)
  assert loss_fn({}, batch, jax.random.PRNGKey(4)) != whole


def _predict(model, **kwargs):
  return model.predict_batch_with_aux({}, _make_batch(), **kwargs)


def test_the_best_decode_is_the_last():
  model = _make_spied_model([])
  tokens, aux = _predict(model, num_decodes=3)
  np.testing.assert_array_equal(tokens, np.full((4, 5), 2))
  np.testing.assert_array_equal(aux['scores'], np.full((4,), 2))
  tokens, aux = _predict(model, num_decodes=3, return_all_decodes=True)
  assert tokens.shape == (4, 3, 5)
  np.testing.assert_array_equal(aux['scores'][0], [0, 1, 2])


def test_decoding_arguments_reach_the_decoding_function():
  calls = []
  model = _make_spied_model(
      calls, default_decoder_params=encoder_decoder.DecoderParams(num_decodes=2)
  )
  given = {'alpha': 0.6}
  _predict(model, decoder_params=given, rng=jax.random.PRNGKey(5))
  _predict(model, decoder_params={'eos_id': 7}, num_decodes=1)
  assert calls[0]['num_decodes'] == 2
  assert calls[0]['alpha'] == 0.6
  assert calls[0]['eos_id'] == 1
  assert calls[0]['cache_offset'] == 0
  assert calls[0]['cache']['cached_key'].shape == (4, 5)
  np.testing.assert_array_equal(calls[0]['decode_rng'], jax.random.PRNGKey(5))
  assert given == {'alpha': 0.6}
  assert calls[1]['eos_id'] == 7
  assert calls[1]['num_decodes'] == 1
  assert 'decode_rng' not in calls[1]


def test_a_step_serves_every_decode_of_every_input():
  calls = []
  _predict(_make_spied_model(calls), num_decodes=3)
  step = calls[0]['tokens_to_logits'].keywords
  batch = _make_batch()
  expected = np.repeat(batch['encoder_input_tokens'], 3, axis=0)
  np.testing.assert_array_equal(step['raw_inputs'], expected)
  np.testing.assert_array_equal(step['encoded_inputs'][..., 0], expected)
  assert step['max_decode_length'] == 5


def test_a_prompt_is_forced_without_its_end_tokens():
  calls = []
  model = _make_spied_model(calls)
  batch = _make_batch()
  batch['decoder_input_tokens'] = batch['decoder_input_tokens'].at[0, 2].set(1)
  model.predict_batch_with_aux({}, batch, prompt_with_targets=True)
  model.predict_batch_with_aux({}, batch)
  expected = np.array(batch['decoder_input_tokens'])
  expected[0, 2] = 0
  np.testing.assert_array_equal(calls[0]['inputs'], expected)
  assert not np.any(calls[1]['inputs'])


def test_two_keys_to_decode_with_are_refused():
  key = jax.random.PRNGKey(0)
  with pytest.raises(ValueError, match='two keys'):
    _predict(_make_spied_model([]), rng=key, decoder_params={'decode_rng': key})


def test_a_number_of_decodes_below_one_is_refused():
  with pytest.raises(ValueError, match='num_decodes is 0'):
    encoder_decoder.DecoderParams(num_decodes=0)


def test_greedy_decodes_are_the_argmax_of_the_teacher_forced_logits(small):
  make, params = small
  model = make(decode_fn=greedy.greedy_decode)
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
  scores = jax.jit(model.score_batch)(params, batch)
  same, intermediates = jax.jit(
      lambda *args: model.score_batch(*args, return_intermediates=True)
  )(params, batch)
  np.testing.assert_allclose(same, scores, rtol=1e-6)
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


def test_the_default_decoding_is_the_beam_search_of_t5x():
  vocabulary = types.SimpleNamespace(eos_id=1, pad_id=0, vocab_size=384)
  model = encoder_decoder.EncoderDecoderModel(
      _Network(), vocabulary, vocabulary, None
  )
  assert model.decode_fn is beam.beam_search


def test_scores_without_weights_count_all_but_padding(small):
  make, params = small
  batch = _make_batch()
  score_batch = jax.jit(make().score_batch)
  weighted = score_batch(params, batch)
  del batch['decoder_loss_weights']
  np.testing.assert_allclose(score_batch(params, batch), weighted, rtol=1e-6)
