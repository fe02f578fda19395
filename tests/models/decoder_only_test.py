# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The decoder-only model, causal and with a prefix, keeps its laws."""

import functools
import types

import jax
from jax import numpy as jnp
import numpy as np
import pytest

from t5wild.decoding import beam
from t5wild.decoding import sampling
from t5wild.models import decoder_only
from t5wild.models import decodes
from t5wild.models import prefix_lm
from t5wild.networks import decoder_only as network

_VOCABULARY = types.SimpleNamespace(eos_id=1, pad_id=0, vocab_size=64)
_CONFIG = network.TransformerConfig(
    vocab_size=64,
    emb_dim=16,
    num_heads=2,
    num_kv_heads=1,
    head_dim=8,
    mlp_dim=16,
    num_layers=1,
    positions='rotary',
    dropout_rate=0.3,
)
_MODELS = {
    'causal': decoder_only.DecoderOnlyModel,
    'prefix': prefix_lm.PrefixLanguageModel,
}
_LENGTH = 10
_INPUT_LENGTHS = [4, 2, 5]
_GREEDY = functools.partial(
    sampling.temperature_sample, temperature=0.0, rescale_log_probs=False
)

both = pytest.mark.parametrize('kind', _MODELS)


def _make_model(kind='causal', *, scan_layers=False, **kwargs):
  module = network.DecoderWrapper(_CONFIG.replace(scan_layers=scan_layers))
  return _MODELS[kind](module, _VOCABULARY, None, **kwargs)


def _join(rows, *, num_inputs=_INPUT_LENGTHS):
  """The features of inputs and targets joined to one row each."""
  targets = np.zeros((len(rows), _LENGTH), np.int32)
  for index, row in enumerate(rows):
    targets[index, : len(row)] = row
  inputs = np.asarray(num_inputs)[:, None]
  position = np.arange(_LENGTH)
  return {
      'decoder_input_tokens': np.pad(targets[:, :-1], ((0, 0), (1, 0))),
      'decoder_target_tokens': targets,
      'decoder_loss_weights': ((position >= inputs) & (targets != 0)).astype(
          np.int32
      ),
      'decoder_causal_attention': (position <= inputs).astype(np.int32),
  }


def _make_batch():
  random = np.random.RandomState(0)
  return _join([
      [*random.randint(2, 64, size), 1, *random.randint(2, 64, 3), 1]
      for size in (3, 1, 4)
  ])


@functools.cache
def _make_params(*, scan_layers=False):
  model = _make_model(scan_layers=scan_layers)
  shapes = {name: x.shape for name, x in _make_batch().items()}
  return jax.jit(lambda rng: model.get_initial_variables(rng, shapes))(
      jax.random.PRNGKey(0)
  )['params']


def _predict(model, batch, rng=None, *, scan_layers=False, **kwargs):
  params = _make_params(scan_layers=scan_layers)
  return jax.jit(
      lambda params, batch: model.predict_batch_with_aux(
          params, batch, rng, **kwargs
      )
  )(params, batch)


@both
def test_the_loss_is_the_cross_entropy_of_the_weighted_targets(kind):
  model, params, batch = _make_model(kind), _make_params(), _make_batch()
  logits = np.asarray(jax.jit(model._compute_logits)(params, batch))
  log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
  targets = batch['decoder_target_tokens']
  chosen = np.take_along_axis(log_p, targets[..., None], -1)[..., 0]
  weighted = chosen * batch['decoder_loss_weights']
  loss, metrics = jax.jit(model.eval_fn)(params, batch)
  np.testing.assert_allclose(loss, -weighted.sum(), rtol=1e-5)
  np.testing.assert_allclose(
      metrics['loss_per_nonpadding_target_token'].compute(),
      -weighted.sum() / 12,
      rtol=1e-5,
  )
  scores, intermediates = jax.jit(
      lambda *args: model.score_batch(*args, return_intermediates=True)
  )(params, batch)
  np.testing.assert_allclose(scores, weighted.sum(-1), rtol=1e-5)
  np.testing.assert_allclose(
      intermediates['decoder']['token_scores'][0], weighted, atol=1e-5
  )


def test_only_a_prefix_model_looks_ahead_in_the_inputs():
  params, batch = _make_params(), _make_batch()
  changed = dict(batch)
  # The last input token but one of each row is seen by those before it, or not.
  changed['decoder_input_tokens'] = batch['decoder_input_tokens'].copy()
  changed['decoder_input_tokens'][:, 2] = 63
  for kind, looks_ahead in (('causal', False), ('prefix', True)):
    compute_logits = jax.jit(_make_model(kind)._compute_logits)
    before, after = (compute_logits(params, x) for x in (batch, changed))
    assert (np.abs(before - after)[:, 0].max() > 1e-3) == looks_ahead


def test_prefix_models_of_both_names_are_one_model():
  params, batch = _make_params(), _make_batch()
  by_option = _make_model('causal', inputs_bidirectional_attention=True)
  np.testing.assert_array_equal(
      jax.jit(by_option._compute_logits)(params, batch),
      jax.jit(_make_model('prefix')._compute_logits)(params, batch),
  )


@both
@pytest.mark.parametrize('scan_layers', [False, True])
def test_greedy_decodes_are_the_argmax_of_the_teacher_forced_logits(
    kind, scan_layers
):
  model = _make_model(kind, scan_layers=scan_layers, decode_fn=_GREEDY)
  batch = _make_batch()
  tokens, aux = _predict(
      model, batch, scan_layers=scan_layers,
      decoder_params={'return_token_scores': True},
  )  # fmt: skip
  decoded = [
      [*row[:count], *continuation[: _LENGTH - count]]
      for row, count, continuation in zip(
          batch['decoder_target_tokens'], _INPUT_LENGTHS,
          np.asarray(tokens), strict=True,
      )
  ]  # fmt: skip
  joined = _join(decoded)
  params = _make_params(scan_layers=scan_layers)
  # Padding would be masked; what is decoded after an end token does not count.
  unmasked = {
      'decoder_target_tokens': np.maximum(joined['decoder_target_tokens'], 1)
  }
  logits = jax.jit(model._compute_logits)(params, joined | unmasked)
  is_decoded = joined['decoder_loss_weights'] == 1
  assert is_decoded.sum() > 3
  np.testing.assert_array_equal(
      np.argmax(logits, -1)[is_decoded],
      joined['decoder_target_tokens'][is_decoded],
  )
  scores = jax.jit(model.score_batch)(params, joined)
  np.testing.assert_allclose(aux['scores'], scores, rtol=1e-4)
  np.testing.assert_allclose(
      aux['token_scores'].sum(-1), aux['scores'], rtol=1e-5
  )


def test_a_prompt_read_at_once_decodes_what_it_does_read_token_by_token():
  def without_prefill(
      *, inputs, cache, tokens_to_logits, eos_id, num_decodes, cache_offset
  ):
    return _GREEDY(
        inputs=inputs, cache=cache, tokens_to_logits=tokens_to_logits,
        eos_id=eos_id, num_decodes=num_decodes, cache_offset=cache_offset,
    )  # fmt: skip

  batch = _make_batch()
  tokens, aux = _predict(_make_model(decode_fn=_GREEDY), batch)
  slow, slow_aux = _predict(_make_model(decode_fn=without_prefill), batch)
  np.testing.assert_array_equal(tokens, slow)
  np.testing.assert_allclose(aux['scores'], slow_aux['scores'], rtol=1e-5)
  with pytest.raises(ValueError, match='initial_index.*temperature_sample'):
    _make_model('prefix', decode_fn=without_prefill)


@both
def test_what_is_decoded_does_not_depend_on_the_targets(kind):
  model, batch = _make_model(kind, decode_fn=_GREEDY), _make_batch()
  is_input = batch['decoder_causal_attention'] == 1
  other = dict(batch)
  other['decoder_input_tokens'] = np.where(
      is_input, batch['decoder_input_tokens'], 7
  )
  other['decoder_target_tokens'] = np.full_like(
      batch['decoder_target_tokens'], 9
  )
  np.testing.assert_array_equal(
      _predict(model, batch)[0], _predict(model, other)[0]
  )


_FILLER = -1e6  # what a beam search that found fewer sequences fills up with


def _is_whole(tokens):
  """Which rows, of [batch, length], have padding only after their end token.

  Nothing forbids a random model to draw padding, which is not scored.
  """
  is_padding = tokens == 0
  has_gap = (is_padding[:, :-1] & ~is_padding[:, 1:]).any(-1)
  has_end = (tokens == 1).sum(-1) > 1  # one ends the inputs
  return ~has_gap & (has_end | ~is_padding[:, -1])


@pytest.mark.parametrize('scan_layers', [False, True])
@pytest.mark.parametrize(
    'decode_fn',
    [
        functools.partial(beam.beam_search, alpha=0.0),
        functools.partial(
            sampling.temperature_sample, topk=0, rescale_log_probs=False
        ),
    ],
    ids=['beam search', 'sampling'],
)
def test_several_decodes_have_the_scores_the_model_gives_them(
    decode_fn, scan_layers
):
  model = _make_model('prefix', scan_layers=scan_layers, decode_fn=decode_fn)
  batch = _make_batch()
  arguments = {'num_decodes': 3, 'scan_layers': scan_layers}
  key = jax.random.PRNGKey(2)
  tokens, aux = _predict(
      model, batch, key, return_all_decodes=True, **arguments
  )
  assert tokens.shape == (3, 3, _LENGTH)
  assert (np.diff(aux['scores'], axis=-1) >= 0).all()
  best, best_aux = _predict(model, batch, key, **arguments)
  np.testing.assert_array_equal(best, tokens[:, -1])
  np.testing.assert_array_equal(best_aux['scores'], aux['scores'][:, -1])
  score_batch = jax.jit(model.score_batch)
  params = _make_params(scan_layers=scan_layers)
  num_compared = 0
  for decode in range(3):
    joined = _join([
        [*row[:count], *np.asarray(continuation)[: _LENGTH - count]]
        for row, count, continuation in zip(
            batch['decoder_target_tokens'], _INPUT_LENGTHS,
            tokens[:, decode], strict=True,
        )
    ])  # fmt: skip
    found = np.asarray(aux['scores'][:, decode])
    expected = np.asarray(score_batch(params, joined))
    counts = _is_whole(joined['decoder_target_tokens']) & (found > _FILLER)
    np.testing.assert_allclose(found[counts], expected[counts], rtol=1e-4)
    num_compared += counts.sum()
  assert num_compared > 3


def test_the_loss_and_its_dropout_do_not_depend_on_the_microbatch_of_a_row():
  model, params = _make_model(), _make_params()
  batch = model.annotate_global_batch(_make_batch())
  loss_fn = jax.jit(lambda batch, key: model.loss_fn(params, batch, key)[0])
  key = jax.random.PRNGKey(3)
  whole = loss_fn(batch, key)
  parts = [
      loss_fn({name: x[row : row + 1] for name, x in batch.items()}, key)
      for row in range(3)
  ]
  np.testing.assert_allclose(sum(parts), whole, rtol=1e-6)
  assert abs(loss_fn(batch, jax.random.PRNGKey(4)) - whole) > 1e-3


def test_prefixes_are_removed():
  tokens = jnp.array([[1, 2, 3, 4, 5, 6, 7, 0], [1, 2, 3, 4, 5, 6, 7, 8]])
  np.testing.assert_array_equal(
      decodes.remove_prefix(tokens, jnp.array([2, 0])),
      [[3, 4, 5, 6, 7, 0, 0, 0], [1, 2, 3, 4, 5, 6, 7, 8]],
  )
  several = jnp.stack([tokens, tokens + 10], axis=1)
  np.testing.assert_array_equal(
      decodes.remove_prefix(several, jnp.array([7, 6]))[:, 1],
      [[10] + [0] * 7, [17, 18] + [0] * 6],
  )


@both
def test_data_of_an_encoder_decoder_is_refused_when_built(kind):
  shapes = {'encoder_input_tokens': (2, 4), 'decoder_target_tokens': (2, 4)}
  with pytest.raises(ValueError) as raised:
    _make_model(kind).get_initial_variables(jax.random.PRNGKey(0), shapes)
  message = str(raised.value)
  assert "['decoder_input_tokens'" in message
  assert "'encoder_input_tokens'" in message
  assert "'targets'" in message


def test_data_without_inputs_is_refused_by_a_prefix_model_when_built():
  shapes = {'decoder_input_tokens': (2, 4), 'decoder_target_tokens': (2, 4)}
  with pytest.raises(
      ValueError,
      match=r'decoder_causal_attention[^!]*TASK_FEATURE_LENGTHS',
  ):
    _make_model('prefix').get_initial_variables(jax.random.PRNGKey(0), shapes)
  _make_model().get_initial_variables(jax.random.PRNGKey(0), shapes)


def test_predictions_without_inputs_are_refused():
  batch = _make_batch()
  del batch['decoder_causal_attention']
  with pytest.raises(ValueError, match=r"continues 'inputs'"):
    _make_model().predict_batch_with_aux(_make_params(), batch)


def test_two_keys_to_decode_with_are_refused():
  key = jax.random.PRNGKey(0)
  with pytest.raises(ValueError, match='two keys'):
    _make_model().predict_batch_with_aux(
        _make_params(), _make_batch(), key, decoder_params={'decode_rng': key}
    )
