# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Greedy decoding of small models whose answer is known."""

import flax
import jax
from jax import numpy as jnp
import numpy as np
import pytest

from t5wild.decoding import greedy

_EOS = 1
_VOCAB = 6


def _make_table(seed=0):
  """Logits of the next token after each token."""
  rng = np.random.RandomState(seed)
  return rng.normal(size=(_VOCAB, _VOCAB)).astype(np.float32)


def _make_model(table):
  """A model that looks only at the current token, and counts its steps."""

  def tokens_to_logits(decoding_state):
    np.testing.assert_equal(decoding_state.cur_token.shape[1:], (1,))
    cache = {'steps': decoding_state.cache['steps'] + 1}
    return jnp.asarray(table)[decoding_state.cur_token[:, 0]], cache

  return tokens_to_logits


def _decode(inputs, table, cache=None):
  cache = {'steps': jnp.zeros((), jnp.int32)} if cache is None else cache
  return greedy.greedy_decode(
      inputs=jnp.asarray(inputs, jnp.int32),
      cache=cache,
      tokens_to_logits=_make_model(table),
      eos_id=_EOS,
      num_decodes=1,
      decode_rng=None,
      cache_offset=0,
  )


def _decode_by_loop(row, table):
  """(tokens, score) of one row, in plain Python."""
  log_probs = table - np.log(np.exp(table).sum(axis=-1, keepdims=True))
  prompt = [*row[1:], 0]
  tokens, score, current = [], 0.0, 0
  for forced in prompt:
    following = forced or int(np.argmax(table[current]))
    tokens.append(following)
    if not forced:
      score += log_probs[current, following]
      if following == _EOS:
        break
    current = following
  return tokens + [0] * (len(prompt) - len(tokens)), score


@pytest.mark.parametrize('seed', range(4))
def test_decodes_are_those_of_a_plain_loop(seed):
  table = _make_table(seed)
  inputs = [[0] * 7, [0, 5, 3, 0, 0, 0, 0], [0, 2, _EOS, 4, 0, 0, 0], [0] * 7]
  tokens, scores = _decode(inputs, table)
  assert tokens.shape == (4, 1, 7)
  assert scores.shape == (4, 1)
  for row, row_tokens, score in zip(inputs, tokens, scores, strict=True):
    expected, expected_score = _decode_by_loop(row, table)
    np.testing.assert_array_equal(row_tokens[0], expected)
    np.testing.assert_allclose(score[0], expected_score, rtol=1e-5)


def _make_chain(*chain):
  """A table by which each token of the chain is followed by the next."""
  table = np.zeros((_VOCAB, _VOCAB), np.float32)
  for current, following in zip(chain[:-1], chain[1:], strict=True):
    table[current, following] = 5.0
  return table


def test_after_its_end_a_sequence_has_only_padding():
  table = _make_chain(0, 3, _EOS, 2, 4)
  tokens, _ = _decode([[0] * 6, [0, 5, 5, 5, 5, 5]], table)
  np.testing.assert_array_equal(tokens[0, 0], [3, _EOS, 0, 0, 0, 0])


def test_an_end_token_of_the_prompt_does_not_end_the_sequence():
  table = _make_chain(0, 3, _EOS, 2, 4, 5)
  tokens, _ = _decode([[0, _EOS, 0, 0, 0]], table)
  np.testing.assert_array_equal(tokens[0, 0], [_EOS, 2, 4, 5, 0])


def test_ties_go_to_the_lowest_token():
  tokens, _ = _decode([[0, 5, 0]], np.zeros((_VOCAB, _VOCAB), np.float32))
  np.testing.assert_array_equal(tokens[0, 0], [5, 0, 0])


def test_position_zero_of_the_inputs_is_not_read():
  table = _make_table()
  one, _ = _decode([[0, 3, 0, 0]], table)
  two, _ = _decode([[4, 3, 0, 0]], table)
  np.testing.assert_array_equal(one, two)


def test_the_loop_stops_when_all_sequences_have_ended():
  calls = []
  table = jnp.asarray(_make_chain(0, 3, _EOS))

  def tokens_to_logits(decoding_state):
    index = decoding_state.cur_index[0]
    jax.debug.callback(lambda i: calls.append(int(i)), index)
    return table[decoding_state.cur_token[:, 0]], decoding_state.cache

  tokens, _ = greedy.greedy_decode(
      jnp.zeros((2, 50), jnp.int32), {}, tokens_to_logits, _EOS
  )
  jax.block_until_ready(tokens)
  jax.effects_barrier()
  assert sorted(calls) == [0, 1]


def test_state_tells_the_position_and_the_tokens_so_far():
  table = jnp.asarray(_make_table())
  seen = []

  def tokens_to_logits(decoding_state):
    at_index = jnp.take_along_axis(
        decoding_state.sequences, decoding_state.cur_index[:, None], axis=1
    )
    is_current = jnp.all(at_index == decoding_state.cur_token)
    jax.debug.callback(lambda ok: seen.append(bool(ok)), is_current)
    return table[decoding_state.cur_token[:, 0]], decoding_state.cache

  tokens, _ = greedy.greedy_decode(
      jnp.zeros((3, 5), jnp.int32), {}, tokens_to_logits, _EOS
  )
  jax.block_until_ready(tokens)
  jax.effects_barrier()
  assert seen
  assert all(seen)


def test_a_frozen_cache_may_come_back_as_a_dict():
  cache = flax.core.freeze({'steps': jnp.zeros((), jnp.int32)})
  one, _ = _decode([[0] * 4], _make_table(), cache)
  two, _ = _decode([[0] * 4], _make_table())
  np.testing.assert_array_equal(one, two)


def test_scores_of_bfloat16_logits_are_summed_in_float32():
  table = jnp.asarray(_make_table(), jnp.bfloat16)
  _, scores = _decode([[0] * 6], table)
  assert scores.dtype == jnp.float32
  _, expected = _decode([[0] * 6], table.astype(jnp.float32))
  np.testing.assert_allclose(scores, expected, rtol=1e-6)


def test_more_than_one_decode_is_refused_with_the_mend():
  with pytest.raises(ValueError, match='num_decodes is 4.*num_decodes = 1'):
    greedy.greedy_decode(
        jnp.zeros((1, 4), jnp.int32), {}, _make_model(_make_table()), _EOS,
        num_decodes=4,
    )
