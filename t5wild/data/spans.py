# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Span corruption's arithmetic: T5's lengths, seeded spans, their inverse.

Pure numpy, no TensorFlow. A function of (tokens, key) alone, so a live seqio
task and a record reader that give it the same key get the same bits.
"""

import dataclasses
import functools

import numpy as np

from t5wild.data import random_words
from t5wild.data import rows as rows_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpanPlan:
  """Lengths of one chunk of text and of what span corruption makes of it.

  `inputs_length` and `targets_length` count one end-of-sequence token each.
  """

  tokens_length: int
  num_noise_tokens: int
  num_noise_spans: int
  inputs_length: int
  targets_length: int


def plan_for_tokens(
    tokens_length: int, *, noise_density: float, mean_noise_span_length: float
) -> SpanPlan:
  """Says how many tokens and spans of a chunk are noise.

  Half is rounded to even. At least one token is noise and one is not, and
  there are never more spans than noise tokens or than other tokens, so that
  every span is non-empty and no two touch. A chunk of one token is too short
  to hold noise: it has none.

  Args:
    tokens_length: tokens in the chunk, without end of sequence.
    noise_density: fraction of the tokens to corrupt, in (0, 1).
    mean_noise_span_length: mean tokens per corrupted span, at least 1.

  Returns:
    The plan; its `tokens_length` is the one given.
  """
  if tokens_length < 2:
    return SpanPlan(
        tokens_length=tokens_length,
        num_noise_tokens=0,
        num_noise_spans=0,
        inputs_length=tokens_length + 1,
        targets_length=1,
    )
  noise = round(tokens_length * noise_density)
  noise = min(max(noise, 1), tokens_length - 1)
  other = tokens_length - noise
  spans = max(round(noise / mean_noise_span_length), 1)
  spans = min(spans, noise, other)
  return SpanPlan(
      tokens_length=tokens_length,
      num_noise_tokens=noise,
      num_noise_spans=spans,
      inputs_length=other + spans + 1,
      targets_length=noise + spans + 1,
  )


@functools.lru_cache(maxsize=256)
def plan_for_inputs(
    inputs_length: int,
    *,
    noise_density: float = 0.15,
    mean_noise_span_length: float = 3.0,
) -> SpanPlan:
  """Finds the longest chunk whose corrupted inputs fill `inputs_length`.

  This is T5's arithmetic (Raffel et al., 2020, section 3.1.4, "random
  spans"): 512 inputs at density 0.15 and mean span 3 are 568 tokens of text
  and 114 targets. Like T5, a density of exactly one half gives one token back
  where that makes the targets as long as the inputs.

  Args:
    inputs_length: tokens of corrupted inputs, end of sequence included.
    noise_density: fraction of the tokens to corrupt, in (0, 1).
    mean_noise_span_length: mean tokens per corrupted span, at least 1.

  Returns:
    The plan, whose `inputs_length` is at most the one asked for.

  Raises:
    ValueError: for a density or span length out of range, or for inputs too
      short to hold a token, a sentinel and an end of sequence.
  """
  check_noise(noise_density, mean_noise_span_length)
  if inputs_length < 3:
    raise ValueError(
        f'inputs of length {inputs_length} leave no room for span corruption: '
        'expected at least 3 (one token, one sentinel, one end of sequence). '
        'Raise TASK_FEATURE_LENGTHS["inputs"].'
    )
  plan = functools.partial(
      plan_for_tokens,
      noise_density=noise_density,
      mean_noise_span_length=mean_noise_span_length,
  )
  tokens_length = 2
  if plan(inputs_length).inputs_length <= inputs_length:
    tokens_length = inputs_length
  while plan(tokens_length + 1).inputs_length <= inputs_length:
    tokens_length += 1
  found = plan(tokens_length)
  if noise_density == 0.5 and found.targets_length > found.inputs_length:
    found = plan(tokens_length - 1)
  return found


def check_noise(noise_density: float, mean_noise_span_length: float) -> None:
  """Refuses a density or a span length out of range."""
  if not 0.0 < noise_density < 1.0:
    raise ValueError(
        f'noise_density is {noise_density!r}: expected a fraction of the '
        "tokens between 0 and 1 (T5 uses 0.15). Set the task's noise_density."
    )
  if not mean_noise_span_length >= 1.0:
    raise ValueError(
        f'mean_noise_span_length is {mean_noise_span_length!r}: expected at '
        "least 1 token per span (T5 uses 3). Set the task's "
        'mean_noise_span_length.'
    )


def num_words(plan: SpanPlan) -> int:
  """Random words that the spans of one chunk take."""
  if plan.num_noise_spans < 2:
    return 0
  return plan.tokens_length - 2


def draw_spans(
    plan: SpanPlan, words: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """Draws where the noise of each row is.

  Text and noise take turns, text first and noise last; every division of the
  noise into spans is equally likely, and so of the text.

  Args:
    plan: how many tokens and spans to draw.
    words: uint64 [rows, words], random; `num_words` of each row are used.

  Returns:
    (starts, stops), int64 [rows, num_noise_spans]: span i of a row is its
    tokens[start:stop].
  """
  num_noise, num_parts = plan.num_noise_tokens, plan.num_noise_spans
  if not num_parts:
    none = np.zeros((words.shape[0], 0), np.int64)
    return none, none
  # Bounds of the parts, first and last included: [rows, num_parts + 1].
  noise = _split_at_random(
      num_noise, num_parts=num_parts, words=words[:, : num_noise - 1]
  )
  text = _split_at_random(
      plan.tokens_length - num_noise,
      num_parts=num_parts,
      words=words[:, num_noise - 1 : plan.tokens_length - 2],
  )
  return text[:, 1:] + noise[:, :-1], text[:, 1:] + noise[:, 1:]


def _split_at_random(
    total: int, *, num_parts: int, words: np.ndarray
) -> np.ndarray:
  """Bounds of non-empty parts of [0, total), every split equally likely."""
  bounds = np.empty((words.shape[0], num_parts + 1), np.int64)
  bounds[:, 0] = 0
  bounds[:, -1] = total
  if num_parts > 1:
    cuts = random_words.choose(words, count=num_parts - 1)
    bounds[:, 1:-1] = np.sort(cuts, axis=1) + 1
  return bounds


def corrupt_spans(
    tokens: np.ndarray,
    *,
    key: tuple[int, int],
    vocab_size: int,
    noise_density: float = 0.15,
    mean_noise_span_length: float = 3.0,
) -> tuple[np.ndarray, np.ndarray]:
  """Replaces spans of the text by sentinels, and asks for them as targets.

  The first span's sentinel is `vocab_size - 1`, the next one less, and so on
  (T5's convention). The inputs are the text with each span replaced by its
  sentinel; the targets are each sentinel followed by its span.

  Args:
    tokens: int32 [tokens_length].
    key: two integers, see `random_words.draw`.
    vocab_size: size of the vocabulary, its sentinels included.
    noise_density: fraction of the tokens to corrupt, in (0, 1).
    mean_noise_span_length: mean tokens per corrupted span, at least 1.

  Returns:
    (inputs, targets), int32, neither with end of sequence; their lengths are
    those of `plan_for_tokens`, less one each.
  """
  tokens = np.asarray(tokens, np.int32)
  plan = plan_for_tokens(
      tokens.size,
      noise_density=noise_density,
      mean_noise_span_length=mean_noise_span_length,
  )
  words = random_words.draw(key, num_rows=1, words_per_row=num_words(plan))
  noise = noise_of_spans(plan, words)
  inputs, targets = replace_noise(
      tokens[np.newaxis], noise, first_sentinel=vocab_size - 1
  )
  return inputs.values, targets.values


def noise_of_spans(plan: SpanPlan, words: np.ndarray) -> np.ndarray:
  """Draws spans and marks their tokens: bool [rows, tokens_length]."""
  starts, stops = draw_spans(plan, words)
  rows = np.arange(words.shape[0])[:, np.newaxis]
  edges = np.zeros((words.shape[0], plan.tokens_length + 1), np.int8)
  edges[rows, starts] = 1
  edges[rows, stops] = -1
  return np.cumsum(edges[:, :-1], axis=1, dtype=np.int8).view(bool)


def noise_of_short_rows(
    lengths: np.ndarray,
    words: np.ndarray,
    *,
    noise_density: float,
    mean_noise_span_length: float,
) -> np.ndarray:
  """`noise_of_spans` for rows of different lengths, with the same draws.

  Args:
    lengths: int64 [rows], tokens of each row.
    words: uint64 [rows, words], at least `num_words` of the longest row.
    noise_density: see `plan_for_tokens`.
    mean_noise_span_length: see `plan_for_tokens`.

  Returns:
    bool [rows, longest length], False after a row's end.
  """
  num_noise = np.rint(lengths * noise_density).astype(np.int64)
  num_noise = np.clip(num_noise, lengths > 1, np.maximum(lengths - 1, 0))
  num_text = lengths - num_noise
  num_spans = np.rint(num_noise / mean_noise_span_length).astype(np.int64)
  num_spans = np.minimum(np.maximum(num_spans, 1), num_noise)
  num_spans = np.minimum(num_spans, num_text)
  noise = _split_rows_at_random(num_noise, num_spans, words, num_noise * 0)
  text = _split_rows_at_random(
      num_text, num_spans, words, np.maximum(num_noise - 1, 0)
  )
  # Rows of fewer spans have empty ones at their end, where the last one stops.
  rows = np.arange(lengths.size)[:, np.newaxis]
  edges = np.zeros((lengths.size, int(lengths.max(initial=0)) + 1), np.int8)
  edges[rows, text[:, 1:] + noise[:, :-1]] = 1
  edges[rows, text[:, 1:] + noise[:, 1:]] = -1
  marked = np.cumsum(edges[:, :-1], axis=1, dtype=np.int8)
  return marked > 0


def _split_rows_at_random(
    totals: np.ndarray,
    num_parts: np.ndarray,
    words: np.ndarray,
    first_words: np.ndarray,
) -> np.ndarray:
  """`_split_at_random` for each row, its bounds filled up with its total."""
  most = max(int(num_parts.max(initial=0)) - 1, 0)  # cuts
  bounds = np.zeros((totals.size, most + 2), np.int64)
  bounds[:, -1] = totals
  if not most:
    return bounds
  columns = np.arange(max(int(totals.max()) - 1, most))
  places = np.minimum(first_words[:, np.newaxis] + columns, words.shape[1] - 1)
  chosen = random_words.choose_some(
      np.take_along_axis(words, places, axis=1),
      counts=np.maximum(num_parts - 1, 0),
      columns=totals - 1,
      none=-1,
  )
  cuts = np.where(chosen < 0, totals[:, np.newaxis], chosen + 1)
  bounds[:, 1:-1] = np.sort(cuts, axis=1)
  return bounds


def replace_noise(
    tokens: np.ndarray,
    noise: np.ndarray,
    *,
    first_sentinel: int,
    lengths: np.ndarray | None = None,
) -> tuple[rows_lib.Rows, rows_lib.Rows]:
  """Replaces each run of noise by a sentinel, and asks for them as targets.

  Args:
    tokens: int32 [rows, tokens_length].
    noise: bool [rows, tokens_length].
    first_sentinel: id of a row's first run; the next one's is one less.
    lengths: int64 [rows], where rows end; None for rows that are full.

  Returns:
    (inputs, targets): the text with its runs replaced; each sentinel followed
    by its run.
  """
  num_rows, length = tokens.shape
  num_noise = noise.sum(1)
  starts = noise.copy()
  starts[:, 1:] &= ~noise[:, :-1]
  rows, places = np.nonzero(starts)
  runs = np.bincount(rows, minlength=num_rows)
  # Number of each run in its row.
  numbers = np.arange(rows.size) - (np.cumsum(runs) - runs)[rows]
  sentinels = first_sentinel - numbers
  # A sentinel stands in the inputs where its run began, in the targets where
  # the token before the run was: a column in front makes sure there is one.
  with_sentinels = tokens.copy()
  with_sentinels[rows, places] = sentinels
  keep = ~noise | starts
  if lengths is not None:
    keep &= np.arange(length) < lengths[:, np.newaxis]
  inputs = rows_lib.Rows(
      values=with_sentinels[keep],
      lengths=(length if lengths is None else lengths) - num_noise + runs,
  )
  with_sentinels = np.empty((num_rows, length + 1), np.int32)
  with_sentinels[:, 1:] = tokens
  with_sentinels[rows, places] = sentinels
  keep = np.zeros((num_rows, length + 1), bool)
  keep[:, 1:] = noise
  keep[rows, places] = True
  targets = rows_lib.Rows(
      values=with_sentinels[keep], lengths=num_noise + runs
  )
  return inputs, targets


def fill_spans(
    inputs: np.ndarray, targets: np.ndarray, *, vocab_size: int, extra_ids: int
) -> np.ndarray:
  """Puts the spans of `targets` back where `inputs` has their sentinels.

  The inverse of `corrupt_spans`, also for targets that a model wrote: a span
  that it left out is empty, one that it repeated counts the first time, and
  what comes before its first sentinel is dropped.

  Args:
    inputs: int32 [inputs_length], no padding, no end of sequence.
    targets: int32 [targets_length], likewise.
    vocab_size: size of the vocabulary, its sentinels included.
    extra_ids: number of sentinels.

  Returns:
    int32 tokens of the text.
  """
  first = vocab_size - extra_ids
  spans: dict[int, list[int]] = {}
  span: list[int] = []
  for token in np.asarray(targets).tolist():
    if token >= first:
      span = []
      spans.setdefault(token, span)
    else:
      span.append(token)
  filled: list[int] = []
  for token in np.asarray(inputs).tolist():
    if token < first:
      filled.append(token)
    elif token in spans:
      filled.extend(spans[token])
  return np.asarray(filled, np.int32)
