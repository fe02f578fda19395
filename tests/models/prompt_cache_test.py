# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Prompts put into the cache at once are answered as those read in turn."""

import functools

from flax import linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.decoding import sampling
from t5wild.models import encoder_decoder
from t5wild.models import prompt_cache
from tests import t5x_network

_VOCAB = 11


class _Adder(nn.Module):
  """Its next token is the sum of all it has read; remembers how it read."""

  def encode(self, encoder_input_tokens, enable_dropout=True):
    """Anything."""
    del enable_dropout
    return encoder_input_tokens[..., None].astype(jnp.float32)

  @nn.compact
  def decode(  # noqa: PLR0913 -- T5X's signature
      self,
      encoded,
      encoder_input_tokens,
      decoder_input_tokens,
      decoder_target_tokens,
      enable_dropout=True,
      decode=False,
      max_decode_length=None,
      prefill=False,
      prefill_lengths=None,
  ):
    """Scores the next token at each position."""
    del encoded, encoder_input_tokens, decoder_target_tokens, max_decode_length
    del enable_dropout
    batch, length = decoder_input_tokens.shape
    has_cache = self.has_variable('cache', 'total')
    total = self.variable('cache', 'total', jnp.zeros, (batch, 1), jnp.int32)
    if prefill:
      is_cached = jnp.arange(length) < prefill_lengths[:, None]
      total.value = jnp.sum(
          decoder_input_tokens * is_cached, axis=1, keepdims=True
      )
    elif decode and has_cache:
      total.value = total.value + decoder_input_tokens
    return jax.nn.one_hot((total.value + 2) % _VOCAB, _VOCAB)

  def __call__(
      self,
      encoder_input_tokens,
      decoder_input_tokens,
      decoder_target_tokens,
      enable_dropout=True,
      decode=False,
  ):
    """Makes the cache."""
    return self.decode(
        self.encode(encoder_input_tokens),
        encoder_input_tokens,
        decoder_input_tokens,
        decoder_target_tokens,
        decode=decode,
    )


class _StepByStep(_Adder):
  """The same without a way to take a prompt at once."""

  def decode(
      self,
      encoded,
      encoder_input_tokens,
      decoder_input_tokens,
      decoder_target_tokens,
      enable_dropout=True,
      decode=False,
      max_decode_length=None,
  ):
    """Scores the next token at each position."""
    return super().decode(
        encoded, encoder_input_tokens, decoder_input_tokens,
        decoder_target_tokens, enable_dropout, decode, max_decode_length,
    )  # fmt: skip


class _Watched(encoder_decoder.EncoderDecoderModel):
  """Overrides T5X's method with T5X's signature."""

  filled: tuple = ()

  def _compute_kv_cache(
      self,
      params,
      encoded_inputs,
      encoder_input_tokens,
      decoder_input_tokens,
      prefill_decoder_prompt=False,
  ):
    cache, index = super()._compute_kv_cache(
        params, encoded_inputs, encoder_input_tokens, decoder_input_tokens,
        prefill_decoder_prompt,
    )  # fmt: skip
    self.filled = (*self.filled, prefill_decoder_prompt)
    assert (index is not None) == prefill_decoder_prompt
    return cache, index


def _model(module, cls=encoder_decoder.EncoderDecoderModel):
  return cls(
      module,
      t5x_network.Vocabulary(),
      t5x_network.Vocabulary(),
      optimizer_def=None,
      decode_fn=functools.partial(
          sampling.temperature_sample, temperature=0.0, topk=1
      ),
  )


@pytest.mark.parametrize('cls', [encoder_decoder.EncoderDecoderModel, _Watched])
def test_prompts_at_once_are_answered_as_prompts_in_turn(cls):
  batch = {
      'encoder_input_tokens': jnp.asarray([[3, 4], [5, 0], [6, 7]]),
      'decoder_input_tokens': jnp.asarray(
          [[0, 3, 4, 0, 0, 0], [0, 5, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]]
      ),
  }
  at_once = _model(_Adder(), cls)
  tokens, _ = at_once.predict_batch_with_aux(
      {}, batch, prompt_with_targets=True
  )
  in_turn, _ = _model(_StepByStep()).predict_batch_with_aux(
      {}, batch, prompt_with_targets=True
  )
  np.testing.assert_array_equal(tokens, in_turn)
  np.testing.assert_array_equal(tokens[:2, :2], [[3, 4], [5, 7]])
  if cls is _Watched:
    assert at_once.filled == (True,)


class _Counting(nn.Module):
  """Keeps the position it is at, as networks with absolute positions do."""

  def decode(self, *unused, prefill=False, prefill_lengths=None, **others):
    """Makes or keeps the counter; returns nothing of use."""
    del unused, prefill, prefill_lengths, others
    return jnp.zeros(())

  def __call__(self, **unused):
    """Nothing."""


def test_the_counter_of_positions_stands_behind_each_prompt():
  embedder = {'position_embedder_index': jnp.zeros(()), 'other': 1}
  cache = {'decoder': {'position_embedder': embedder}, 'rest': 2}
  filled, lengths = prompt_cache.fill(
      _Counting(),
      {},
      cache,
      encoded_inputs=jnp.zeros((2, 1, 1)),
      encoder_input_tokens=jnp.zeros((2, 1)),
      decoder_input_tokens=jnp.asarray([[0, 3, 4], [0, 0, 0]]),
  )
  index = filled['decoder']['position_embedder']['position_embedder_index']
  np.testing.assert_array_equal(index, lengths)
  np.testing.assert_array_equal(lengths, [2, 0])
  assert filled['decoder']['position_embedder']['other'] == 1
  assert filled['rest'] == 2
