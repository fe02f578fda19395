# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Beam search against exhaustive search, and T5X's conventions."""

import jax
from jax import numpy as jnp
import numpy as np
import pytest

from t5wild.decoding import beam
from t5wild.decoding import gathering
from t5wild.decoding import greedy
from tests.decoding import toy_models

_EOS = toy_models.EOS


def _search_exhaustively(model, tokens, length, *, alpha, number):
  """The ended sequences of the highest scores, ascending."""
  found = []
  for sequence in toy_models.all_sequences(tokens, length):
    if sequence[-1] != _EOS:
      continue
    penalty = ((5 + len(sequence)) / 6) ** alpha
    score = model.token_scores(sequence).sum() / penalty
    found.append((score, sequence))
  return sorted(found)[-number:]


@pytest.mark.parametrize('alpha', [0.0, 0.6, 2.0])
@pytest.mark.parametrize('seed', range(3))
def test_a_wide_beam_finds_what_exhaustive_search_finds(seed, alpha):
  # 3 tokens and the end, 4 positions: at most 27 live beams of 64.
  tokens, length, beams = [_EOS, 2, 3, 4], 4, 64
  model = toy_models.HistoryModel(
      toy_models.make_weights(seed, vocab=64, allowed=tokens)
  )
  decodes, scores = toy_models.decode(
      beam.beam_search, model, np.zeros((1, length)),
      num_decodes=beams, alpha=alpha,
  )
  expected = _search_exhaustively(
      model, tokens, length, alpha=alpha, number=30
  )
  # Sums of float32 log probabilities.
  np.testing.assert_allclose(
      scores[0, -30:], [score for score, _ in expected], rtol=1e-5
  )
  np.testing.assert_array_equal(
      decodes[0, -30:],
      [toy_models.padded(sequence, length) for _, sequence in expected],
  )


def _model(seed=0, *, vocab=16, **kwargs):
  return toy_models.HistoryModel(
      toy_models.make_weights(seed, vocab=vocab, **kwargs)
  )


@pytest.mark.parametrize('alpha', [0.0, 0.6])
def test_scores_are_the_sums_of_teacher_forced_log_probabilities(alpha):
  model, length = _model(), 12
  decodes, scores, token_scores = toy_models.decode(
      beam.beam_search, model, np.zeros((3, length)),
      num_decodes=5, alpha=alpha, return_token_scores=True,
  )
  for row in range(3):
    for decode in range(5):
      tokens = decodes[row, decode]
      tokens = tokens[: np.count_nonzero(tokens)]
      forced = model.token_scores(tokens)
      np.testing.assert_allclose(
          token_scores[row, decode], toy_models.padded(forced, length),
          rtol=1e-4, atol=1e-5,
      )
      penalty = ((5 + len(tokens)) / 6) ** alpha
      np.testing.assert_allclose(
          scores[row, decode], forced.sum() / penalty, rtol=1e-5
      )


def test_scores_ascend():
  _, scores = toy_models.decode(
      beam.beam_search, _model(), np.zeros((4, 8)), num_decodes=6
  )
  assert np.all(np.diff(scores, axis=1) >= 0)


@pytest.mark.parametrize('seed', range(3))
def test_one_beam_is_greedy_decoding_where_the_end_is_not_second(seed):
  model = _model(seed, allowed=range(2, 16))
  inputs = np.zeros((3, 9))
  searched = toy_models.decode(
      beam.beam_search, model, inputs, num_decodes=1, alpha=0.0
  )
  greedily = toy_models.decode(greedy.greedy_decode, model, inputs)
  np.testing.assert_array_equal(searched[0], greedily[0])
  np.testing.assert_allclose(searched[1], greedily[1], rtol=1e-6)


@pytest.mark.parametrize('num_decodes', [1, 3])
def test_prompts_are_kept_and_score_nothing(num_decodes):
  model, length = _model(2), 9
  prompts = [[0, 5, 7, 3, 0, 0, 0, 0, 0], [0, 9, 0, 0, 0, 0, 0, 0, 0]]
  decodes, scores, token_scores = toy_models.decode(
      beam.beam_search, model, prompts, num_decodes=num_decodes,
      return_token_scores=True, alpha=0.0,
  )
  for row, size in enumerate([3, 1]):
    for decode in range(num_decodes):
      tokens = decodes[row, decode]
      np.testing.assert_array_equal(tokens[:size], prompts[row][1 : size + 1])
      tokens = tokens[: np.count_nonzero(tokens)]
      forced = model.token_scores(tokens)
      forced[:size] = 0
      np.testing.assert_allclose(
          token_scores[row, decode], toy_models.padded(forced, length),
          rtol=1e-4, atol=1e-5,
      )
      np.testing.assert_allclose(
          scores[row, decode], forced.sum(), rtol=1e-5
      )


def _fill(model, inputs, last):
  """The cache after the tokens before position `last` of each row."""
  rows = np.zeros((len(inputs), model.past.shape[1]), np.float32)
  for row, tokens in enumerate(inputs):
    for token in tokens[: last[row]]:
      rows[row] = 0.5 * rows[row] + model.past[token]
  return {
      'cached_sum': jnp.asarray(rows),
      'cache_index': jnp.asarray(last, jnp.float32),
  }


def test_a_filled_cache_gives_the_decodes_of_a_forced_prompt():
  model = _model(3)
  inputs = np.array([[0, 5, 7, 3, 0, 0, 0, 0], [0, 9, 0, 0, 0, 0, 0, 0]])
  last = np.array([3, 1])
  forced = toy_models.decode(beam.beam_search, model, inputs, num_decodes=3)
  filled = beam.beam_search(
      jnp.asarray(inputs), _fill(model, inputs, last), model, _EOS,
      num_decodes=3, initial_index=jnp.asarray(last),
  )
  is_found = forced[1] > -1e6  # others fill the beams up
  np.testing.assert_array_equal(filled[0][is_found], forced[0][is_found])
  np.testing.assert_allclose(filled[1], forced[1], rtol=1e-5)


@pytest.mark.parametrize('offset', [0, 1])
def test_a_row_is_decoded_alike_whatever_else_is_in_its_batch(offset):
  weights = toy_models.make_weights(4, vocab=12)
  model = toy_models.HistoryModel(weights, offset=offset)
  inputs = np.zeros((4, 7))
  inputs[:, 1] = [2, 3, 4, 5]
  together = toy_models.decode(beam.beam_search, model, inputs)
  for row in range(4):
    alone = toy_models.decode(
        beam.beam_search, model, inputs[row : row + 1]
    )
    np.testing.assert_array_equal(together[0][row], alone[0][0])
    np.testing.assert_allclose(together[1][row], alone[1][0], rtol=1e-6)


def test_the_search_stops_when_no_live_beam_can_become_better():
  calls, length = [], 40
  logits = jnp.full((6,), -20.0).at[jnp.array([_EOS, 3])].set([4.0, 2.0])

  def tokens_to_logits(decoding_state):
    index = decoding_state.cur_index[0]
    jax.debug.callback(lambda i: calls.append(int(i)), index)
    rows = decoding_state.cur_token.shape[0]
    return jnp.broadcast_to(logits, (rows, 6)), decoding_state.cache

  decodes, _ = beam.beam_search(
      jnp.zeros((1, length), jnp.int32), {}, tokens_to_logits, _EOS,
      num_decodes=1, alpha=0.0,
  )
  jax.block_until_ready(decodes)
  jax.effects_barrier()
  assert decodes[0, 0].tolist() == [_EOS] + [0] * (length - 1)
  assert calls == [0]


def test_a_repetition_penalty_is_that_of_sampling():
  model = _model(4, allowed=range(2, 16))
  prompt = [[0, 5, 7, 0, 0, 0, 0, 0, 0, 0]]
  settings = {'repetition_penalty': 1.8, 'num_decodes': 1}
  searched, _ = toy_models.decode(
      beam.beam_search, model, prompt, alpha=0.0, **settings
  )
  greedily, _ = toy_models.decode(
      greedy.greedy_decode, model, prompt, **settings
  )
  np.testing.assert_array_equal(searched, greedily)
  free, _ = toy_models.decode(
      beam.beam_search, model, prompt, alpha=0.0, num_decodes=1
  )
  assert not np.array_equal(searched, free)


def test_nothing_finished_gives_the_live_beams_by_log_probability():
  model = _model(5, allowed=range(2, 16))
  decodes, scores = toy_models.decode(
      beam.beam_search, model, np.zeros((1, 5)), num_decodes=2
  )
  for tokens, score in zip(decodes[0], scores[0], strict=True):
    np.testing.assert_allclose(
        score, model.token_scores(tokens).sum(), rtol=1e-5
    )


def test_steps_and_length_are_limited():
  model = _model(5, allowed=range(2, 16))
  inputs = np.zeros((1, 8))
  by_steps, _ = toy_models.decode(
      beam.beam_search, model, inputs, num_decodes=2, max_decode_step=3
  )
  by_length, _ = toy_models.decode(
      beam.beam_search, model, inputs, num_decodes=2, max_decode_len=3
  )
  assert by_length.shape == (1, 2, 3)
  np.testing.assert_array_equal(by_steps[:, :, :3], by_length)
  assert not by_steps[:, :, 3:].any()


@pytest.mark.parametrize(
    'kwargs, message',
    [
        ({'num_decodes': 17}, 'num_decodes is 17.*16.*set num_decodes'),
        ({'num_decodes': 0}, 'num_decodes is 0.*at least 1.*set'),
        ({'max_decode_len': 0}, 'max_decode_len is 0.*1 to 6.*lower it'),
        ({'max_decode_len': 7}, 'max_decode_len is 7.*1 to 6.*lower it'),
        (
            {'repetition_penalty': 0.0},
            'repetition_penalty is 0.0.*more than 0.*set',
        ),
    ],
)
def test_arguments_out_of_range_are_refused(kwargs, message):
  with pytest.raises(ValueError, match=f'(?s){message}'):
    toy_models.decode(beam.beam_search, _model(), np.zeros((1, 6)), **kwargs)


def test_a_decode_length_of_zero_is_refused():
  with pytest.raises(ValueError, match='(?s)length is 0.*at least 1.*give'):
    toy_models.decode(beam.beam_search, _model(), np.zeros((1, 0)))


@pytest.mark.parametrize('offset', [0, 1])
def test_cached_arrays_are_reordered_with_the_beams(offset):
  shape = (3,) * offset + (2, 4, 5)
  array = np.arange(np.prod(shape)).reshape(shape)
  cache = {'cached_key': jnp.asarray(array), 'cache_index': jnp.zeros((2,))}
  chosen = np.array([[3, 3], [0, 2]])
  for one_hot in (False, True):
    taken = gathering.cache_gather_beams(
        cache, jnp.asarray(chosen), 2, 4, 2, one_hot, offset
    )
    expected = np.take_along_axis(
        array, chosen.reshape((1,) * offset + (2, 2, 1)), axis=offset + 1
    )
    np.testing.assert_array_equal(taken['cached_key'], expected)
    np.testing.assert_array_equal(taken['cache_index'], np.zeros((2,)))


def test_beams_are_gathered_out_of_every_array():
  tree = {'a': jnp.arange(6).reshape(2, 3), 'b': jnp.ones((2, 3, 4))}
  taken = gathering.gather_beams(tree, jnp.array([[2, 0], [1, 1]]), 2, 3, 2)
  np.testing.assert_array_equal(taken['a'], [[2, 0], [4, 4]])
  assert jax.tree.map(jnp.shape, taken)['b'] == (2, 2, 4)
