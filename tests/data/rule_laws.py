# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What every rule of `denoisers.Rule` is held to, and how tests apply one."""

import numpy as np

from t5wild.data import random_words


def apply_to_full_rows(rule, size, *, first_sentinel, num_rows, key=(0, 0)):
  """Random text and what a rule makes of it: (text, inputs, targets)."""
  tokens = np.random.default_rng(size).integers(
      3, 259, (num_rows, size), np.int32
  )
  words = random_words.draw(
      key, num_rows=num_rows, words_per_row=rule.num_words(size)
  )
  inputs, targets = rule.apply(tokens, words, first_sentinel=first_sentinel)
  return tokens, inputs.split(), targets.split()


def assert_short_rows_do_not_depend_on_others(rule, sizes):
  """A row of each size, turned together, is what it is alone."""
  lengths = np.array(sizes)
  shape = (len(sizes), max(sizes))
  tokens = np.random.default_rng(0).integers(3, 259, shape, np.int32)
  words = random_words.draw(
      (0, 0), num_rows=len(sizes), words_per_row=rule.num_words(301)
  )
  inputs, targets = (
      rows.split()
      for rows in rule.apply(
          tokens, words, first_sentinel=1999, lengths=lengths
      )
  )
  for row, size in enumerate(sizes):
    alone = rule.apply(
        tokens[row : row + 1, :size],
        words[row : row + 1],
        first_sentinel=1999,
    )
    np.testing.assert_array_equal(inputs[row], alone[0].values)
    np.testing.assert_array_equal(targets[row], alone[1].values)
