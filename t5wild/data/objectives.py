# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Objectives as seqio preprocessors, thin wrappers over a numpy core.

TensorFlow and seqio are imported when a preprocessor is called, not before.
"""

from typing import Any

import numpy as np

from t5wild.data import spans

# Documents joined at a time where documents are merged.
_MERGED_DOCUMENTS = 64
# Documents whose chunks take turns where they are not.
_INTERLEAVED_DOCUMENTS = 16


def tokenize_documents(dataset: Any, output_features: Any) -> Any:
  """seqio preprocessor: text in `targets` to ids, in order.

  Unlike seqio.preprocessors.tokenize it keeps no copy of the text and works on
  few documents at a time, so that a saved position stays small.
  """
  import tensorflow as tf

  vocabulary = output_features['targets'].vocabulary

  def tokenize(features):
    ids = vocabulary.encode_tf(features['targets'])
    return {'targets': tf.cast(ids, tf.int32)}

  return dataset.map(tokenize, num_parallel_calls=2, deterministic=True)


def span_corruption(
    dataset: Any,
    sequence_length: Any,
    output_features: Any,
    mean_noise_span_length: float = 3.0,
    noise_density: float = 0.15,
    *,
    merge_documents: bool = False,
    min_tokens: int = 2,
) -> Any:
  """seqio preprocessor: documents in `targets` to corrupted chunks.

  Each document is cut into chunks that fill `sequence_length['inputs']`
  exactly once corrupted; only a document's last chunk is shorter. Add
  `seqio.preprocessors.append_eos` after it: the lengths leave room for it.

  Args:
    dataset: tf.data.Dataset of {'targets': int32 [tokens]}.
    sequence_length: lengths of 'inputs' and 'targets'.
    output_features: seqio features; the vocabulary of 'targets' is used.
    mean_noise_span_length: mean tokens per corrupted span.
    noise_density: fraction of the tokens to corrupt.
    merge_documents: join documents before they are cut, as T5 does, so that
      almost every chunk is full and chunks straddle documents. False: a chunk
      never holds text of two documents.
    min_tokens: drop a last chunk of fewer tokens; at least 2.

  Returns:
    tf.data.Dataset of {'inputs', 'targets'}, int32, without end of sequence.
  """
  vocabulary = output_features['targets'].vocabulary
  plan = checked_plan(
      sequence_length,
      vocabulary=vocabulary,
      noise_density=noise_density,
      mean_noise_span_length=mean_noise_span_length,
  )
  if merge_documents:
    dataset = _merge_documents(dataset)
  dataset = _split_documents(
      dataset,
      tokens_length=plan.tokens_length,
      min_tokens=min_tokens,
      cycle_length=1 if merge_documents else _INTERLEAVED_DOCUMENTS,
  )
  return _corrupt_dataset(
      dataset,
      vocab_size=vocabulary.vocab_size,
      noise_density=noise_density,
      mean_noise_span_length=mean_noise_span_length,
  )


def checked_plan(
    sequence_length: Any,
    *,
    vocabulary: Any,
    noise_density: float,
    mean_noise_span_length: float,
) -> spans.SpanPlan:
  """Makes the plan for these lengths, or says why nothing would fit.

  Args:
    sequence_length: lengths of 'inputs' and 'targets'.
    vocabulary: its `extra_ids` are the sentinels.
    noise_density: fraction of the tokens to corrupt.
    mean_noise_span_length: mean tokens per corrupted span.

  Returns:
    The plan.

  Raises:
    ValueError: where the targets would be cut off, or sentinels run out.
  """
  plan = spans.plan_for_inputs(
      sequence_length['inputs'],
      noise_density=noise_density,
      mean_noise_span_length=mean_noise_span_length,
  )
  if plan.targets_length > sequence_length['targets']:
    raise ValueError(
        f'targets of length {sequence_length["targets"]} would be cut off: '
        f'span corruption of {sequence_length["inputs"]} inputs (density '
        f'{noise_density}, mean span {mean_noise_span_length}) makes '
        f'{plan.targets_length} targets. Set TASK_FEATURE_LENGTHS = '
        f"{{'inputs': {sequence_length['inputs']}, 'targets': "
        f'{plan.targets_length}}} (or more).'
    )
  if plan.num_noise_spans > vocabulary.extra_ids:
    raise ValueError(
        f'the vocabulary has {vocabulary.extra_ids} sentinels (extra_ids): '
        f'expected at least {plan.num_noise_spans}, one per corrupted span '
        f'of {plan.tokens_length} tokens. Give it extra_ids='
        f'{max(plan.num_noise_spans, 100)}, or raise mean_noise_span_length.'
    )
  return plan


def _merge_documents(dataset: Any) -> Any:
  """Joins documents by groups into one each, in order."""

  def join(ragged):
    return {'targets': ragged.flat_values}

  return (
      dataset.map(lambda features: features['targets'])
      .ragged_batch(_MERGED_DOCUMENTS)
      .map(join)
  )


def _split_documents(
    dataset: Any, *, tokens_length: int, min_tokens: int, cycle_length: int
) -> Any:
  """Cuts documents into chunks, padded with zeros to `tokens_length`.

  The chunks of `cycle_length` documents take turns.
  """
  import tensorflow as tf

  def chunks(features):
    tokens = features['targets']
    count = (tf.size(tokens) + tokens_length - min_tokens) // tokens_length
    tokens = tokens[: count * tokens_length]
    tokens = tf.pad(tokens, [[0, count * tokens_length - tf.size(tokens)]])
    # One reshape, not a slice each: a tf.data function call per example is
    # what costs here. The padding of the last one comes off in the core.
    tokens = tf.reshape(tokens, [count, tokens_length])
    return tf.data.Dataset.from_tensor_slices({'targets': tokens})

  return dataset.interleave(chunks, cycle_length=cycle_length)


def _corrupt_dataset(
    dataset: Any,
    *,
    vocab_size: int,
    noise_density: float,
    mean_noise_span_length: float,
) -> Any:
  """Maps the numpy core over chunks, a fresh key each (seqio's map seeds)."""
  import seqio
  import tensorflow as tf

  def corrupt(tokens, seed):
    return spans.corrupt_spans(
        tokens[: np.count_nonzero(tokens)],
        key=(int(seed[0]), int(seed[1])),
        vocab_size=vocab_size,
        noise_density=noise_density,
        mean_noise_span_length=mean_noise_span_length,
    )

  @seqio.map_over_dataset(num_seeds=1)
  def corrupt_features(features, seed):
    # Not stateful: it is a function of its arguments alone, and only so can
    # tf.data save the position of an iterator.
    inputs, targets = tf.numpy_function(
        corrupt,
        [features['targets'], seed],
        [tf.int32, tf.int32],
        stateful=False,
    )
    inputs.set_shape([None])
    targets.set_shape([None])
    return {'inputs': inputs, 'targets': targets}

  return corrupt_features(dataset)
