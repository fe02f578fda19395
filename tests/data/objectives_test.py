# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Documents become chunks; lengths are checked before anything is read."""

import types

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from t5wild.data import objectives


def chunks(documents, *, tokens_length, min_tokens=2, cycle_length=1):
  tf = pytest.importorskip('tensorflow')
  dataset = tf.data.Dataset.from_generator(
      lambda: ({'targets': document} for document in documents),
      output_signature={'targets': tf.TensorSpec([None], tf.int32)},
  )
  made = objectives._split_documents(
      dataset,
      tokens_length=tokens_length,
      min_tokens=min_tokens,
      cycle_length=cycle_length,
  )
  return [example['targets'] for example in made.as_numpy_iterator()]


@hypothesis.settings(deadline=None, max_examples=15)
@hypothesis.given(
    size=strategies.integers(0, 40), tokens_length=strategies.integers(2, 12)
)
def test_chunks_join_to_the_document_less_a_tail_too_short(
    seqio, size, tokens_length
):
  del seqio
  document = np.arange(1, size + 1, dtype=np.int32)
  found = chunks([document], tokens_length=tokens_length, min_tokens=2)
  joined = np.concatenate([*found, np.zeros(0, np.int32)])
  kept = size - (size % tokens_length if size % tokens_length < 2 else 0)
  np.testing.assert_array_equal(joined[joined > 0], document[:kept])
  assert all(chunk.size == tokens_length for chunk in found)


def test_chunks_of_several_documents_take_turns(seqio):
  del seqio
  documents = [np.full(6, value, np.int32) for value in (1, 2, 3)]
  found = chunks(documents, tokens_length=3, cycle_length=2)
  assert [chunk[0] for chunk in found] == [1, 2, 1, 2, 3, 3]


def plan(inputs, targets, *, extra_ids=100, density=0.15):
  return objectives.checked_plan(
      {'inputs': inputs, 'targets': targets},
      vocabulary=types.SimpleNamespace(extra_ids=extra_ids),
      noise_density=density,
      mean_noise_span_length=3.0,
  )


def test_lengths_that_fit_make_a_plan():
  assert plan(512, 114).tokens_length == 568


def test_targets_that_would_be_cut_off_are_refused_with_the_length():
  with pytest.raises(ValueError, match="113 would be cut.*'targets': 114"):
    plan(512, 113)


def test_sentinels_that_run_out_are_refused_with_the_number():
  with pytest.raises(ValueError, match='27 sentinels.*at least 28.*extra_ids'):
    plan(512, 114, extra_ids=27)
