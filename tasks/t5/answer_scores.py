# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Scores of answers in words: exact match and F1, as SQuAD and TriviaQA do."""

import collections
from collections.abc import Callable, Sequence
import re
import string

import numpy as np

_ARTICLES = re.compile(r'\b(a|an|the)\b')
_NO_PUNCTUATION = str.maketrans('', '', string.punctuation)
_TRIVIA_SIGNS = string.punctuation + '‘’´`_'
_SPACE_FOR_SIGNS = str.maketrans(_TRIVIA_SIGNS, ' ' * len(_TRIVIA_SIGNS))


def normalize_squad(answer: str) -> str:
  """Lower case, without punctuation and articles, with single spaces."""
  return _without_articles(answer.lower().translate(_NO_PUNCTUATION))


def normalize_trivia_qa(answer: str) -> str:
  """As `normalize_squad`, with a space for each punctuation mark."""
  return _without_articles(answer.lower().translate(_SPACE_FOR_SIGNS))


def qa_metrics(
    targets: Sequence[Sequence[str]], predictions: Sequence[str]
) -> dict[str, float]:
  """Exact match and F1 in per cent; of several right answers the best counts.

  Args:
    targets: right answers of each question, normalised.
    predictions: one answer each, normalised.

  Raises:
    ValueError: not as many of both.
  """
  if len(targets) != len(predictions):
    raise ValueError(
        'targets and predictions do not go together:\n'
        f'  {len(targets)} targets\n  {len(predictions)} predictions\n'
        'Expected as many of both. Give both of the same examples.'
    )
  return {
      'em': 100 * _mean_of_best(_is_equal, targets, predictions),
      'f1': 100 * _mean_of_best(_text_f1, targets, predictions),
  }


def coqa_f1(
    targets: Sequence[Sequence[str]], predictions: Sequence[str]
) -> dict[str, float]:
  """Mean F1 in per cent over the turns of conversations, as CoQA has it.

  Unlike in SQuAD's, nothing said where nothing is right counts as right.
  """

  def score(target: str, prediction: str) -> float:
    sides = [normalize_squad(text).split() for text in (target, prediction)]
    return _token_f1(*sides) if any(sides) else 1.0

  return {'f1': 100 * _mean_of_best(score, targets, predictions)}


def _mean_of_best(
    score: Callable[[str, str], float],
    targets: Sequence[Sequence[str]],
    predictions: Sequence[str],
) -> float:
  return float(
      np.mean([
          max(score(answer, given) for answer in accepted)
          for accepted, given in zip(targets, predictions, strict=True)
      ])
  )


def _is_equal(target: str, prediction: str) -> float:
  return float(target == prediction)


def _text_f1(target: str, prediction: str) -> float:
  return _token_f1(target.split(), prediction.split())


def _token_f1(target: Sequence[str], prediction: Sequence[str]) -> float:
  """Harmonic mean of precision and recall; 0 where nothing is common."""
  common = collections.Counter(target) & collections.Counter(prediction)
  return 2 * common.total() / max(1, len(target) + len(prediction))


def _without_articles(text: str) -> str:
  return ' '.join(_ARTICLES.sub(' ', text).split())
