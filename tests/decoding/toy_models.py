# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Models small enough to be searched and drawn from by hand."""

import itertools

import jax
from jax import numpy as jnp
import numpy as np

EOS = 1
PAD = 0


def make_weights(seed, *, vocab, allowed=None, scale=1.5):
  """Weights of `HistoryModel`.

  Args:
    seed: of what is drawn.
    vocab: number of tokens.
    allowed: tokens that may be decoded; None = all but padding.
    scale: standard deviation of a logit from one token.
  """
  rng = np.random.RandomState(seed)
  weights = scale * rng.normal(size=(2, vocab, vocab)).astype(np.float32)
  allowed = range(1, vocab) if allowed is None else allowed
  bias = np.full((vocab,), -1e4, np.float32)
  bias[list(allowed)] = 0.0
  return weights, bias


class HistoryModel:
  """Logits depend on the current token and, by the cache, on all before it.

  The cache holds the decayed sum of the past tokens' rows, so a cache that
  does not follow its sequence gives other logits.
  """

  def __init__(self, weights, *, offset=0):
    """Takes the weights and the number of axes before the cache's batch."""
    (self.current, self.past), self.bias = weights
    self.offset = offset

  def make_cache(self, batch_size):
    """An empty cache."""
    shape = (1,) * self.offset + (batch_size, self.past.shape[1])
    return {'cached_sum': jnp.zeros(shape), 'cache_index': jnp.zeros(())}

  def __call__(self, decoding_state):
    """A step on the device."""
    cache, token = decoding_state.cache, decoding_state.cur_token[:, 0]
    past = cache['cached_sum']
    rows = past.reshape(past.shape[self.offset :])
    logits = jnp.asarray(self.current)[token] + rows + self.bias
    rows = 0.5 * rows + jnp.asarray(self.past)[token]
    return logits, {
        'cached_sum': rows.reshape(past.shape),
        'cache_index': cache['cache_index'] + 1,
    }

  def token_scores(self, tokens):
    """Log probability of each token of one sequence, in numpy."""
    rows, before, scores = np.zeros(self.past.shape[1]), PAD, []
    for token in tokens:
      logits = self.current[before].astype(np.float64) + rows + self.bias
      largest = logits.max()
      scores.append(
          logits[token] - largest - np.log(np.exp(logits - largest).sum())
      )
      rows = 0.5 * rows + self.past[before]
      before = token
    return np.array(scores)


def all_sequences(tokens, length):
  """Every sequence of these tokens that has ended or is full."""
  inner = [token for token in tokens if token != EOS]
  for size in range(length):
    for start in itertools.product(inner, repeat=size):
      yield (*start, EOS)
  yield from itertools.product(inner, repeat=length)


def padded(sequence, length):
  """The sequence with padding after it."""
  return np.array([*sequence, *[PAD] * (length - len(sequence))])


def decode(decode_fn, model, inputs, **kwargs):
  """Decodes, compiled."""
  inputs = jnp.asarray(inputs, jnp.int32)

  @jax.jit
  def run(inputs):
    cache = model.make_cache(inputs.shape[0])
    return decode_fn(
        inputs=inputs,
        cache=cache,
        tokens_to_logits=model,
        eos_id=EOS,
        cache_offset=model.offset,
        **kwargs,
    )

  return jax.tree.map(np.asarray, run(inputs))
