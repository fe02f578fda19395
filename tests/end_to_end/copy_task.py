# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A seqio task with metrics: write the inputs once more."""

import functools
import itertools

import numpy as np
import seqio

# No multiple of a batch: the last batch is filled up, and that must not count.
NUM_EXAMPLES = {'train': 64, 'validation': 11}
VOCABULARY = seqio.ByteVocabulary(125)
FEATURES = {
    name: seqio.Feature(VOCABULARY, add_eos=True)
    for name in ('inputs', 'targets')
}


def texts(split: str, seed: int = 0) -> list[str]:
  numbers = np.random.default_rng([seed, len(split)])
  return [
      'ab'[numbers.integers(2)] * int(numbers.integers(1, 6))
      for _ in range(NUM_EXAMPLES[split])
  ]


def _make_dataset(split: str, shuffle_files: bool, seed: int | None = None):
  import tensorflow as tf

  del shuffle_files, seed
  return tf.data.Dataset.from_tensor_slices(
      {'inputs': texts(split), 'targets': texts(split)}
  )


def character_accuracy(targets, predictions) -> dict[str, float]:
  pairs = [
      pair
      for target, prediction in zip(targets, predictions, strict=True)
      for pair in itertools.zip_longest(target, prediction)
  ]
  return {
      'character_accuracy': float(np.mean([a == b for a, b in pairs])),
      'num_predictions': len(predictions),
  }


def mean_score(targets, scores) -> dict[str, float]:
  return {'mean_score': float(np.mean(scores)), 'num_scores': len(targets)}


make_task = functools.partial(
    seqio.Task,
    source=seqio.FunctionDataSource(
        _make_dataset,
        splits=tuple(NUM_EXAMPLES),
        num_input_examples=NUM_EXAMPLES,
    ),
    preprocessors=[
        seqio.preprocessors.tokenize,
        seqio.preprocessors.append_eos,
    ],
    output_features=FEATURES,
    metric_fns=[character_accuracy, mean_score],
)


def copy_task(metric_fns=(character_accuracy, mean_score)) -> seqio.Task:
  """A task that no registry knows."""
  return make_task('t5wild_copy', metric_fns=list(metric_fns))
