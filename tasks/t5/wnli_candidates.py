# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which pronoun of a premise a hypothesis of WNLI replaces, and by what.

A hypothesis repeats the words about a pronoun, with a candidate in its place.
So 'The fish ate the worm. It was tasty.' and 'The worm was tasty.' give 'The
worm'.
"""

from collections.abc import Sequence
import re

_PRONOUNS = frozenset(
    ('he', 'she', 'they', 'it', 'her', 'his', 'their', 'them', 'him')
)
_ARTICLES = ('a', 'an', 'the')
_MARKS = '.,?!'


def inputs_and_targets(
    premise: str, hypothesis: str, *, label: str
) -> tuple[str, str]:
  """The premise with its pronoun marked, and the candidate.

  Raises:
    ValueError: no candidate is found in the hypothesis.
  """
  words, other = _words(premise), _words(hypothesis)
  found = [
      (*_match(words, other, place), place)
      for place, word in enumerate(words)
      if word in _PRONOUNS
  ]
  if not found:
    raise ValueError(
        f'the premise {premise!r} has no pronoun: expected one of '
        f'{sorted(_PRONOUNS)}. Only examples of WNLI have this form.'
    )
  _, candidate, place = max(found, key=lambda each: each[0])
  return (
      f'{label} {_marked(premise, place)}', _as_written(candidate, hypothesis)
  )


def _words(text: str) -> list[str]:
  """Lower-case words, each without one mark at its end."""
  words = (
      word[:-1] if word[-1:] and word[-1] in _MARKS else word
      for word in text.strip().lower().split(' ')
  )
  return [word for word in words if word]


def _match(
    premise: Sequence[str], hypothesis: Sequence[str], place: int
) -> tuple[int, str]:
  """How many words about a place are repeated, and what stands in its place."""
  before, after = premise[:place], premise[place + 1 :]
  num_before = _num_repeated(before[::-1], hypothesis[::-1])
  num_after = _num_repeated(after, hypothesis)
  if not num_before + num_after:
    return 0, ''
  before, after = before[len(before) - num_before :], after[:num_after]
  text = ' '.join(hypothesis)
  for pattern in (
      [*before, '(.+)', *after], ['^(.+)', *after], [*before, '(.+)$']
  ):  # fmt: skip
    match = re.search(' '.join(pattern), text)
    if match:
      return num_before + num_after, match[1]
  return num_before + num_after, ''


def _num_repeated(words: Sequence[str], within: Sequence[str]) -> int:
  """Number of first words that stand together in a text."""
  text = ' '.join(within)
  for count in range(len(words)):
    if ' '.join(words[: count + 1]) not in text:
      return count
  return len(words)


def _marked(text: str, place: int) -> str:
  words = text.split(' ')
  word = words[place]
  words[place] = (
      f'*{word[:-1]}* {word[-1]}' if word[-1] in _MARKS else f'*{word}*'
  )
  return ' '.join(words)


def _as_written(candidate: str, hypothesis: str) -> str:
  """A candidate as the hypothesis writes it, from its article on."""
  words = candidate.split(' ')
  start = max([words.index(a) for a in _ARTICLES if a in words] or [0])
  pattern = ' '.join(f'{re.escape(word)}[.,?!]?' for word in words[start:])
  match = re.search(f'({pattern})', hypothesis, re.IGNORECASE)
  if match is None:
    raise ValueError(
        f'the candidate {candidate!r} is not in the hypothesis {hypothesis!r}: '
        'expected one that repeats the words about a pronoun. Only examples of '
        'WNLI have this form.'
    )
  text = match[1]
  if text and text[-1] in _MARKS:
    text = text[:-1]
  for possessive in ("'", "'s"):
    if text.endswith(possessive):
      return text.removesuffix(possessive)
  return text
