# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""tf.data around the numpy core: documents in, examples out.

TensorFlow and seqio are imported when a function here is called, not before.
"""

from typing import Any

import numpy as np

from t5wild.data import examples

# Documents that go through the core together, and whose chunks take turns.
_DOCUMENTS = 16
# Documents that are joined where documents are merged.
_MERGED_DOCUMENTS = 64


class PlanOnly:
  """Stands for a data set where only an objective's plan is wanted."""


def tokenize_documents(dataset: Any, output_features: Any) -> Any:
  """seqio preprocessor: text in `targets` to ids, in order; ids stay.

  Unlike seqio.preprocessors.tokenize it keeps no copy of the text and works on
  few documents at a time, so that a saved position stays small.
  """
  import tensorflow as tf

  vocabulary = output_features['targets'].vocabulary

  def tokenize(features):
    ids = features['targets']
    if ids.dtype == tf.string:
      ids = vocabulary.encode_tf(ids)
    return {'targets': tf.cast(ids, tf.int32)}

  return dataset.map(tokenize, num_parallel_calls=2, deterministic=True)


def apply(dataset: Any, objective: examples.Objective) -> Any:
  """Makes examples of documents, a fresh key each (seqio's map seeds).

  Args:
    dataset: tf.data.Dataset of {'targets': int32 [tokens]}, or `PlanOnly()`.
    objective: what to make of them.

  Returns:
    tf.data.Dataset of {'inputs', 'targets'}, or of {'targets'} where the
    objective is concatenated: int32 [tokens], without end of sequence. The
    objective itself for `PlanOnly()`.
  """
  if isinstance(dataset, PlanOnly):
    return objective
  import seqio
  import tensorflow as tf

  names = ('targets',) if objective.is_concatenated else ('inputs', 'targets')

  @seqio.map_over_dataset(num_seeds=1)
  def with_key(features, seed):
    return {'targets': features['targets'], 'key': tf.ensure_shape(seed, [2])}

  def make(tokens, ends, keys):
    documents = np.split(tokens, ends[:-1])
    keys = [(int(first), int(second)) for first, second in keys]
    made = examples.make_examples(documents, keys, objective)
    rows = dict(zip(('inputs', 'targets'), made, strict=True))
    return sum(([rows[name].values, rows[name].lengths] for name in names), [])

  def make_rows(block):
    tokens = block['targets']
    # Not stateful: it is a function of its arguments alone, and only so can
    # tf.data save the position of an iterator.
    made = tf.numpy_function(
        make,
        [tokens.flat_values, tokens.row_limits(), block['key']],
        [tf.int32, tf.int64] * len(names),
        stateful=False,
    )
    for part in made:
      part.set_shape([None])
    return {
        name: tf.RaggedTensor.from_row_lengths(
            made[2 * i], made[2 * i + 1], validate=False
        )
        for i, name in enumerate(names)
    }

  size = _MERGED_DOCUMENTS if objective.merge_documents else _DOCUMENTS
  dataset = with_key(dataset).ragged_batch(size).map(make_rows).unbatch()
  return dataset.map(dict)  # a row of a ragged tensor becomes a dense one
