# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Small subjects made of lists of tokens."""

import numpy as np

from t5wild.data import rows as rows_lib
from t5wild.data import vocabularies
from t5wild.inspecting import subject as subject_lib

VOCABULARY = vocabularies.ByteVocabulary(125)


def rows_of(lists):
  """Rows of lists of tokens."""
  return rows_lib.Rows(
      values=np.array([t for each in lists for t in each], np.int32),
      lengths=np.array([len(each) for each in lists], np.int64),
  )


def make(
    targets, inputs=None, *, kind=None, lengths=None, documents=(), **values
):
  """A subject of examples."""
  examples = {'targets': rows_of(targets)}
  if inputs is not None:
    examples['inputs'] = rows_of(inputs)
  lengths = lengths or subject_lib.fitting_lengths(examples)
  return subject_lib.Subject(
      title='made',
      facts={},
      vocabularies=dict.fromkeys(examples, VOCABULARY),
      layout=subject_lib.make_layout(
          list(examples), kind=kind, lengths=lengths
      ),
      examples=examples,
      documents=list(documents),
      **values,
  )


def pairs(count=60, *, seed=0):
  """(inputs, targets): lists of tokens of heavy-tailed lengths."""
  numbers = np.random.default_rng(seed)
  sizes = np.exp(numbers.normal(2.0, 0.8, (2, count))).astype(int) + 1
  return tuple(
      [[*numbers.integers(3, 259, size).tolist(), 1] for size in side]
      for side in sizes
  )
