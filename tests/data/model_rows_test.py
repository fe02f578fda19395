# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Rows are those of seqio's converters, for each kind of model."""

import functools

import numpy as np
import pytest
import seqio
import tensorflow as tf

from t5wild.data import model_rows
from t5wild.data import rows as rows_lib

_LENGTHS = {'inputs': 12, 'targets': 9}
# One row of each: none could take an example of the next one too.
_EXAMPLES = [
    [([7, 8, 5, 1], [3, 9, 1]), ([8, 4, 9, 3, 1], [4, 1])],
    [([5] * 11 + [1], [6] * 8 + [1])],
    [([9], [1]), ([3, 1], [4, 5, 1]), ([3, 3, 1], [1])],
]


def _rows(lists) -> rows_lib.Rows:
  return rows_lib.Rows(
      values=np.array(sum(lists, []), np.int32),
      lengths=np.array([len(each) for each in lists], np.int64),
  )


def _made(converter, *, pack: bool, rows, lengths=_LENGTHS):
  layout = model_rows.find_layout(converter, lengths=lengths, pack=pack)
  flat = [pair for row in rows for pair in row]
  found = model_rows.RowsOfExamples(
      examples={
          'inputs': _rows([list(inputs) for inputs, _ in flat]),
          'targets': _rows([list(targets) for _, targets in flat]),
      },
      row_starts=np.append(0, np.cumsum([len(row) for row in rows])),
  )
  return found.make(0, len(rows), layout=layout)


def _seqios(converter, *, pack: bool, rows, lengths=_LENGTHS):
  """seqio's batch; it packs in order, and our rows are full for what comes."""
  flat = [pair for row in rows for pair in row]
  dataset = tf.data.Dataset.from_generator(
      lambda: (
          {
              name: np.array(value, np.int32)
              for name, value in zip(('inputs', 'targets'), pair, strict=True)
              if name in lengths
          }
          for pair in flat
      ),
      output_signature={
          name: tf.TensorSpec([None], tf.int32) for name in lengths
      },
  )
  batches = list(converter(pack=pack)(dataset, lengths).as_numpy_iterator())
  assert len(batches) == len(rows)
  return {name: np.stack([b[name] for b in batches]) for name in batches[0]}


@pytest.mark.parametrize('pack', [True, False])
@pytest.mark.parametrize(
    'converter',
    [
        seqio.EncDecFeatureConverter,
        seqio.DecoderFeatureConverter,
        seqio.PrefixLMFeatureConverter,
        functools.partial(
            seqio.PrefixLMFeatureConverter, loss_on_targets_only=False
        ),
    ],
)
def test_rows_are_seqios(converter, pack):
  rows = _EXAMPLES if pack else [[pair] for row in _EXAMPLES for pair in row]
  found = _made(converter, pack=pack, rows=rows)
  expected = _seqios(converter, pack=pack, rows=rows)
  assert found.keys() == expected.keys()
  for name, array in expected.items():
    np.testing.assert_array_equal(found[name], array, err_msg=name)
    assert found[name].dtype == np.int32


@pytest.mark.parametrize('pack', [True, False])
def test_rows_of_a_causal_language_model_are_seqios(pack):
  lengths = {'targets': 9}
  rows = _EXAMPLES if pack else [[pair] for row in _EXAMPLES for pair in row]
  converter = seqio.DecoderFeatureConverter
  found = _made(converter, pack=pack, rows=rows, lengths=lengths)
  expected = _seqios(converter, pack=pack, rows=rows, lengths=lengths)
  assert found.keys() == expected.keys()
  for name, array in expected.items():
    np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_some_rows_are_those_of_all_rows():
  whole = _made(seqio.EncDecFeatureConverter, pack=True, rows=_EXAMPLES)
  flat = [pair for row in _EXAMPLES for pair in row]
  layout = model_rows.find_layout(
      seqio.EncDecFeatureConverter, lengths=_LENGTHS, pack=True
  )
  found = model_rows.RowsOfExamples(
      examples={
          'inputs': _rows([list(inputs) for inputs, _ in flat]),
          'targets': _rows([list(targets) for _, targets in flat]),
      },
      row_starts=np.array([0, 2, 3, 6]),
  ).make(1, 3, layout=layout)
  for name, array in whole.items():
    np.testing.assert_array_equal(found[name], array[1:3], err_msg=name)


def test_an_unknown_converter_is_refused_with_those_known():
  with pytest.raises(ValueError, match='EncDecFeatureConverter'):
    model_rows.find_layout(
        seqio.EncoderFeatureConverter, lengths=_LENGTHS, pack=False
    )


def test_features_without_a_length_are_named():
  with pytest.raises(ValueError, match=r"lacks \['inputs'\]"):
    model_rows.find_layout(
        seqio.EncDecFeatureConverter, lengths={'targets': 4}, pack=False
    )
