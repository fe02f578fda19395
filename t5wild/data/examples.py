# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Documents to examples: cut into chunks, each turned by one of several rules.

The numpy core of every objective. Pure: the examples of a document are a
function of (its tokens, its key) alone, whatever other documents are around
it and whoever reads it, a seqio task or a record reader.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import functools

import numpy as np

from t5wild.data import denoisers
from t5wild.data import random_words
from t5wild.data import rows as rows_lib

# Streams of a document's random words.
_RULE_WORDS = 0
_CHOICE_WORDS = 1
# Chunks that one rule turns at a time: more would not fit a cache.
_MAX_ROWS = 128


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ingredient:
  """One rule of an objective, and what belongs to it.

  Attributes:
    rule: what turns a chunk into inputs and targets.
    tokens_length: tokens of a full chunk.
    weight: chunks get this rule in proportion to its weight.
    mode: tokens in front of the inputs.
  """

  rule: denoisers.Rule
  tokens_length: int
  weight: float = 1.0
  mode: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Objective:
  """What is made of documents.

  Attributes:
    ingredients: the rules among which one is drawn for each chunk.
    first_sentinel: id of the first sentinel; the next one's is one less.
    min_tokens: a document's last chunk is dropped if it has fewer.
    is_concatenated: examples have targets only, the inputs being their
      beginning.
    document_end: id put at the end of each document before it is cut, or None.
    merge_documents: the documents given together are one, in order.
  """

  ingredients: tuple[Ingredient, ...]
  first_sentinel: int
  min_tokens: int = 2
  is_concatenated: bool = False
  document_end: int | None = None
  merge_documents: bool = False

  def __post_init__(self):
    """Refuses chunks of nothing."""
    if self.min_tokens < 1:
      raise ValueError(
          f'min_tokens is {self.min_tokens!r}: expected at least 1, the fewest '
          "tokens that make an example. Set the objective's min_tokens."
      )

  @functools.cached_property
  def words_per_chunk(self) -> int:
    """Random words set aside for each chunk, whichever rule it gets."""
    return max(
        ingredient.rule.num_words(ingredient.tokens_length)
        for ingredient in self.ingredients
    )

  @property
  def mean_tokens(self) -> float:
    """Tokens of a full chunk, in the mean of all rules."""
    total = sum(each.weight for each in self.ingredients)
    return sum(
        each.weight / total * each.tokens_length for each in self.ingredients
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Chunks:
  """Chunks of documents, in order.

  Attributes:
    starts: int64 [chunks], where each begins in all documents' tokens.
    lengths: int64 [chunks].
    ingredients: int64 [chunks], numbers of the ingredients.
    words: uint64 [rows, words]; large, so never copied as a whole.
    word_rows: int64 [chunks], the row of `words` that is each one's.
    turns: float64 [chunks], in (0, 1): where in its document each lies.
  """

  starts: np.ndarray
  lengths: np.ndarray
  ingredients: np.ndarray
  words: np.ndarray
  word_rows: np.ndarray
  turns: np.ndarray

  def take(self, order: np.ndarray) -> '_Chunks':
    """The chunks numbered `order`."""
    return _Chunks(
        words=self.words,
        **{name: getattr(self, name)[order] for name in _PER_CHUNK},
    )


_PER_CHUNK = ('starts', 'lengths', 'ingredients', 'word_rows', 'turns')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Planned:
  """Examples that are drawn, and made of their tokens when they are asked for.

  Attributes:
    tokens: int32 [tokens] of all documents.
    chunks: what the examples are made of.
    objective: how.
    first_documents: int64 [examples], places among the documents given; of
      merged ones, that of the document in which the example begins.
    last_documents: int64 [examples], of that in which it ends.
    starts: int64 [examples], its first token in the former.
    stops: int64 [examples], the end of its tokens in the latter.
  """

  tokens: np.ndarray
  chunks: _Chunks
  objective: Objective
  first_documents: np.ndarray
  last_documents: np.ndarray
  starts: np.ndarray
  stops: np.ndarray

  def __len__(self) -> int:
    """Number of examples."""
    return self.chunks.starts.size

  def lengths(self) -> tuple[np.ndarray, np.ndarray] | None:
    """Tokens of (inputs, targets): int64 [examples] each; makes nothing.

    Returns:
      None where a rule says no more than how many there are at most.
    """
    chunks = self.chunks
    found = np.zeros((2, len(self)), np.int64)
    for index, ingredient in enumerate(self.objective.ingredients):
      of_it = np.flatnonzero(chunks.ingredients == index)
      sizes, places = np.unique(chunks.lengths[of_it], return_inverse=True)
      most = [ingredient.rule.lengths(size) for size in sizes.tolist()]
      if not all(each.is_exact for each in most):
        return None
      pairs = [(x.inputs + len(ingredient.mode), x.targets) for x in most]
      table = np.array(pairs, np.int64).reshape(-1, 2)
      found[:, of_it] = table[places].T
    if self.objective.is_concatenated:
      found = np.stack([np.zeros(len(self), np.int64), found.sum(0)])
    return found[0], found[1]

  def make(
      self, chosen: np.ndarray | None = None
  ) -> tuple[rows_lib.Rows, rows_lib.Rows]:
    """Makes some of the examples, or all; (inputs, targets).

    Args:
      chosen: int64 [rows], which ones, in the order wanted; each is the same,
        whichever others are made with it.
    """
    chunks = self.chunks if chosen is None else self.chunks.take(chosen)
    inputs, targets, order = _apply_rules(
        self.tokens, chunks, self.objective
    )
    # `order` holds the chunk of each row; wanted is the row of each chunk.
    row_of_chunk = np.empty(order.size, np.int64)
    row_of_chunk[order] = np.arange(order.size)
    if self.objective.is_concatenated:
      targets = rows_lib.join(inputs, targets)
      inputs = rows_lib.no_tokens(targets.lengths.size)
    return (
        rows_lib.take(inputs, row_of_chunk),
        rows_lib.take(targets, row_of_chunk),
    )


def make_examples(
    documents: Sequence[np.ndarray],
    keys: Sequence[tuple[int, int]],
    objective: Objective,
) -> tuple[rows_lib.Rows, rows_lib.Rows]:
  """Makes the examples of some documents.

  The chunks of a document are in order; those of several documents take turns,
  so that each document is spread evenly over all.

  Args:
    documents: int32 [tokens] each.
    keys: two integers for each, see `random_words.draw`.
    objective: what to make of them.

  Returns:
    (inputs, targets), without end of sequence; where the objective is
    concatenated, the inputs are empty rows.
  """
  return plan_examples(documents, keys, objective).make()


def plan_examples(
    documents: Sequence[np.ndarray],
    keys: Sequence[tuple[int, int]],
    objective: Objective,
) -> Planned:
  """`make_examples`, of which any are made alone."""
  if objective.document_end is not None:
    documents = [
        np.append(document, np.int32(objective.document_end))
        for document in documents
    ]
  tokens = np.concatenate([*documents, np.zeros(0, np.int32)])
  sizes = np.array([document.size for document in documents], np.int64)
  ends = np.cumsum(sizes)
  begins = ends - sizes
  if objective.merge_documents:
    documents, keys = [tokens], keys[:1]
  chunks = _cut_documents(documents, keys, objective)
  chunks = chunks.take(np.argsort(chunks.turns, kind='stable'))
  stops = chunks.starts + chunks.lengths
  first_documents, last_documents = (
      np.searchsorted(ends, tokens_at, side='right')
      for tokens_at in (chunks.starts, stops - 1)
  )
  return Planned(
      tokens=tokens,
      chunks=chunks,
      objective=objective,
      first_documents=first_documents,
      last_documents=last_documents,
      starts=chunks.starts - begins[first_documents],
      stops=stops - begins[last_documents],
  )


def join_plans(parts: Sequence[Planned], *, num_documents: int) -> Planned:
  """The examples of all parts, one after the other.

  Args:
    parts: of one objective, at least one.
    num_documents: how many each of them was given, but for the last.
  """
  offset = 0
  chunks = []
  for part in parts:
    starts = part.chunks.starts + offset
    chunks.append(dataclasses.replace(part.chunks, starts=starts))
    offset += part.tokens.size
  return Planned(
      tokens=np.concatenate([part.tokens for part in parts]),
      chunks=_join_chunks(chunks),
      objective=parts[0].objective,
      **{
          name: np.concatenate([
              getattr(part, name) + number * num_documents
              for number, part in enumerate(parts)
          ])
          for name in ('first_documents', 'last_documents')
      },
      **{
          name: np.concatenate([getattr(part, name) for part in parts])
          for name in ('starts', 'stops')
      },
  )


def _cut_documents(
    documents: Sequence[np.ndarray],
    keys: Sequence[tuple[int, int]],
    objective: Objective,
) -> _Chunks:
  """Cuts documents, one after the other."""
  parts = []
  offset = 0
  for document, key in zip(documents, keys, strict=True):
    part = _cut(document.size, key, objective)
    parts.append(dataclasses.replace(part, starts=part.starts + offset))
    offset += document.size
  if not parts:
    parts = [_cut(0, (0, 0), objective)]
  return _join_chunks(parts)


def _join_chunks(parts: Sequence[_Chunks]) -> _Chunks:
  if len(parts) == 1:
    return parts[0]
  joined = {
      name: np.concatenate([getattr(part, name) for part in parts])
      for name in ('words', *_PER_CHUNK)
  }
  sizes = np.array([part.words.shape[0] for part in parts])
  joined['word_rows'] += np.repeat(
      np.cumsum(sizes) - sizes, [part.word_rows.size for part in parts]
  )
  return _Chunks(**joined)


def _cut(size: int, key: tuple[int, int], objective: Objective) -> _Chunks:
  """Cuts one document: a rule is drawn, then its length cut off, and so on."""
  sizes = np.array([x.tokens_length for x in objective.ingredients], np.int64)
  most = -(-size // int(sizes.min()))  # chunks
  drawn = _draw_ingredients(most, key, objective)
  stops = np.cumsum(sizes[drawn])
  starts = stops - sizes[drawn]
  count = np.count_nonzero(size - starts >= objective.min_tokens)
  return _Chunks(
      starts=starts[:count],
      lengths=np.minimum(stops[:count], size) - starts[:count],
      ingredients=drawn[:count],
      words=random_words.draw(
          key,
          num_rows=count,
          words_per_row=objective.words_per_chunk,
          stream=_RULE_WORDS,
      ),
      word_rows=np.arange(count),
      turns=(np.arange(count) + 0.5) / max(count, 1),
  )


def _draw_ingredients(
    count: int, key: tuple[int, int], objective: Objective
) -> np.ndarray:
  """Numbers of the ingredients of a document's chunks: int64 [count]."""
  weights = np.array([x.weight for x in objective.ingredients], np.float64)
  if weights.size == 1:
    return np.zeros(count, np.int64)
  words = random_words.draw(
      key, num_rows=count, words_per_row=1, stream=_CHOICE_WORDS
  )
  bounds = np.cumsum(weights) / weights.sum()
  drawn = np.searchsorted(
      bounds[:-1], random_words.unit(words[:, 0]), side='right'
  )
  return drawn.astype(np.int64)


def _apply_rules(
    tokens: np.ndarray, chunks: _Chunks, objective: Objective
) -> tuple[rows_lib.Rows, rows_lib.Rows, np.ndarray]:
  """Turns chunks, those of the same rule together.

  Returns:
    (inputs, targets, the chunk that each row is of).
  """
  parts: list[tuple[rows_lib.Rows, rows_lib.Rows]] = []
  order: list[np.ndarray] = [np.zeros(0, np.int64)]
  for group, is_full in _groups(chunks, objective):
    ingredient = objective.ingredients[int(chunks.ingredients[group[0]])]
    lengths = chunks.lengths[group]
    places = np.arange(int(lengths.max()))
    where = chunks.starts[group][:, np.newaxis] + places
    inputs, targets = ingredient.rule.apply(
        # What lies beyond the end of a short chunk is not looked at.
        tokens[where if is_full else np.minimum(where, tokens.size - 1)],
        chunks.words[chunks.word_rows[group]],
        first_sentinel=objective.first_sentinel,
        lengths=None if is_full else lengths,
    )
    parts.append((rows_lib.prepend(ingredient.mode, inputs), targets))
    order.append(group)
  return (
      rows_lib.stack([inputs for inputs, _ in parts]),
      rows_lib.stack([targets for _, targets in parts]),
      np.concatenate(order),
  )


def _groups(
    chunks: _Chunks, objective: Objective
) -> Iterator[tuple[np.ndarray, bool]]:
  """Numbers of the chunks of one rule, at most `_MAX_ROWS`; are they full?"""
  for index, ingredient in enumerate(objective.ingredients):
    is_of_it = chunks.ingredients == index
    is_full = chunks.lengths == ingredient.tokens_length
    for some_are_full in (True, False):
      group = np.flatnonzero(is_of_it & (is_full == some_are_full))
      for start in range(0, group.size, _MAX_ROWS):
        yield group[start : start + _MAX_ROWS], some_are_full
