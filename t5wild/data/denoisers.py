# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Denoisers: rules that hide part of a chunk of text and ask for it.

A rule is a pure function of a chunk and of random words; `examples` cuts
documents into chunks and applies rules to them. All rules have the methods of
`Rule`.
"""

import dataclasses
import math
from typing import Protocol

import numpy as np

from t5wild.data import random_words
from t5wild.data import rows as rows_lib
from t5wild.data import spans


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lengths:
  """The most tokens that a rule makes of a chunk, and the sentinels it takes.

  End of sequence and mode tokens are not counted. `total` is of inputs and
  targets together. `is_exact`: it always makes that many.
  """

  inputs: int
  targets: int
  total: int
  num_sentinels: int = 0
  is_exact: bool = True


class Rule(Protocol):
  """What turns chunks of text into inputs and targets."""

  def lengths(self, tokens_length: int) -> Lengths:
    """Says how much it makes of a chunk; more text never makes less."""

  def num_words(self, tokens_length: int) -> int:
    """Says how many random words it takes for a chunk."""

  def apply(
      self,
      tokens: np.ndarray,
      words: np.ndarray,
      *,
      first_sentinel: int,
      lengths: np.ndarray | None = None,
  ) -> tuple[rows_lib.Rows, rows_lib.Rows]:
    """Makes inputs and targets.

    Args:
      tokens: int32 [rows, tokens_length].
      words: uint64 [rows, words], random, at least `num_words` of them.
      first_sentinel: id of the first sentinel; the next one's is one less.
      lengths: int64 [rows], where rows end; None for rows that are full. A row
        becomes the same, however long the others are.

    Returns:
      (inputs, targets), without end of sequence.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpanDenoiser:
  """Hides spans of the text; `spans` has the arithmetic.

  Attributes:
    noise_density: fraction of the tokens to hide, in (0, 1).
    mean_noise_span_length: mean tokens per hidden span, at least 1. None: one
      span, at the end of the chunk (UL2's S-denoiser).
  """

  noise_density: float
  mean_noise_span_length: float | None

  def __post_init__(self):
    """Refuses rates out of range."""
    spans.check_noise(self.noise_density, self._mean)

  @property
  def _mean(self) -> float:
    """As `spans` takes it: one span is one without end."""
    mean = self.mean_noise_span_length
    return math.inf if mean is None else mean

  def plan(self, tokens_length: int) -> spans.SpanPlan:
    """The plan for one chunk."""
    return spans.plan_for_tokens(
        tokens_length,
        noise_density=self.noise_density,
        mean_noise_span_length=self._mean,
    )

  def lengths(self, tokens_length: int) -> Lengths:
    """See `Rule.lengths`; exact."""
    plan = self.plan(tokens_length)
    inputs, targets = plan.inputs_length - 1, plan.targets_length - 1
    return Lengths(
        inputs=inputs,
        targets=targets,
        total=inputs + targets,
        num_sentinels=plan.num_noise_spans,
    )

  def num_words(self, tokens_length: int) -> int:
    """See `Rule.num_words`."""
    return spans.num_words(self.plan(tokens_length))

  def apply(
      self,
      tokens: np.ndarray,
      words: np.ndarray,
      *,
      first_sentinel: int,
      lengths: np.ndarray | None = None,
  ) -> tuple[rows_lib.Rows, rows_lib.Rows]:
    """See `Rule.apply`."""
    if lengths is None:
      noise = spans.noise_of_spans(self.plan(tokens.shape[1]), words)
    else:
      noise = spans.noise_of_short_rows(
          lengths,
          words,
          noise_density=self.noise_density,
          mean_noise_span_length=self._mean,
      )
    return spans.replace_noise(
        tokens, noise, first_sentinel=first_sentinel, lengths=lengths
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class IidDenoiser:
  """Hides single tokens, each as likely as any other.

  The number of hidden tokens is fixed, so that lengths are bounded; which ones
  they are is drawn evenly, as independent draws are once their number is
  known. Neighbours share a sentinel, as in T5 ("i.i.d. denoising", Raffel et
  al., 2020, table 3).

  Attributes:
    noise_density: fraction of the tokens to hide, in (0, 1).
  """

  noise_density: float

  def __post_init__(self):
    """Refuses rates out of range."""
    spans.check_noise(self.noise_density, 1.0)

  def _num_noise(self, tokens_length: int) -> int:
    if tokens_length < 2:
      return 0
    noise = round(tokens_length * self.noise_density)
    return min(max(noise, 1), tokens_length - 1)

  def lengths(self, tokens_length: int) -> Lengths:
    """See `Rule.lengths`; reached where no two hidden tokens touch."""
    noise = self._num_noise(tokens_length)
    other = tokens_length - noise
    runs = min(noise, other + 1)
    return Lengths(
        inputs=other + runs,
        targets=noise + runs,
        total=tokens_length + 2 * runs,
        num_sentinels=runs,
        is_exact=False,
    )

  def num_words(self, tokens_length: int) -> int:
    """See `Rule.num_words`."""
    return tokens_length if self._num_noise(tokens_length) else 0

  def apply(
      self,
      tokens: np.ndarray,
      words: np.ndarray,
      *,
      first_sentinel: int,
      lengths: np.ndarray | None = None,
  ) -> tuple[rows_lib.Rows, rows_lib.Rows]:
    """See `Rule.apply`."""
    num_rows, length = tokens.shape
    columns = np.full(num_rows, length) if lengths is None else lengths
    counts = np.array([self._num_noise(x) for x in columns.tolist()], np.int64)
    # One column more, for what rows of fewer hidden tokens do not choose.
    noise = np.zeros((num_rows, length + 1), bool)
    if counts.any():
      chosen = random_words.choose_some(
          words[:, :length], counts=counts, columns=columns, none=length
      )
      noise[np.arange(num_rows)[:, np.newaxis], chosen] = True
    return spans.replace_noise(
        tokens,
        noise[:, :-1],
        first_sentinel=first_sentinel,
        lengths=lengths,
    )
