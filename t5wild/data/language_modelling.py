# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Rules that keep the text whole: causal LM, prefix LM, fill in the middle.

See `denoisers.Rule`.
"""

import dataclasses
import enum

import numpy as np

from t5wild.data import denoisers
from t5wild.data import random_words
from t5wild.data import rows as rows_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class CausalLM:
  """All of the text is asked for; there are no inputs."""

  def lengths(self, tokens_length: int) -> denoisers.Lengths:
    """See `denoisers.Rule.lengths`; exact."""
    return denoisers.Lengths(
        inputs=0, targets=tokens_length, total=tokens_length
    )

  def num_words(self, tokens_length: int) -> int:
    """None."""
    del tokens_length
    return 0

  def apply(
      self,
      tokens: np.ndarray,
      words: np.ndarray,
      *,
      first_sentinel: int,
      lengths: np.ndarray | None = None,
  ) -> tuple[rows_lib.Rows, rows_lib.Rows]:
    """See `denoisers.Rule.apply`."""
    del words, first_sentinel
    stops = _stops(tokens, lengths)
    return (
        rows_lib.no_tokens(tokens.shape[0]),
        _slices(tokens, np.zeros_like(stops), stops),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrefixLM:
  """The beginning of the text is given, the rest is asked for.

  Attributes:
    shortest: smallest fraction of the text to give, in [0, 1].
    longest: largest; each length from the one to the other is as likely. At
      least one token is given and one is asked for.
  """

  shortest: float
  longest: float

  def __post_init__(self):
    """Refuses fractions out of range."""
    if not 0.0 <= self.shortest <= self.longest <= 1.0:
      raise ValueError(
          f'the prefix is {self.shortest!r} to {self.longest!r} of the text: '
          'expected fractions from 0 to 1, the smaller one first. Set the '
          "task's split to one fraction such as 0.75, to a pair such as (0.0, "
          "1.0), or to 'lengths'."
      )

  def _bounds(self, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fewest and most tokens of the prefix, of rows of these lengths."""
    fewest, most = (
        np.clip(
            np.rint(fraction * lengths).astype(np.int64),
            lengths > 1,
            np.maximum(lengths - 1, 0),
        )
        for fraction in (self.shortest, self.longest)
    )
    return fewest, most

  def lengths(self, tokens_length: int) -> denoisers.Lengths:
    """See `denoisers.Rule.lengths`; exact where the split is fixed."""
    fewest, most = map(int, self._bounds(np.int64(tokens_length)))
    return denoisers.Lengths(
        inputs=most,
        targets=tokens_length - fewest,
        total=tokens_length,
        is_exact=fewest == most,
    )

  def num_words(self, tokens_length: int) -> int:
    """One, where the split is drawn."""
    del tokens_length
    return int(self.shortest < self.longest)

  def apply(
      self,
      tokens: np.ndarray,
      words: np.ndarray,
      *,
      first_sentinel: int,
      lengths: np.ndarray | None = None,
  ) -> tuple[rows_lib.Rows, rows_lib.Rows]:
    """See `denoisers.Rule.apply`."""
    del first_sentinel
    stops = _stops(tokens, lengths)
    split, most = self._bounds(stops)
    if self.num_words(tokens.shape[1]):
      split = split + random_words.below(words[:, 0], most - split + 1)
    return (
        _slices(tokens, np.zeros_like(split), split),
        _slices(tokens, split, stops),
    )


def _stops(tokens: np.ndarray, lengths: np.ndarray | None) -> np.ndarray:
  """Where rows end: int64 [rows]."""
  if lengths is not None:
    return lengths
  return np.full(tokens.shape[0], tokens.shape[1], np.int64)


def _slices(
    tokens: np.ndarray, starts: np.ndarray, stops: np.ndarray
) -> rows_lib.Rows:
  """tokens[start:stop] of each row."""
  num_rows, length = tokens.shape
  row_starts = np.arange(num_rows) * length
  taken = rows_lib.ranges(row_starts + starts, stops - starts)
  return rows_lib.Rows(
      values=tokens.reshape(-1)[taken], lengths=stops - starts
  )


class MiddleOrder(enum.Enum):
  """In which order the parts of a text stand before its middle."""

  PSM = 'prefix, suffix, middle'
  SPM = 'suffix, prefix, middle'


@dataclasses.dataclass(frozen=True, kw_only=True)
class FillInTheMiddle:
  """A middle is cut out and asked for (Bavarian et al., arXiv 2207.14255).

  With the marks P, S and M, the inputs are P prefix S suffix M (PSM), or P S
  suffix M prefix (SPM, the paper's second form: prefix and middle join without
  a mark between them); the targets are the middle. Its two ends are any two
  places of the text, every pair as likely; it is never empty.

  Attributes:
    order: which of the two.
    marks: ids of P, S and M. None: the first three sentinels.
  """

  order: MiddleOrder
  marks: tuple[int, int, int] | None = None

  def lengths(self, tokens_length: int) -> denoisers.Lengths:
    """See `denoisers.Rule.lengths`; the total is exact."""
    return denoisers.Lengths(
        inputs=tokens_length + 2,
        targets=tokens_length,
        total=tokens_length + 3,
        num_sentinels=0 if self.marks else 3,
        is_exact=False,
    )

  def num_words(self, tokens_length: int) -> int:
    """Two."""
    del tokens_length
    return 2

  def apply(
      self,
      tokens: np.ndarray,
      words: np.ndarray,
      *,
      first_sentinel: int,
      lengths: np.ndarray | None = None,
  ) -> tuple[rows_lib.Rows, rows_lib.Rows]:
    """See `denoisers.Rule.apply`."""
    num_rows = tokens.shape[0]
    ends = _stops(tokens, lengths)
    # Two different places of length + 1: the second is drawn among the others.
    one = random_words.below(words[:, 0], ends + 1)
    two = random_words.below(words[:, 1], ends)
    two += two >= one
    starts, stops = np.minimum(one, two), np.maximum(one, two)
    prefix = _slices(tokens, np.zeros_like(starts), starts)
    middle = _slices(tokens, starts, stops)
    suffix = _slices(tokens, stops, ends)
    marks = self.marks or tuple(first_sentinel - i for i in range(3))
    mark_p, mark_s, mark_m = (
        rows_lib.from_matrix(np.full((num_rows, 1), mark, np.int32))
        for mark in marks
    )
    if self.order is MiddleOrder.PSM:
      parts = [mark_p, prefix, mark_s, suffix, mark_m]
    else:
      parts = [mark_p, mark_s, suffix, mark_m, prefix]
    return rows_lib.join(*parts), middle


def put_middle_back(
    tokens: np.ndarray, *, marks: tuple[int, int, int]
) -> np.ndarray:
  """Puts the text together again, of inputs followed by targets.

  Args:
    tokens: int32 [tokens] of one example, in either order of the parts; a text
      that does not begin with the first mark is given back as it is.
    marks: ids of P, S and M.

  Returns:
    int32 tokens of the text.

  Raises:
    ValueError: where a mark is missing.
  """
  tokens = np.asarray(tokens, np.int32)
  if not tokens.size or tokens[0] != marks[0]:
    return tokens
  at_s, at_m = (np.flatnonzero(tokens == mark) for mark in marks[1:])
  if not at_s.size or not at_m.size:
    raise ValueError(
        f'the marks {marks[1:]} are not both in {tokens.tolist()}: expected '
        'one of each after the first mark. Pass inputs and targets together, '
        'and the marks that the task has.'
    )
  prefix = tokens[1 : at_s[0]]
  suffix = tokens[at_s[0] + 1 : at_m[0]]
  return np.concatenate([prefix, tokens[at_m[0] + 1 :], suffix])
