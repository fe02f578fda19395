# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The numpy converter gives seqio's features."""

import numpy as np
import pytest

from t5wild.data import feature_converters

EXAMPLES = [
    {'inputs': [7, 8, 5, 1], 'targets': [3, 9, 1]},
    {'inputs': [8, 4, 9, 3, 6, 2, 1], 'targets': [4, 1]},
]
LENGTHS = {'inputs': 6, 'targets': 4}


def test_padded_batches_are_those_of_seqio(seqio):
  tf = pytest.importorskip('tensorflow')

  def rows():
    for example in EXAMPLES:
      yield {
          name: np.array(ids[: LENGTHS[name]], np.int32)
          for name, ids in example.items()
      }

  spec = {name: tf.TensorSpec([None], tf.int32) for name in LENGTHS}
  dataset = tf.data.Dataset.from_generator(rows, output_signature=spec)
  converter = seqio.EncDecFeatureConverter(pack=False)
  expected = next(converter(dataset, LENGTHS).batch(2).as_numpy_iterator())
  found = feature_converters.make_encoder_decoder_batch(
      EXAMPLES, task_feature_lengths=LENGTHS
  )
  assert found.keys() == expected.keys()
  for name, array in expected.items():
    np.testing.assert_array_equal(found[name], array)
    assert found[name].dtype == array.dtype


def test_each_segment_begins_with_the_begin_of_sequence():
  # The example of seqio's documentation of packed decoder inputs.
  found = feature_converters.shift_right(
      np.array([[3, 9, 1, 4, 1, 0, 0]], np.int32),
      segment_ids=np.array([[1, 1, 1, 2, 2, 0, 0]], np.int32),
  )
  assert found.tolist() == [[0, 3, 9, 0, 4, 0, 0]]


def test_converters_of_seqio_are_attributes_and_nothing_else_is(seqio):
  assert (
      feature_converters.LMFeatureConverter is seqio.LMFeatureConverter
  )
  with pytest.raises(AttributeError, match='has no attribute'):
    feature_converters.nothing  # noqa: B018 -- the look-up is what is tried
