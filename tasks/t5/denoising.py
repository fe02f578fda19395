# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5's objectives over tokens: a part is noise, and to be told."""

from collections.abc import Callable, Mapping, Sequence
import functools

from absl import logging
import gin
import seqio
import tensorflow as tf

from t5wild.data import vocabularies
from t5wild.tasks.t5 import chunks
from t5wild.tasks.t5 import gin_names
from t5wild.tasks.t5 import noise
from t5wild.tasks.t5 import noise_masks

_configurable = gin_names.configurable('t5.data.preprocessors')
# A longer document gives one random piece of so many tokens.
_LONGEST_DOCUMENT = 65_536
_DOCUMENTS_JOINED = 128

# What `denoise` takes; T5 has a protocol for each.
DenoiseNoiseMaskFn = DenoiseInputsFn = DenoiseTargetsFn = Callable[
    ..., tf.Tensor
]


def span_corruption(  # noqa: PLR0913 -- T5's signature
    dataset,
    sequence_length,
    output_features,
    mean_noise_span_length=3.0,
    noise_density=0.15,
    input_feature_key='inputs',
    merge_examples_to_reduce_padding=True,
    reserved_for_packing=None,
    passthrough_feature_keys=None,
):
  """Random spans are left out of the inputs and told in the targets.

  The objective of T5 (Raffel et al., 2020).

  Args:
    dataset: tokens of documents in 'targets'.
    sequence_length: lengths of inputs and targets.
    output_features: the task's.
    mean_noise_span_length: mean length of spans.
    noise_density: share of the tokens that is left out.
    input_feature_key: name of the inputs.
    merge_examples_to_reduce_padding: whether documents are joined, so that
      nearly all examples are full.
    reserved_for_packing: tokens of the inputs to leave free.
    passthrough_feature_keys: fields to keep, where documents are not joined.

  Returns:
    Inputs and targets without ends of sequence.

  Raises:
    ValueError: targets that do not fit their length, or fields to keep of
      documents that are joined.
  """
  tokens_length, targets_length = random_spans_helper(
      inputs_length=sequence_length[input_feature_key]
      - (reserved_for_packing or 0),
      noise_density=noise_density,
      mean_noise_span_length=mean_noise_span_length,
      extra_tokens_per_span_inputs=1,
      extra_tokens_per_span_targets=1,
  )
  if sequence_length['targets'] < targets_length:
    raise ValueError(
        f"the targets' length is {sequence_length['targets']}: expected at "
        f'least {targets_length}, which span corruption of inputs of '
        f'{sequence_length[input_feature_key]} comes to. Raise the length of '
        'targets in TASK_FEATURE_LENGTHS.'
    )
  if merge_examples_to_reduce_padding and passthrough_feature_keys:
    raise ValueError(
        f'passthrough_feature_keys is {passthrough_feature_keys}: expected '
        'none where documents are joined. Set '
        'merge_examples_to_reduce_padding = False.'
    )
  dataset = _pieces(
      dataset,
      output_features,
      are_joined=merge_examples_to_reduce_padding,
      kept=passthrough_feature_keys,
  )
  dataset = chunks.split_tokens(
      dataset,
      max_tokens_per_segment=tokens_length,
      feature_key='targets',
      passthrough_feature_keys=passthrough_feature_keys,
  )
  return denoise(
      dataset,
      output_features,
      noise_density=noise_density,
      noise_mask_fn=functools.partial(
          noise_masks.random_spans_noise_mask,
          mean_noise_span_length=mean_noise_span_length,
      ),
      inputs_fn=noise.noise_span_to_unique_sentinel,
      targets_fn=noise.nonnoise_span_to_unique_sentinel,
      passthrough_feature_keys=passthrough_feature_keys,
      input_feature_key=input_feature_key,
  )


def iid_denoising(dataset, sequence_length, output_features):
  """As span corruption, of tokens drawn each by itself (the T5 baseline)."""
  dataset = _pieces(dataset, output_features, are_joined=True)
  dataset = chunks.split_tokens_to_inputs_length(
      dataset, sequence_length=sequence_length, output_features=output_features
  )
  return denoise(
      dataset,
      output_features,
      noise_density=0.15,
      noise_mask_fn=noise_masks.iid_noise_mask,
      inputs_fn=noise.noise_span_to_unique_sentinel,
      targets_fn=noise.nonnoise_span_to_unique_sentinel,
  )


def prefix_lm(dataset, sequence_length, output_features, noise_density=0.5):
  """A random first part is given, the rest is the target."""
  dataset = _pieces(dataset, output_features, are_joined=False)
  dataset = chunks.split_tokens_to_inputs_length(
      dataset, sequence_length=sequence_length, output_features=output_features
  )
  return denoise(
      dataset,
      output_features,
      noise_density=noise_density,
      noise_mask_fn=noise_masks.random_prefix_noise_mask,
      inputs_fn=noise.drop_nonnoise_tokens,
      targets_fn=noise.drop_noise_tokens,
  )


def full_lm(dataset, sequence_length, output_features):
  """All tokens are targets; ends of sequence stand where documents end."""
  dataset = chunks.select_random_chunk(
      dataset, output_features=output_features, max_length=_LONGEST_DOCUMENT
  )
  dataset = seqio.preprocessors.append_eos(dataset, output_features)
  dataset = chunks.reduce_concat_tokens(dataset, batch_size=_DOCUMENTS_JOINED)
  return chunks.split_tokens(
      dataset, max_tokens_per_segment=sequence_length['targets']
  )


@_configurable
def unsupervised(
    dataset, preprocessors=None, output_features=None, sequence_length=None
):
  """Applies the token preprocessors that gin binds, one after the other.

  Args:
    dataset: tokens.
    preprocessors: functions of a data set, with `output_features` and
      `sequence_length` as keywords; None leaves the data set as it is.
    output_features: the task's.
    sequence_length: lengths by feature.

  Returns:
    The data set.
  """
  if preprocessors is None:
    logging.warning(
        'No preprocessors are bound to unsupervised: nothing is done.'
    )
    return dataset
  given = {
      'output_features': output_features, 'sequence_length': sequence_length
  }
  for preprocess in preprocessors:
    dataset = preprocess(
        dataset, **{name: value for name, value in given.items() if value}
    )
  return dataset


@_configurable
def random_spans_helper(
    inputs_length=gin.REQUIRED,
    noise_density=gin.REQUIRED,
    mean_noise_span_length=gin.REQUIRED,
    extra_tokens_per_span_inputs=gin.REQUIRED,
    extra_tokens_per_span_targets=gin.REQUIRED,
    verbose=False,
):
  """How many tokens of text fill inputs of a length, and how long targets are.

  Args:
    inputs_length: length of the inputs, end of sequence included.
    noise_density: share of noise.
    mean_noise_span_length: mean length of spans.
    extra_tokens_per_span_inputs: tokens of the inputs for each span of noise.
    extra_tokens_per_span_targets: tokens of the targets for each span.
    verbose: whether to log the lengths.

  Returns:
    Number of tokens, and length of the targets with an end of sequence.
  """

  def lengths(num_tokens):
    num_noise = int(round(num_tokens * noise_density))
    num_spans = int(round(num_noise / mean_noise_span_length))
    return (
        num_tokens - num_noise + num_spans * extra_tokens_per_span_inputs + 1,
        num_noise + num_spans * extra_tokens_per_span_targets + 1,
    )

  num_tokens = inputs_length - 1
  while lengths(num_tokens + 1)[0] <= inputs_length:
    num_tokens += 1
  inputs, targets = lengths(num_tokens)
  # With one half of noise both sides get the inputs' length, a round number.
  if noise_density == 0.5 and targets > inputs:
    num_tokens, targets = num_tokens - 1, targets - 1
  if verbose:
    logging.info(
        '%d tokens give inputs of %d and targets of %d.',
        num_tokens, inputs, targets,
    )  # fmt: skip
  return num_tokens, targets


@_configurable
def random_spans_tokens_length():
  """The first of what gin's `random_spans_helper` gives."""
  return random_spans_helper()[0]


@_configurable
def random_spans_targets_length():
  """The second of what gin's `random_spans_helper` gives."""
  return random_spans_helper()[1]


def single_example_denoise(  # noqa: PLR0913 -- T5's signature
    features: Mapping[str, tf.Tensor],
    seed: tf.Tensor,
    *,
    output_features: Mapping[str, seqio.Feature],
    noise_density: float,
    noise_mask_fn: DenoiseNoiseMaskFn,
    inputs_fn: DenoiseInputsFn,
    targets_fn: DenoiseTargetsFn | None = None,
    passthrough_feature_keys: Sequence[str] | None = None,
    input_feature_key: str = 'inputs',
    batch_size: int | None = None,
) -> Mapping[str, tf.Tensor]:
  """Makes inputs and targets of an example's 'targets'.

  Args:
    features: the example.
    seed: of all draws.
    output_features: the task's.
    noise_density: share of noise.
    noise_mask_fn: see `noise_masks`.
    inputs_fn: see `noise`.
    targets_fn: see `noise`; None leaves the targets as they are.
    passthrough_feature_keys: fields to keep.
    input_feature_key: name of the inputs.
    batch_size: number of rows, where the example is a batch.

  Returns:
    The example.

  Raises:
    ValueError: fields to keep that are made here, or two vocabularies.
  """
  kept = set(passthrough_feature_keys or ())
  taken = sorted(kept & {input_feature_key, 'targets'})
  if taken:
    raise ValueError(
        f'passthrough_feature_keys has {taken}: expected fields that are not '
        'made here. Leave them out.'
    )
  vocabulary = output_features['targets'].vocabulary
  other = output_features.get(input_feature_key, output_features['targets'])
  if other.vocabulary != vocabulary:
    raise ValueError(
        'inputs are made of targets, and their vocabularies differ:\n'
        f'  {input_feature_key}: {vocabularies.in_words(other.vocabulary)}\n'
        f'  targets: {vocabularies.in_words(vocabulary)}\n'
        'Expected the same. Give both features one vocabulary.'
    )
  rows = {'batch_size': batch_size} if batch_size else {}
  seeds = tf.unstack(
      tf.random.experimental.stateless_split(chunks.maybe_cast_seed(seed), 6)
  )
  tokens = features['targets']
  mask = noise_mask_fn(
      tf.size(tokens) // (batch_size or 1),
      noise_density,
      seeds=seeds[:2],
      **rows,
  )
  made = {
      input_feature_key: inputs_fn(
          tokens, mask, vocabulary, seeds=seeds[2:4], **rows
      ),
      'targets': targets_fn(
          tokens, mask, vocabulary, seeds=seeds[4:6], **rows
      )
      if targets_fn
      else tokens,
  }
  return made | {key: features[key] for key in features if key in kept}


@_configurable
def denoise(
    dataset,
    output_features,
    noise_density=gin.REQUIRED,
    noise_mask_fn=gin.REQUIRED,
    inputs_fn=gin.REQUIRED,
    targets_fn=None,
    passthrough_feature_keys: Sequence[str] | None = None,
    input_feature_key='inputs',
    **unused_kwargs,
):
  """`single_example_denoise` of each example."""
  del unused_kwargs

  @seqio.map_over_dataset(num_seeds=1)
  def make(features, seed):
    return single_example_denoise(
        features,
        seed,
        output_features=output_features,
        noise_density=noise_density,
        noise_mask_fn=noise_mask_fn,
        inputs_fn=inputs_fn,
        targets_fn=targets_fn,
        passthrough_feature_keys=passthrough_feature_keys,
        input_feature_key=input_feature_key,
    )

  return make(dataset)


def _pieces(
    dataset: tf.data.Dataset,
    output_features: Mapping[str, seqio.Feature],
    *,
    are_joined: bool,
    kept: Sequence[str] | None = None,
) -> tf.data.Dataset:
  """Documents that are not too long, some of them joined to one."""
  dataset = chunks.select_random_chunk(
      dataset,
      output_features=output_features,
      max_length=_LONGEST_DOCUMENT,
      feature_key='targets',
      passthrough_feature_keys=kept,
  )
  if not are_joined:
    return dataset
  return chunks.reduce_concat_tokens(
      dataset, feature_key='targets', batch_size=_DOCUMENTS_JOINED
  )
