# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of different lengths do what lists of lists do."""

import hypothesis
from hypothesis import strategies
import numpy as np

from t5wild.data import rows as rows_lib

settings = hypothesis.settings(deadline=None, max_examples=50)
row_lists = strategies.lists(
    strategies.lists(strategies.integers(1, 9), max_size=4),
    min_size=1,
    max_size=6,
)


def rows_of(lists):
  return rows_lib.Rows(
      values=np.array(sum(lists, []), np.int32),
      lengths=np.array([len(row) for row in lists], np.int64),
  )


def lists_of(rows):
  return [row.tolist() for row in rows.split()]


@settings
@hypothesis.given(row_lists, strategies.randoms(use_true_random=False))
def test_take_reorders_rows(lists, random):
  order = list(range(len(lists)))
  random.shuffle(order)
  taken = rows_lib.take(rows_of(lists), np.array(order))
  assert lists_of(taken) == [lists[index] for index in order]


@settings
@hypothesis.given(row_lists)
def test_stack_and_join_put_rows_below_and_beside_each_other(lists):
  other = [[7] * len(row) for row in reversed(lists)]
  stacked = rows_lib.stack([rows_of(lists), rows_of(other)])
  assert lists_of(stacked) == lists + other
  joined = rows_lib.join(rows_of(lists), rows_of(other), rows_of(lists))
  assert lists_of(joined) == [
      a + b + a for a, b in zip(lists, other, strict=True)
  ]


@settings
@hypothesis.given(row_lists)
def test_prepend_puts_the_same_tokens_in_front_of_each_row(lists):
  found = lists_of(rows_lib.prepend((8, 9), rows_of(lists)))
  assert found == [[8, 9, *row] for row in lists]
  assert lists_of(rows_lib.prepend((), rows_of(lists))) == lists


def test_a_matrix_is_rows_of_one_length():
  matrix = np.arange(6, dtype=np.int32).reshape(3, 2)
  assert lists_of(rows_lib.from_matrix(matrix)) == [[0, 1], [2, 3], [4, 5]]
  assert lists_of(rows_lib.no_tokens(2)) == [[], []]
