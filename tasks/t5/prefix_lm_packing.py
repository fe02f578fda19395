# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Two examples in a row for prefix language models: T5's later experiments.

These make the features of a model themselves, for seqio's pass-through
converters.
"""

from collections.abc import Mapping

import seqio
import tensorflow as tf

from t5wild.tasks.t5 import chunks


def targets_for_prefix_lm_objective(dataset, sequence_length, output_features):
  """Documents with ends of sequence, joined and cut to the targets' length."""
  dataset = chunks.select_random_chunk(
      dataset, output_features, max_length=65_536, feature_key='targets'
  )
  dataset = seqio.preprocessors.append_eos(dataset, output_features)
  dataset = chunks.reduce_concat_tokens(dataset, batch_size=128)
  dataset = chunks.split_tokens(
      dataset, max_tokens_per_segment=sequence_length['targets']
  )
  return chunks.trim_and_pad_dataset(dataset, sequence_length)


def pack_prefix_lm_encoder_decoder(ds, sequence_length, pad_id=0):
  """Two examples, divided so that both sides of a row are full.

  Of the first the inputs have as many tokens as the targets have of the second.

  Args:
    ds: 'targets' of the packed length.
    sequence_length: the packed length, of each feature the same and even.
    pad_id: has no weight in the loss.

  Returns:
    Features of an encoder-decoder.
  """
  length = _packed_length(sequence_length)

  @seqio.map_over_dataset(num_seeds=1)
  def pack(pair, seed):
    cut = _cut(length, seed)
    first, second = pair['targets'][0], pair['targets'][1]
    inputs = tf.concat([first[:cut], second[: length - cut]], 0)
    targets = tf.concat([first[cut:], second[length - cut :]], 0)
    inputs, targets = (tf.reshape(x, [length]) for x in (inputs, targets))
    place = tf.range(length)
    segments = {
        'encoder': _two_parts(place, cut), 'decoder': _two_parts(
            place, length - cut
        ),
    }  # fmt: skip
    return {
        'encoder_input_tokens': inputs,
        'decoder_target_tokens': targets,
        'decoder_input_tokens': seqio.utils.make_autoregressive_inputs(
            targets, sequence_id=segments['decoder'][0]
        ),
        'encoder_segment_ids': segments['encoder'][0],
        'encoder_positions': segments['encoder'][1],
        'decoder_segment_ids': segments['decoder'][0],
        'decoder_positions': segments['decoder'][1],
        'decoder_loss_weights': tf.cast(targets != pad_id, tf.int32),
    }

  return pack(ds.batch(2))


def pack_prefix_lm_decoder_only(
    ds, sequence_length, loss_on_targets_only=True, pad_id=0
):
  """A random first part of each example is a prefix.

  Args:
    ds: 'targets' of the packed length.
    sequence_length: the packed length, of each feature the same and even.
    loss_on_targets_only: whether the prefix has no weight in the loss.
    pad_id: has no weight in the loss.

  Returns:
    Features of a decoder.
  """
  length = _packed_length(sequence_length)

  @seqio.map_over_dataset(num_seeds=1)
  def pack(x, seed):
    cut = _cut(length, seed)
    targets, place = x['targets'], tf.range(length)
    weights = tf.cast(targets != pad_id, tf.int32)
    if loss_on_targets_only:
      weights *= tf.cast(place >= cut, tf.int32)
    return {
        'decoder_target_tokens': targets,
        'decoder_input_tokens': seqio.utils.make_autoregressive_inputs(targets),
        'decoder_loss_weights': weights,
        'decoder_causal_attention': tf.cast(place <= cut, tf.int32),
    }

  return pack(ds)


def _cut(length: int, seed: tf.Tensor) -> tf.Tensor:
  return tf.random.stateless_uniform(
      (), minval=1, maxval=length, dtype=tf.int32, seed=seed
  )


def _two_parts(place: tf.Tensor, cut: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Segment ids 1 and 2, and positions within each."""
  is_second = tf.cast(place >= cut, tf.int32)
  return is_second + 1, place - cut * is_second


def _packed_length(sequence_length: Mapping[str, int]) -> int:
  lengths = set(sequence_length.values())
  length = next(iter(lengths))
  if len(lengths) > 1 or length % 2:
    raise ValueError(
        f'the lengths are {dict(sequence_length)}: expected one even number '
        'for all, for each row has the tokens of two examples. Set '
        'TASK_FEATURE_LENGTHS so.'
    )
  return length
