# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Sampling against the distributions it is to draw from."""

import jax
from jax import numpy as jnp
import numpy as np
import pytest
from scipy import stats

from t5wild.decoding import greedy
from t5wild.decoding import sampling
from tests.decoding import toy_models

_EOS = toy_models.EOS
_VOCAB = 16


def _model(seed=0, **kwargs):
  return toy_models.HistoryModel(
      toy_models.make_weights(seed, vocab=_VOCAB, **kwargs)
  )


def _sample(model, inputs, **kwargs):
  return toy_models.decode(
      sampling.temperature_sample, model, inputs, **kwargs
  )


def _expected_distribution(logits, *, temperature=1.0, topk=0, topp=0.0):
  """Probabilities by sorting in numpy."""
  scaled = logits.astype(np.float64) / temperature
  probabilities = np.exp(scaled - scaled.max())
  probabilities /= probabilities.sum()
  order = np.argsort(-probabilities)
  kept = len(order)
  if topk:
    kept = topk
  if topp:
    kept = 1 + np.searchsorted(np.cumsum(probabilities[order]), topp)
  chosen = np.zeros_like(probabilities)
  chosen[order[:kept]] = probabilities[order[:kept]]
  return chosen / chosen.sum()


_DISTRIBUTIONS = [
    {'topk': 0},
    {'topk': 0, 'temperature': 0.5},
    {'topk': 0, 'temperature': 2.0},
    {'topk': 5},
    {'topk': 3, 'temperature': 1.7},
    {'topk': 0, 'topp': 0.7},
    {'topk': 0, 'topp': 0.9, 'temperature': 1.5},
    {'topk': 0, 'topp': 1.0},
]


@pytest.mark.parametrize('settings', _DISTRIBUTIONS, ids=str)
def test_frequencies_pass_a_chi_square_test(settings):
  number, length = 500, 8
  logits = np.random.RandomState(7).normal(size=12).astype(np.float32)
  logits[[0, _EOS]] = -1e4  # no padding, no end: all positions are alike

  def tokens_to_logits(decoding_state):
    rows = decoding_state.cur_token.shape[0]
    return jnp.broadcast_to(logits, (rows, 12)), decoding_state.cache

  tokens, _ = jax.jit(
      lambda key: sampling.temperature_sample(
          jnp.zeros((2, length), jnp.int32), {}, tokens_to_logits, _EOS, key,
          num_decodes=number, **settings,
      )
  )(jax.random.key(1))
  counts = np.bincount(np.asarray(tokens).ravel(), minlength=12)
  expected = _expected_distribution(logits, **settings)
  assert not counts[expected < 1e-9].any()
  possible = expected >= 1e-9
  _, p_value = stats.chisquare(
      counts[possible], counts.sum() * expected[possible]
  )
  assert p_value > 1e-3


@pytest.mark.parametrize(
    'settings', [{'temperature': 0.0, 'topk': 4}, {'topk': 1}], ids=str
)
def test_no_temperature_and_one_candidate_are_greedy(settings):
  inputs = np.zeros((5, 10))
  greedily = toy_models.decode(greedy.greedy_decode, _model(), inputs)
  for rescale in (True, False):
    tokens, scores = _sample(
        _model(), inputs, rescale_log_probs=rescale, **settings
    )
    np.testing.assert_array_equal(tokens, greedily[0])
    expected = np.zeros_like(scores) if rescale else greedily[1]
    np.testing.assert_allclose(scores, expected, rtol=1e-6)


def _check_scores(model, results, prompt_sizes):
  tokens, scores, token_scores = results
  length = tokens.shape[-1]
  for row, size in enumerate(prompt_sizes):
    for decode in range(tokens.shape[1]):
      decoded = tokens[row, decode]
      decoded = decoded[: np.count_nonzero(decoded)]
      forced = model.token_scores(decoded)
      forced[:size] = 0
      np.testing.assert_allclose(
          token_scores[row, decode], toy_models.padded(forced, length),
          rtol=1e-4, atol=1e-5,
      )
      np.testing.assert_allclose(scores[row, decode], forced.sum(), rtol=1e-5)


def test_scores_are_the_sums_of_teacher_forced_log_probabilities():
  model = _model()
  results = _sample(
      model, np.zeros((3, 12)), num_decodes=4, topk=6, temperature=0.8,
      rescale_log_probs=False, return_token_scores=True,
  )
  _check_scores(model, results, [0, 0, 0])
  assert np.all(np.diff(results[1], axis=1) >= 0)
  assert len(np.unique(results[0].reshape(12, -1), axis=0)) > 6


def test_prompts_are_kept_and_score_nothing():
  model = _model(1)
  prompts = np.zeros((2, 9), int)
  prompts[0, 1:4] = [5, _EOS, 3]  # a prompt's end token ends nothing
  prompts[1, 1] = 9
  results = _sample(
      model, prompts, topk=0, num_decodes=3, return_token_scores=True
  )
  _check_scores(model, results, [3, 1])
  for row, size in enumerate([3, 1]):
    np.testing.assert_array_equal(
        results[0][row, :, :size], [prompts[row, 1 : size + 1]] * 3
    )


def test_rescaled_scores_are_those_of_the_distribution_drawn_from():
  logits = np.random.RandomState(3).normal(size=(1, 9)).astype(np.float32)

  def tokens_to_logits(decoding_state):
    rows = decoding_state.cur_token.shape[0]
    return jnp.broadcast_to(logits, (rows, 9)), decoding_state.cache

  settings = {'topk': 4, 'temperature': 0.7}
  tokens, scores, token_scores = sampling.temperature_sample(
      jnp.zeros((1, 1), jnp.int32), {}, tokens_to_logits, 8,
      num_decodes=20, return_token_scores=True, **settings,
  )
  expected = np.log(_expected_distribution(logits[0], **settings)[tokens[0]])
  np.testing.assert_allclose(token_scores[0], expected, rtol=1e-5)
  np.testing.assert_allclose(scores[0], expected[:, 0], rtol=1e-5)


def test_each_input_may_have_its_own_temperature():
  inputs = np.zeros((4, 8))
  together, _ = _sample(
      _model(), inputs, temperature=np.full(4, 0.9, np.float32), topk=0
  )
  alone, _ = _sample(_model(), inputs, temperature=0.9, topk=0)
  np.testing.assert_array_equal(together, alone)
  mixed, scores = _sample(
      _model(), inputs, temperature=np.array([0.0, 0.9, 0.9, 0.0]), topk=0
  )
  coldest, _ = _sample(_model(), inputs, temperature=0.0)
  np.testing.assert_array_equal(mixed[[1, 2]], alone[[1, 2]])
  np.testing.assert_array_equal(mixed[[0, 3]], coldest[[0, 3]])
  np.testing.assert_array_equal(scores[[0, 3]], np.zeros((2, 1)))


@pytest.mark.parametrize('settings', _DISTRIBUTIONS[3:7], ids=str)
def test_settings_may_be_arguments_of_the_compiled_function(settings):
  model = _model()

  def decode(**kwargs):
    return sampling.temperature_sample(
        jnp.zeros((3, 6), jnp.int32), model.make_cache(3), model, _EOS,
        **kwargs,
    )

  traced, _ = jax.jit(lambda kwargs: decode(**kwargs))(settings)
  static, _ = jax.jit(lambda: decode(**settings))()
  np.testing.assert_array_equal(traced, static)


def test_decodes_of_scanned_caches_are_those_of_plain_ones():
  weights = toy_models.make_weights(2, vocab=_VOCAB)
  results = [
      toy_models.decode(
          sampling.temperature_sample,
          toy_models.HistoryModel(weights, offset=offset),
          np.zeros((2, 6)), num_decodes=3, topk=0,
      )
      for offset in (0, 1)
  ]
  np.testing.assert_array_equal(results[0][0], results[1][0])


def test_a_repetition_penalty_is_that_of_a_plain_loop():
  model = _model(4, allowed=range(2, _VOCAB))
  penalty, length = 1.8, 10
  prompt = np.array([[0, 5, 7, 0, 0, 0, 0, 0, 0, 0]])
  tokens, _ = _sample(
      model, prompt, temperature=0.0, repetition_penalty=penalty
  )
  rows, before, expected = np.zeros(_VOCAB), 0, []
  for position in range(length):
    logits = model.current[before] + rows + model.bias
    for seen in {*expected}:
      logits[seen] *= 1 / penalty if logits[seen] > 0 else penalty
    rows, forced = 0.5 * rows + model.past[before], 0
    if position + 1 < length:
      forced = prompt[0, position + 1]
    before = int(forced or np.argmax(logits))
    expected.append(before)
    if before == _EOS:
      break
  np.testing.assert_array_equal(
      tokens[0, 0], toy_models.padded(expected, length)
  )
  unpenalized, _ = _sample(model, prompt, temperature=0.0)
  assert not np.array_equal(tokens, unpenalized)


def _fill(model, inputs, last):
  rows = np.zeros((len(inputs), _VOCAB), np.float32)
  for row, tokens in enumerate(inputs):
    for token in tokens[: last[row]]:
      rows[row] = 0.5 * rows[row] + model.past[token]
  return {
      'cached_sum': jnp.asarray(rows),
      'cache_index': jnp.asarray(last, jnp.float32),
  }


@pytest.mark.parametrize('max_decode_steps', [None, 3])
def test_a_filled_cache_gives_the_decodes_of_a_forced_prompt(max_decode_steps):
  model = _model(3, allowed=range(2, _VOCAB))
  inputs = np.array([[0, 5, 7, 3, 0, 0, 0, 0], [0, 9, 0, 0, 0, 0, 0, 0]])
  last = np.array([3, 1])
  settings = {'temperature': 0.0, 'max_decode_steps': max_decode_steps}
  forced, _ = _sample(model, inputs, **settings)
  filled, _ = sampling.temperature_sample(
      jnp.asarray(inputs), _fill(model, inputs, last), model, _EOS,
      initial_index=jnp.asarray(last), **settings,
  )
  np.testing.assert_array_equal(filled, forced)
  if max_decode_steps:
    sizes = np.count_nonzero(forced[:, 0], axis=1)
    np.testing.assert_array_equal(sizes, last + max_decode_steps)


def test_a_hard_limit_lowers_the_number_of_steps():
  model = _model(3, allowed=range(2, _VOCAB))
  for limit, expected in ((4, 4), (0, 6), (None, 6)):
    tokens, _ = _sample(
        model, np.zeros((1, 8)), max_decode_steps=6,
        max_decode_steps_hard_limit=limit,
    )
    assert np.count_nonzero(tokens) == expected


def test_callbacks_see_and_change_the_state_and_the_logits():
  def forbid_even(logits, state):
    assert state.sequences.shape == (1, 8)
    return logits.at[:, ::2].set(-1e9)

  def end_at_three(state):
    is_next = jnp.arange(8) == state.step + 1
    sequences = jnp.where(is_next & (state.step == 3), _EOS, state.sequences)
    return state.replace(sequences=sequences)

  tokens, _ = _sample(
      _model(3, allowed=range(2, _VOCAB)), np.zeros((1, 6)), topk=0,
      logit_callback_fn=forbid_even, state_callback_fn=end_at_three,
  )
  assert np.all(tokens[0, 0, :4] % 2 == 1)
  np.testing.assert_array_equal(tokens[0, 0, 3:], [_EOS, 0, 0])


@pytest.mark.parametrize(
    'kwargs, message',
    [
        ({'temperature': -0.1}, 'temperature is -0.1.*0 .*or more; set'),
        ({'temperature': float('nan')}, 'temperature is nan.*set'),
        ({'topk': -1}, 'topk is -1.*expected 0 .*set topk = 0'),
        ({'topk': 0, 'topp': 1.1}, r'topp is 1.1.*\(0, 1\].*set topp'),
        ({'topk': 0, 'topp': -0.1}, r'topp is -0.1.*\(0, 1\].*set topp'),
        ({'topp': 0.9}, 'topk  1\n.*topp  0.9\n.*at most one; set topk = 0'),
        ({'num_decodes': 0}, 'num_decodes is 0.*at least 1.*set num_decodes'),
        ({'max_decode_steps': 7}, 'max_decode_steps is 7.*1 to 6.*lower'),
        ({'max_decode_steps': 0}, 'max_decode_steps is 0.*1 to 6.*lower'),
        ({'repetition_penalty': -1.0}, 'penalty is -1.0.*more than 0.*set'),
    ],
)
def test_arguments_out_of_range_are_refused(kwargs, message):
  with pytest.raises(ValueError, match=f'(?s){message}'):
    _sample(_model(), np.zeros((1, 6)), **kwargs)


def test_a_decode_length_of_zero_is_refused():
  with pytest.raises(ValueError, match='(?s)length is 0.*at least 1.*give'):
    _sample(_model(), np.zeros((1, 0)))
