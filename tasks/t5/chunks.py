# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5's ways to cut and join token sequences: which tokens an example has."""

from collections.abc import Mapping, Sequence
import functools
import math

import gin
import seqio
import tensorflow as tf

from t5wild.tasks.t5 import gin_names

_configurable = gin_names.configurable('t5.data.preprocessors')
_Example = Mapping[str, tf.Tensor]


def maybe_cast_seed(seed):
  """A seed, or each half of one, as an integer that TensorFlow takes."""
  if not isinstance(seed, tf.Tensor):
    return tuple(map(maybe_cast_seed, seed))
  return seed if seed.dtype in (tf.int32, tf.int64) else tf.cast(seed, tf.int64)


def single_example_select_random_chunk(  # noqa: PLR0913 -- T5's signature
    features: _Example,
    seed: tf.Tensor,
    output_features: Mapping[str, seqio.Feature],
    max_length: int | None = None,
    feature_key: str = 'targets',
    additional_feature_keys: Sequence[str] | None = None,
    passthrough_feature_keys: Sequence[str] | None = None,
    sequence_length: Mapping[str, int] | None = None,
    uniform_random_start: bool = False,
    min_length: int | None = None,
) -> _Example:
  """Takes at most `max_length` tokens of an example, from a random place.

  Args:
    features: the example.
    seed: of the draws.
    output_features: the task's.
    max_length: comes before the one of `sequence_length`, which leaves room
      for an end of sequence.
    feature_key: the tokens.
    additional_feature_keys: fields of as many values, of which the same place
      is taken.
    passthrough_feature_keys: fields to keep as they are.
    sequence_length: lengths by feature.
    uniform_random_start: any place, even one before the first token; else one
      of those that divide the example into pieces of this length.
    min_length: draw the length, from here on; None does not.

  Returns:
    The fields that are named.

  Raises:
    ValueError: for a field that is both cut and kept, or no length.
  """
  cut = _fields_to_cut(
      feature_key, additional_feature_keys, passthrough_feature_keys
  )
  length = _max_length(
      max_length, sequence_length, output_features, feature_key
  )
  first, second = tf.unstack(
      tf.random.experimental.stateless_split(maybe_cast_seed(seed))
  )
  count = tf.shape(features[feature_key])[0]
  draw = functools.partial(tf.random.stateless_uniform, [], dtype=tf.int32)
  if min_length is not None:
    length = draw(minval=min_length, maxval=length, seed=first)
  if uniform_random_start:
    start = draw(minval=1 - length, maxval=count, seed=second)
  else:
    start = length * draw(maxval=_ceil(count, length), seed=second)
  end = tf.minimum(start + length, count)
  start = tf.maximum(start, 0)
  _check_sizes(features, cut)
  chunk = {key: features[key][start:end] for key in cut}
  return {
      **chunk,
      **{key: features[key] for key in passthrough_feature_keys or ()},
  }


@_configurable
def select_random_chunk(  # noqa: PLR0913 -- T5's signature
    dataset: tf.data.Dataset,
    output_features: Mapping[str, seqio.Feature],
    max_length: int | None = None,
    feature_key: str = 'targets',
    additional_feature_keys: Sequence[str] | None = None,
    passthrough_feature_keys: Sequence[str] | None = None,
    sequence_length: Mapping[str, int] | None = None,
    uniform_random_start: bool = False,
    min_length: int | None = None,
    **unused_kwargs,
) -> tf.data.Dataset:
  """`single_example_select_random_chunk` of each example that has tokens."""
  del unused_kwargs

  @seqio.map_over_dataset(num_seeds=1)
  def select(x, seed):
    return single_example_select_random_chunk(
        x,
        seed,
        output_features=output_features,
        max_length=max_length,
        feature_key=feature_key,
        additional_feature_keys=additional_feature_keys,
        passthrough_feature_keys=passthrough_feature_keys,
        sequence_length=sequence_length,
        uniform_random_start=uniform_random_start,
        min_length=min_length,
    )

  return select(_with_tokens(dataset, feature_key))


@_configurable
def reduce_concat_tokens(
    dataset, feature_key='targets', batch_size=128, **unused_kwargs
):
  """Joins the tokens of so many examples into one; other fields are lost."""
  del unused_kwargs

  def join(x):
    tokens = tf.reshape(x[feature_key], [-1])
    # Padding is told by its id, as T5 does: no vocabulary has another 0.
    return {feature_key: tf.boolean_mask(tokens, tokens != 0)}

  dataset = dataset.map(
      lambda x: {feature_key: x[feature_key]}, tf.data.AUTOTUNE
  )
  dataset = dataset.padded_batch(batch_size, {feature_key: [-1]})
  return dataset.map(join, tf.data.AUTOTUNE)


@seqio.map_over_dataset
def trim_tokens_at_front(
    x, sequence_length, keys_to_trim=None, **unused_kwargs
):
  """Keeps the last tokens that fit, with room for an end of sequence."""
  del unused_kwargs
  keys = [key for key in keys_to_trim or sequence_length if key in x]
  return {**x, **{key: x[key][1 - sequence_length[key] :] for key in keys}}


@_configurable
def split_tokens(
    dataset: tf.data.Dataset,
    min_tokens_per_segment: int | None = None,
    max_tokens_per_segment: int = gin.REQUIRED,
    feature_key: str = 'targets',
    additional_feature_keys: Sequence[str] | None = None,
    passthrough_feature_keys: Sequence[str] | None = None,
    **unused_kwargs,
) -> tf.data.Dataset:
  """Cuts each example into segments, of which the last may be shorter.

  Args:
    dataset: examples of tokens.
    min_tokens_per_segment: draw the length for each example, log-uniformly
      from here on; None: all are `max_tokens_per_segment`.
    max_tokens_per_segment: longest segment.
    feature_key: the tokens.
    additional_feature_keys: fields of as many values, which are cut as well.
    passthrough_feature_keys: fields that each segment keeps.

  Returns:
    The segments.

  Raises:
    ValueError: for a field that is both cut and kept.
  """
  del unused_kwargs
  cut = _fields_to_cut(
      feature_key, additional_feature_keys, passthrough_feature_keys
  )

  @seqio.map_over_dataset(num_seeds=1)
  def split(x, seed):
    length = max_tokens_per_segment
    if min_tokens_per_segment is not None:
      draw = tf.random.stateless_uniform(
          [],
          minval=math.log(min_tokens_per_segment),
          maxval=math.log(max_tokens_per_segment),
          seed=seed,
      )
      length = tf.cast(tf.exp(draw), tf.int32)
    _check_sizes(x, cut)
    count = tf.shape(x[feature_key])[0]

    # One segment at a time, so that kept fields are not all there at once.
    def segment(number):
      start = tf.cast(number, tf.int32) * length
      end = tf.minimum(start + length, count)
      return {
          **{key: x[key][start:end] for key in cut},
          **{key: x[key] for key in passthrough_feature_keys or ()},
      }

    number = tf.cast(_ceil(count, length), tf.int64)
    return tf.data.Dataset.range(number).map(segment)

  return split(_with_tokens(dataset, feature_key)).flat_map(lambda x: x)


@_configurable
def split_tokens_to_inputs_length(
    dataset, sequence_length, output_features, **kwargs
):
  """Segments as long as the inputs may be, end of sequence included."""
  longest = _room(sequence_length, output_features, 'inputs')
  return split_tokens(dataset, max_tokens_per_segment=longest, **kwargs)


@_configurable
def split_tokens_to_targets_length(
    dataset, sequence_length, output_features, **kwargs
):
  """Segments as long as the targets may be, end of sequence included."""
  longest = _room(sequence_length, output_features, 'targets')
  return split_tokens(dataset, max_tokens_per_segment=longest, **kwargs)


@_configurable
def split_tokens_to_random_length(
    dataset, sequence_length, output_features, **kwargs
):
  """Segments of 8 tokens up to as many as the inputs may have."""
  longest = _room(sequence_length, output_features, 'inputs')
  return split_tokens(
      dataset,
      min_tokens_per_segment=8,
      max_tokens_per_segment=longest,
      **kwargs,
  )


@_configurable
def concatenate_and_split_to_fixed_length(
    dataset,
    sequence_length,
    output_features,
    feature_key='targets',
    **unused_kwargs,
):
  """Joins all examples and cuts them anew, all equally long but the last."""
  del unused_kwargs
  longest = _room(sequence_length, output_features, feature_key)
  dataset = dataset.map(lambda x: {feature_key: x[feature_key]})
  return dataset.unbatch().batch(longest)


def trim_and_pad_dataset(dataset, sequence_length):
  """seqio's function of this name, as a preprocessor."""
  return seqio.utils.trim_and_pad_dataset(
      dataset, feature_lengths=sequence_length
  )


def _with_tokens(dataset: tf.data.Dataset, key: str) -> tf.data.Dataset:
  return dataset.filter(lambda x: tf.size(x[key]) > 0)


def _fields_to_cut(
    key: str, more: Sequence[str] | None, kept: Sequence[str] | None
) -> list[str]:
  cut = [key, *(more or ())]
  both = sorted(set(cut) & set(kept or ()))
  if both:
    raise ValueError(
        f'passthrough_feature_keys has {both}: expected no field that is cut, '
        f'which are {cut}. Leave them out.'
    )
  return cut


def _max_length(
    max_length: int | None,
    sequence_length: Mapping[str, int] | None,
    output_features: Mapping[str, seqio.Feature],
    key: str,
) -> int:
  if max_length is not None:
    return max_length
  if sequence_length is None:
    raise ValueError(
        'select_random_chunk got neither max_length nor sequence_length '
        f'({max_length}, {sequence_length}): expected one. Bind '
        'select_random_chunk.max_length.'
    )
  return _room(sequence_length, output_features, key)


def _room(
    lengths: Mapping[str, int], features: Mapping[str, seqio.Feature], key: str
) -> int:
  """How many tokens of a feature fit beside its end of sequence."""
  return lengths[key] - features[key].add_eos


def _ceil(count: tf.Tensor, length: int | tf.Tensor) -> tf.Tensor:
  return (count + length - 1) // length


def _check_sizes(x: _Example, keys: Sequence[str]) -> None:
  for key in keys[1:]:
    tf.debugging.assert_equal(
        tf.shape(x[key])[0],
        tf.shape(x[keys[0]])[0],
        f'{key} is not as long as {keys[0]}; only fields of one length can be '
        'cut together.',
    )
