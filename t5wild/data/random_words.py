# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Random 64-bit words as a function of a key, and what is chosen by them.

Only the raw bits of Philox are used, which numpy promises to keep: the same
key gives the same words with any version of numpy.
"""

import numpy as np

_WORD = 0xFFFFFFFFFFFFFFFF
_BLOCK = 4  # words that Philox makes for one value of its counter


def draw(
    key: tuple[int, int],
    *,
    num_rows: int,
    words_per_row: int,
    first_row: int = 0,
    stream: int = 0,
) -> np.ndarray:
  """Draws words; row i of a key is the same, however many rows are drawn.

  Args:
    key: two integers, for instance (seed, index of the document).
    num_rows: rows to draw.
    words_per_row: words of each row; other numbers of words make other rows.
    first_row: number of the first row.
    stream: rows of another stream have nothing to do with these.

  Returns:
    uint64 [num_rows, words_per_row].
  """
  blocks = -(-words_per_row // _BLOCK)
  words = [part & _WORD for part in key]
  bits = np.random.Philox(
      key=np.array(words, np.uint64),
      counter=np.array([first_row * blocks, 0, 0, stream], np.uint64),
  )
  drawn = bits.random_raw(num_rows * blocks * _BLOCK)
  return drawn.reshape(num_rows, blocks * _BLOCK)[:, :words_per_row]


def choose(words: np.ndarray, *, count: int) -> np.ndarray:
  """Chooses columns of each row, every choice equally likely.

  They are the columns of the smallest words.

  Args:
    words: uint64 [rows, columns].
    count: columns to choose, from 1 to all of them.

  Returns:
    int64 [rows, count], in no order.
  """
  columns = words.shape[1]
  # The column's number takes the place of the lowest bits: then numbers can be
  # sorted instead of their indices, several times as fast.
  low = np.uint64((1 << (columns - 1).bit_length()) - 1)
  numbered = (words & ~low) | np.arange(columns, dtype=np.uint64)
  if count < columns:
    numbered = np.partition(numbered, count - 1, axis=1)[:, :count]
  return (numbered & low).astype(np.int64)


def choose_some(
    words: np.ndarray, *, counts: np.ndarray, columns: np.ndarray, none: int
) -> np.ndarray:
  """`choose` for rows of different counts and numbers of columns.

  Args:
    words: uint64 [rows, columns].
    counts: int64 [rows], columns to choose; the largest is at least 1.
    columns: int64 [rows], the first so many may be chosen.
    none: stands where a row has fewer than the largest count.

  Returns:
    int64 [rows, largest count], in no order.
  """
  most = int(counts.max())
  width = words.shape[1]
  numbers = np.arange(width, dtype=np.uint64)
  low = np.uint64((1 << (width - 1).bit_length()) - 1)
  numbered = (words & ~low) | numbers
  numbered[numbers >= columns[:, np.newaxis].astype(np.uint64)] = _WORD
  if most < width:
    numbered = np.partition(numbered, most - 1, axis=1)[:, :most]
  numbered = np.sort(numbered, axis=1)
  chosen = (numbered & low).astype(np.int64)
  return np.where(np.arange(most) < counts[:, np.newaxis], chosen, none)


def below(words: np.ndarray, bounds: np.ndarray | int) -> np.ndarray:
  """Whole numbers from 0 to below the bounds, equally likely: int64."""
  return (words % np.asarray(bounds, np.uint64)).astype(np.int64)


def unit(words: np.ndarray) -> np.ndarray:
  """Numbers in [0, 1): float64 of the words' shape."""
  return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
