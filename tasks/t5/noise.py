# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What becomes of tokens that are noise: T5's inputs and targets of a mask.

Each function takes tokens, their mask (True is noise), the vocabulary and two
seeds, and returns tokens.
"""

import seqio
import tensorflow as tf

from t5wild.tasks.t5 import gin_names

_configurable = gin_names.configurable('t5.data.preprocessors')


@_configurable
def sentinel_id(vocabulary, return_value=None):
  """The id that marks noise: the highest one, or the one that gin binds."""
  return vocabulary.vocab_size - 1 if return_value is None else return_value


@_configurable
def noise_token_to_sentinel(tokens, noise_mask, vocabulary, seeds):
  """One sentinel for each token of noise."""
  del seeds
  sentinel = tf.cast(sentinel_id(vocabulary), tokens.dtype)
  return tf.where(noise_mask, sentinel, tokens)


@_configurable
def noise_span_to_sentinel(tokens, noise_mask, vocabulary, seeds):
  """One sentinel for each span of noise."""
  marked = noise_token_to_sentinel(tokens, noise_mask, vocabulary, seeds)
  return tf.boolean_mask(marked, ~noise_mask | _is_first(noise_mask))


@_configurable
def nonnoise_span_to_sentinel(tokens, noise_mask, vocabulary, seeds):
  """One sentinel for each span of text."""
  return noise_span_to_sentinel(tokens, ~noise_mask, vocabulary, seeds)


@_configurable
def noise_span_to_unique_sentinel(
    tokens, noise_mask, vocabulary, seeds, batch_size=None
):
  """A sentinel of its own for each span of noise, from the highest id down.

  Args:
    tokens: [length], or [batch, length].
    noise_mask: the same shape.
    vocabulary: its last ids are the sentinels.
    seeds: not used.
    batch_size: number of rows, whose results are padded with 0; None for one
      sequence.

  Returns:
    The tokens and sentinels.
  """
  del seeds, batch_size  # the shape of the tokens tells
  is_first = _is_first(noise_mask)
  number = tf.cumsum(tf.cast(is_first, tokens.dtype), axis=-1)
  marked = tf.where(is_first, sentinel_id(vocabulary) + 1 - number, tokens)
  kept = tf.ragged.boolean_mask(marked, ~noise_mask | is_first)
  return kept.to_tensor() if isinstance(kept, tf.RaggedTensor) else kept


@_configurable
def nonnoise_span_to_unique_sentinel(
    tokens, noise_mask, vocabulary, seeds, batch_size=None
):
  """A sentinel of its own for each span of text: the targets of T5."""
  return noise_span_to_unique_sentinel(
      tokens, ~noise_mask, vocabulary, seeds, batch_size=batch_size
  )


@_configurable
def drop_noise_tokens(tokens, noise_mask, vocabulary, seeds):
  """The text alone."""
  del vocabulary, seeds
  return tf.boolean_mask(tokens, ~noise_mask)


@_configurable
def drop_nonnoise_tokens(tokens, noise_mask, vocabulary, seeds):
  """The noise alone."""
  del vocabulary, seeds
  return tf.boolean_mask(tokens, noise_mask)


@_configurable
def permute_noise_tokens(tokens, noise_mask, vocabulary, seeds):
  """The tokens of noise change places among themselves."""
  del vocabulary
  noise = seqio.stateless_shuffle(
      tf.boolean_mask(tokens, noise_mask), seeds[0]
  )
  noise = tf.pad(noise, [[0, 1]])  # there is one to gather where none is noise
  number = tf.cumsum(tf.cast(noise_mask, tf.int32), exclusive=True)
  return tf.where(noise_mask, tf.gather(noise, number), tokens)


@_configurable
def noise_token_to_gathered_token(tokens, noise_mask, vocabulary, seeds):
  """A random token of the sequence for each token of noise."""
  del vocabulary
  places = tf.random.stateless_uniform(
      tf.shape(tokens), maxval=tf.size(tokens), dtype=tf.int32, seed=seeds[0]
  )
  return tf.where(noise_mask, tf.gather(tokens, places), tokens)


@_configurable
def noise_token_to_random_token(
    tokens, noise_mask, vocabulary, seeds, num_reserved_tokens=3
):
  """A random token of the vocabulary for each token of noise."""
  drawn = tf.random.stateless_uniform(
      tf.shape(tokens),
      minval=num_reserved_tokens,
      maxval=vocabulary.vocab_size,
      dtype=tokens.dtype,
      seed=seeds[0],
  )
  return tf.where(noise_mask, drawn, tokens)


@_configurable
def noise_token_to_random_token_or_sentinel(
    tokens, noise_mask, vocabulary, seeds, random_prob=0.1
):
  """A random token with this probability, else the sentinel."""
  is_random = (
      tf.random.stateless_uniform(tf.shape(tokens), seed=seeds[0])
      < random_prob
  )
  return tf.where(
      is_random,
      noise_token_to_random_token(tokens, noise_mask, vocabulary, seeds[1:]),
      noise_token_to_sentinel(tokens, noise_mask, vocabulary, ()),
  )


def _is_first(noise_mask: tf.Tensor) -> tf.Tensor:
  """Where a span of noise begins, along the last axis."""
  before = tf.zeros_like(noise_mask[..., :1])
  return noise_mask & ~tf.concat([before, noise_mask[..., :-1]], -1)
