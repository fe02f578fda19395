# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Metric functions for seqio tasks: what a model predicted or scored.

Each takes (targets, predictions) or (targets, scores) of all examples, as
seqio calls it, and returns name -> value. Shares are percentages, as in T5's
papers. In gin: `metric_fns = [@metrics.squad, @metrics.bleu]`.
"""

import collections
from collections.abc import Callable, Sequence
import importlib
import math
import re
import string
from typing import Any

import numpy as np

_ROUGE_TYPES = ('rouge1', 'rouge2', 'rougeLsum')
_ARTICLES = re.compile(r'\b(a|an|the)\b')
_PUNCTUATION = str.maketrans('', '', string.punctuation)


def accuracy(
    targets: Sequence[Any], predictions: Sequence[Any]
) -> dict[str, float]:
  """Per cent of labels (texts or numbers) that are predicted exactly."""
  return {'accuracy': _percent(_are_equal, targets, predictions)}


def sequence_accuracy(
    targets: Sequence[Any], predictions: Sequence[Any]
) -> dict[str, float]:
  """Per cent of sequences (texts or token arrays) that are wholly right."""
  return {'sequence_accuracy': _percent(_are_equal, targets, predictions)}


def squad(
    targets: Sequence[str | Sequence[str]], predictions: Sequence[str]
) -> dict[str, float]:
  """Exact match and token F1 of answers, in per cent.

  Both sides are normalised as in SQuAD's evaluation (Rajpurkar et al., 2016):
  lower case, no punctuation, no articles, single spaces. Of several accepted
  answers the best one counts.

  Args:
    targets: of each question the answer, or the answers that are accepted.
    predictions: one answer each.
  """

  def best(score: Callable[[str, str], float]):
    return lambda answers, predicted: max(
        score(_normalized(answer), _normalized(predicted))
        for answer in _as_list(answers)
    )

  return {
      'em': _percent(best(_are_equal), targets, predictions),
      'f1': _percent(best(_token_f1), targets, predictions),
  }


def set_f1(
    targets: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]
) -> float:
  """F1 in per cent of the words predicted, over all examples together.

  Words count with multiplicity, in any order.

  Args:
    targets: words of each example.
    predictions: words predicted for each.
  """
  _check_pairs(targets, predictions)
  common = expected = given = 0
  for target, prediction in zip(targets, predictions, strict=True):
    counts = collections.Counter(target) & collections.Counter(prediction)
    common += counts.total()
    expected += len(target)
    given += len(prediction)
  return 100 * 2 * common / max(1, expected + given)


def bleu(
    targets: Sequence[str | Sequence[str]],
    predictions: Sequence[str],
    tokenize: str = 'intl',
) -> dict[str, float]:
  """Corpus BLEU by sacrebleu, 0 to 100.

  Args:
    targets: of each example the reference, or several of them.
    predictions: one text each.
    tokenize: sacrebleu's tokenizer; 'intl' is T5's choice, '13a' that of WMT.
  """
  sacrebleu = _optional_module('sacrebleu', package='sacrebleu')
  _check_pairs(targets, predictions)
  references = [_as_list(target) for target in targets]
  most = max(map(len, references))
  # sacrebleu wants one list for the first references, one for the second, ...
  streams = [
      [texts[i] if i < len(texts) else None for texts in references]
      for i in range(most)
  ]
  result = sacrebleu.corpus_bleu(
      list(predictions), streams, tokenize=tokenize, force=True
  )
  return {'bleu': float(result.score)}


def rouge(
    targets: Sequence[str | Sequence[str]],
    predictions: Sequence[str],
    use_stemmer: bool = True,
) -> dict[str, float]:
  """Mean F1 of ROUGE-1, ROUGE-2 and ROUGE-Lsum, in per cent.

  Sentences end at a line's end, and at a full stop that stands alone, as in
  tokenised news.

  Args:
    targets: of each example the summary, or several: the best one counts.
    predictions: one text each.
    use_stemmer: compare stems of words rather than words.
  """
  rouge_scorer = _optional_module(
      'rouge_score.rouge_scorer', package='rouge-score'
  )
  _check_pairs(targets, predictions)
  scorer = rouge_scorer.RougeScorer(_ROUGE_TYPES, use_stemmer=use_stemmer)
  found = [
      scorer.score_multi(
          list(map(_by_sentences, _as_list(target))), _by_sentences(prediction)
      )
      for target, prediction in zip(targets, predictions, strict=True)
  ]
  return {
      name: 100 * float(np.mean([scores[name].fmeasure for scores in found]))
      for name in _ROUGE_TYPES
  }


# Told before there is a step to evaluate.
bleu.needs = {'sacrebleu': 'sacrebleu'}
rouge.needs = {'rouge_score': 'rouge-score'}


def bits_per_byte(
    targets: Sequence[str], scores: Sequence[float]
) -> dict[str, float]:
  """Bits that the model needs for a byte of the targets' UTF-8 text.

  Independent of the vocabulary, so that models with different ones compare.

  Args:
    targets: the texts.
    scores: natural logarithm of each text's probability.
  """
  _check_pairs(targets, scores)
  num_bytes = sum(len(text.encode('utf-8')) for text in targets)
  if not num_bytes:
    raise ValueError(
        f'the {len(targets)} targets have {num_bytes} bytes: expected text. '
        'Choose another split, or drop bits_per_byte from the metric_fns.'
    )
  return {'bits_per_byte': -_sum(scores) / math.log(2) / num_bytes}


def make_perplexity(vocabulary: Any, *, add_eos: bool = True) -> Callable:
  """Makes the metric `perplexity` of the tokens of a vocabulary.

  Args:
    vocabulary: has `encode(text) -> tokens`; that of the task's targets.
    add_eos: whether the task appends an end of sentence, which counts too.

  Returns:
    (targets, scores) -> exp(nats per token).
  """

  def perplexity(
      targets: Sequence[str], scores: Sequence[float]
  ) -> dict[str, float]:
    _check_pairs(targets, scores)
    num_tokens = sum(
        len(vocabulary.encode(text)) + add_eos for text in targets
    )
    if not num_tokens:
      raise ValueError(
          f'the {len(targets)} targets have {num_tokens} tokens: expected '
          'some. Choose another split, or drop perplexity from the metric_fns.'
      )
    return {'perplexity': math.exp(-_sum(scores) / num_tokens)}

  return perplexity


def _percent(
    score: Callable[[Any, Any], float],
    targets: Sequence[Any],
    predictions: Sequence[Any],
) -> float:
  _check_pairs(targets, predictions)
  return 100 * float(
      np.mean([
          score(target, prediction)
          for target, prediction in zip(targets, predictions, strict=True)
      ])
  )


def _are_equal(target: Any, prediction: Any) -> bool:
  if isinstance(target, str) or isinstance(prediction, str):
    return target == prediction
  return np.array_equal(target, prediction)


def _token_f1(target: str, prediction: str) -> float:
  """Harmonic mean of precision and recall of words, with multiplicity."""
  expected, given = target.split(), prediction.split()
  if not expected or not given:
    return float(expected == given)
  common = (collections.Counter(expected) & collections.Counter(given)).total()
  return 2 * common / (len(expected) + len(given))


def _normalized(text: str) -> str:
  text = text.lower().translate(_PUNCTUATION)
  return ' '.join(_ARTICLES.sub(' ', text).split())


def _by_sentences(text: str) -> str:
  return text.replace(' . ', ' .\n')


def _as_list(target: str | Sequence[str]) -> list[str]:
  return [target] if isinstance(target, str) else list(target)


def _sum(scores: Sequence[float]) -> float:
  return float(np.sum(np.asarray(scores, np.float64)))


def _check_pairs(targets: Sequence[Any], outputs: Sequence[Any]) -> None:
  if len(targets) != len(outputs) or not len(targets):
    raise ValueError(
        'targets and outputs do not go together:\n'
        f'  {len(targets)} targets\n  {len(outputs)} predictions or scores\n'
        'Expected as many of both, at least one. Choose a split with examples, '
        'and give both of the same examples.'
    )


def _optional_module(name: str, *, package: str) -> Any:
  try:
    return importlib.import_module(name)
  except ImportError as error:
    raise ModuleNotFoundError(
        f'{name} cannot be imported ({error}): expected the package {package} '
        f'for this metric. Install it (pip install {package}, or pip install '
        "'t5wild[metrics]'), or drop the metric from the task's metric_fns."
    ) from error
