# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which tokens of a sequence are noise, drawn as T5 draws them.

Each function takes the number of tokens, the share that is to be noise and two
seeds, and returns a mask that is True for noise.
"""

import seqio
import tensorflow as tf

from t5wild.tasks.t5 import gin_names

_configurable = gin_names.configurable('t5.data.preprocessors')


@_configurable
def iid_noise_mask(length, noise_density, seeds):
  """Each token by itself."""
  return tf.random.stateless_uniform([length], seed=seeds[0]) < noise_density


@_configurable
def regular_noise_mask(
    length, noise_density, seeds, min_span_length=1, max_span_length=5
):
  """Spans of one length at one distance, both drawn for the sequence."""
  span = tf.random.stateless_uniform(
      [],
      minval=min_span_length,
      maxval=max_span_length + 1,
      dtype=tf.int32,
      seed=seeds[0],
  )
  period = tf.cast(
      tf.round(tf.cast(span, tf.float32) / noise_density), tf.int32
  )
  offset = tf.random.stateless_uniform(
      [], maxval=period, dtype=tf.int32, seed=seeds[1]
  )
  return (tf.range(length) + offset) % period < span


@_configurable
def random_spans_noise_mask(
    length,
    noise_density,
    seeds,
    mean_noise_span_length=3.0,
    random_roll=False,
    batch_size=None,
):
  """Random spans, their number and sum fixed by the length (T5's objective).

  Spans of text and noise alternate, text comes first; all divisions into them
  are equally likely.

  Args:
    length: number of tokens.
    noise_density: share of noise; 0 is none.
    seeds: two of them.
    mean_noise_span_length: mean length of the spans of noise.
    random_roll: whether to turn the mask by a random number of places.
    batch_size: make so many masks [batch_size, length]; None makes one.

  Returns:
    The mask.
  """
  if noise_density == 0.0:
    return tf.zeros(length, tf.bool)
  if batch_size:
    rows = tf.unstack(
        tf.random.experimental.stateless_split(seeds[0], batch_size * 2)
    )
  else:
    rows = [seeds[0], seeds[1]]
  masks = []
  for noise_seed, text_seed in zip(rows[::2], rows[1::2], strict=True):
    mask = _spans(
        length,
        noise_density,
        mean_length=mean_noise_span_length,
        seeds=(noise_seed, text_seed),
    )
    if random_roll:
      roll = tf.random.stateless_uniform(
          [1],
          minval=0,
          maxval=tf.maximum(length, 2),
          dtype=tf.int32,
          seed=(rows[0][0] + rows[1][1], rows[0][1] - rows[1][0]),
      )
      mask = tf.roll(mask, roll[0], 0)
    masks.append(mask)
  return tf.stack(masks) if batch_size else masks[0]


@_configurable
def random_prefix_noise_mask(length, noise_density, seeds):
  """The first tokens, at least one and not all (prefix language modelling).

  Raises:
    ValueError: for a share above one half.
  """
  if noise_density > 0.5:
    raise ValueError(
        f'noise_density is {noise_density}: expected at most 0.5 for a random '
        'prefix. Lower it.'
    )
  most = length - 1
  least = tf.cast(
      tf.round((1 - 2 * noise_density) * tf.cast(most, tf.float32)), tf.int32
  )
  count = tf.random.stateless_uniform(
      [],
      minval=tf.minimum(most, tf.maximum(1, least)),
      maxval=most + 1,
      dtype=tf.int32,
      seed=seeds[0],
  )
  return tf.range(length) < count


def _spans(length, noise_density, *, mean_length, seeds):
  """One mask of random spans."""
  # With fewer than two tokens there is no room for a span of either kind.
  count = tf.maximum(length, 2)
  num_noise = _rounded(tf.cast(count, tf.float32) * noise_density)
  num_noise = tf.clip_by_value(num_noise, 1, count - 1)
  num_spans = tf.maximum(
      _rounded(tf.cast(num_noise, tf.float32) / mean_length), 1
  )
  noise = _random_parts(num_noise, num_spans, seed=seeds[0])
  text = _random_parts(count - num_noise, num_spans, seed=seeds[1])
  lengths = tf.reshape(tf.stack([text, noise], 1), [-1])
  is_noise = tf.tile([False, True], [num_spans])
  return tf.repeat(is_noise, lengths)[:length]


def _rounded(value):
  return tf.cast(tf.round(value), tf.int32)


def _random_parts(count, num_parts, *, seed):
  """Lengths, at least 1, of a random division of `count` into parts."""
  is_first = seqio.stateless_shuffle(
      tf.cast(tf.range(count - 1) < num_parts - 1, tf.int32), seed
  )
  part = tf.cumsum(tf.pad(is_first, [[1, 0]]))
  return tf.math.segment_sum(tf.ones_like(part), part)
