# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Random words: a function of the key alone; choices are even."""

import hypothesis
from hypothesis import strategies
import numpy as np

from t5wild.data import random_words

settings = hypothesis.settings(deadline=None, max_examples=50)
keys = strategies.tuples(
    strategies.integers(-(2**63), 2**63 - 1), strategies.integers(0, 2**40)
)


@settings
@hypothesis.given(keys, strategies.integers(0, 9), strategies.integers(0, 20))
def test_a_row_is_the_same_however_many_are_drawn(key, row, width):
  together = random_words.draw(key, num_rows=10, words_per_row=width)
  alone = random_words.draw(
      key, num_rows=1, words_per_row=width, first_row=row
  )
  np.testing.assert_array_equal(together[row], alone[0])


def test_words_are_those_that_numpy_promises_to_keep():
  bits = np.random.Philox(key=np.array([3, 5], np.uint64))
  words = random_words.draw((3, 5), num_rows=2, words_per_row=8)
  np.testing.assert_array_equal(words.reshape(-1), bits.random_raw(16))


def test_streams_keys_and_rows_share_no_word():
  drawn = [
      random_words.draw(key, num_rows=20, words_per_row=5, stream=stream)
      for key in ((0, 0), (0, 1), (1, 0))
      for stream in (0, 1)
  ]
  words = np.concatenate(drawn).reshape(-1)
  assert np.unique(words).size == words.size


@settings
@hypothesis.given(keys, strategies.integers(1, 40), strategies.data())
def test_chosen_columns_are_those_of_the_smallest_words(key, columns, data):
  count = data.draw(strategies.integers(1, columns))
  words = random_words.draw(key, num_rows=3, words_per_row=columns)
  chosen = np.sort(random_words.choose(words, count=count), axis=1)
  smallest = np.sort(np.argsort(words, axis=1)[:, :count], axis=1)
  np.testing.assert_array_equal(chosen, smallest)


def test_numbers_below_a_bound_are_as_likely():
  words = random_words.draw((1, 1), num_rows=1, words_per_row=6000)[0]
  counts = np.bincount(random_words.below(words, 6), minlength=6)
  # 1000 each, +- 29 (one deviation); 5 are allowed.
  assert counts.size == 6
  assert np.abs(counts - 1000).max() < 5 * 29


def test_unit_numbers_are_spread_evenly_from_0_to_below_1():
  words = random_words.draw((2, 1), num_rows=1, words_per_row=4000)[0]
  numbers = random_words.unit(words)
  assert numbers.min() >= 0.0
  assert numbers.max() < 1.0
  counts, _ = np.histogram(numbers, bins=4, range=(0.0, 1.0))
  assert np.abs(counts - 1000).max() < 5 * 28
