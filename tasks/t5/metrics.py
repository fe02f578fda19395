# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5's metric functions, by T5's names and with its values, in per cent.

Each takes targets and predictions (or scores) of all examples, and returns
name -> value.
"""

import collections
from collections.abc import Callable, Sequence
import importlib
import re
from typing import Any

import editdistance
import numpy as np
import scipy.stats

from t5wild.tasks import metrics
from t5wild.tasks.t5 import answer_scores
from t5wild.tasks.t5 import class_scores
from t5wild.tasks.t5 import ranked_answers

_ROUGE_TYPES = ('rouge1', 'rouge2', 'rougeLsum')
# Functions of scikit-learn that tasks of T5 name, and ours.
_OURS = {
    'accuracy_score': class_scores.accuracy,
    'matthews_corrcoef': class_scores.matthews_correlation,
}

coqa_f1 = answer_scores.coqa_f1
rank_classification = ranked_answers.rank_classification
sequence_accuracy = metrics.sequence_accuracy


def bleu(targets, predictions, tokenizer='intl'):
  """Corpus BLEU by sacrebleu.

  Args:
    targets: a reference of each example; or lists of them, all first ones, all
      second ones, ..., as sacrebleu takes them.
    predictions: one text each.
    tokenizer: sacrebleu's.
  """
  sacrebleu = _optional('sacrebleu', package='sacrebleu')
  references = targets if isinstance(targets[0], list) else [targets]
  result = sacrebleu.corpus_bleu(
      predictions,
      references,
      smooth_method='exp',
      smooth_value=0.0,
      tokenize=tokenizer,
      use_effective_order=False,
  )
  return {'bleu': result.score}


def rouge(
    targets, predictions, score_keys=_ROUGE_TYPES, verbose=True, **kwargs
):
  """ROUGE F1: the middle of what resampled examples give.

  Drawn by numpy's global generator, so that two calls differ a little;
  `rouge_mean` does not.

  Args:
    targets: one text each.
    predictions: one text each.
    score_keys: which ROUGE.
    verbose: accepted as T5 does.
    **kwargs: of rouge_score's RougeScorer.
  """
  del verbose
  scoring = _optional('rouge_score.scoring', package='rouge-score')
  aggregator = scoring.BootstrapAggregator()
  for scores in _rouge_scores(targets, predictions, score_keys, kwargs):
    aggregator.add_scores(scores)
  found = aggregator.aggregate()
  return {key: 100 * found[key].mid.fmeasure for key in score_keys}


def rouge_mean(targets, predictions, score_keys=_ROUGE_TYPES, **kwargs):
  """ROUGE F1, the mean over the examples; arguments are those of `rouge`."""
  found = _rouge_scores(targets, predictions, score_keys, kwargs)
  if not found:
    raise ValueError(
        f'there are {len(targets)} targets and {len(predictions)} predictions: '
        'expected some. Choose another split.'
    )
  return {
      key: 100 * float(np.mean([scores[key].fmeasure for scores in found]))
      for key in score_keys
  }


# Told before there is a step to evaluate.
bleu.needs = {'sacrebleu': 'sacrebleu'}
rouge.needs = rouge_mean.needs = {'rouge_score': 'rouge-score'}


def squad(targets, predictions):
  """Exact match and F1 of answers, as SQuAD's script counts them."""
  return _qa(answer_scores.normalize_squad, targets, predictions)


def trivia_qa(targets, predictions):
  """Exact match and F1 of answers, as TriviaQA's script counts them."""
  return _qa(answer_scores.normalize_trivia_qa, targets, predictions)


def span_squad(targets, predictions):
  """`squad`, of predictions like 'start: 3 end: 6', in words of the context.

  Args:
    targets: of each question `answers` and `context`.
    predictions: what is no place is an empty answer.
  """
  given = [
      _span(_words(target['context']), _words(prediction))
      for target, prediction in zip(targets, predictions, strict=True)
  ]
  return squad([target['answers'] for target in targets], given)


def accuracy(targets, predictions):
  """Per cent that are right."""
  return {'accuracy': 100 * class_scores.accuracy(targets, predictions)}


def pearson_corrcoef(targets, predictions):
  """Pearson's correlation."""
  value = scipy.stats.pearsonr(targets, predictions)[0]
  return {'pearson_corrcoef': 100 * value}


def spearman_corrcoef(targets, predictions):
  """Spearman's correlation of ranks."""
  value = scipy.stats.spearmanr(targets, predictions)[0]
  return {'spearman_corrcoef': 100 * value}


def mean_multiclass_f1(num_classes, **metric_fn_kwargs):
  """Makes the metric of the classes' mean F1; may be given `sample_weight`."""
  weights = metric_fn_kwargs.pop('sample_weight', None)
  if metric_fn_kwargs:
    raise ValueError(
        f'mean_multiclass_f1 got {sorted(metric_fn_kwargs)}: expected nothing '
        'but sample_weight. Leave them out.'
    )

  def mean_f1(targets, predictions):
    value = class_scores.mean_f1(targets, predictions, num_classes, weights)
    return {f'mean_{num_classes}class_f1': 100 * value}

  return mean_f1


def all_match(targets, predictions):
  """100 where all are right, else 0."""
  return {'exact_match': 100 * float(np.array_equal(targets, predictions))}


def f1_score_with_invalid(targets, predictions):
  """F1 of class 1, of two; any other prediction is the wrong one."""
  targets, predictions = np.asarray(targets), np.asarray(predictions)
  is_valid = (predictions == 0) | (predictions == 1)
  predictions = np.where(is_valid, predictions, 1 - targets)
  return {'f1': 100 * class_scores.f1(targets == 1, predictions == 1)}


def multirc_f1_over_all_answers(targets, predictions):
  """`f1_score_with_invalid` of what `postprocessors.multirc` gives."""
  return f1_score_with_invalid(
      [target['value'] for target in targets],
      [prediction['value'] for prediction in predictions],
  )


def deduplicate_metric(
    metric_fn, group_key: str = 'group', value_key: str = 'value'
):
  """Makes a metric that sees the first example of each group alone."""

  def of_the_first(targets, predictions):
    first = {}
    for target, prediction in zip(targets, predictions, strict=False):
      pair = (target[value_key], prediction[value_key])
      first.setdefault(target[group_key], pair)
    return metric_fn(
        [target for target, _ in first.values()],
        [prediction for _, prediction in first.values()],
    )

  return of_the_first


def mean_group_metric(
    metric_fn,
    group_key='group',
    value_key='value',
    return_subgroup_scores=False,
):
  """Makes a metric that is the mean over groups.

  Args:
    metric_fn: what is measured of each group.
    group_key: field of a target that names its group.
    value_key: field of targets and predictions that is measured.
    return_subgroup_scores: whether to tell each group's, too.
  """

  def mean_of_groups(targets, predictions):
    groups = collections.defaultdict(lambda: ([], []))
    for target, prediction in zip(targets, predictions, strict=False):
      group = groups[target[group_key]]
      group[0].append(target[value_key])
      group[1].append(prediction[value_key])
    found = collections.defaultdict(list)
    for name, group in groups.items():
      for metric, value in metric_fn(*group).items():
        found[metric].append(value)
        if return_subgroup_scores:
          found[f'{name}-{metric}'].append(value)
    return {metric: np.mean(values) for metric, values in found.items()}

  return mean_of_groups


def auc(targets, predictions, targets_threshold=None):
  """Areas under ROC and precision-recall curves, from 0 to 1.

  Args:
    targets: 0 or 1; or any number, where there is a threshold.
    predictions: any number.
    targets_threshold: targets from here on are 1.
  """
  if targets_threshold is not None:
    targets = np.asarray(targets) >= targets_threshold
  return {
      'auc-roc': class_scores.area_under_roc(targets, predictions),
      'auc-pr': class_scores.average_precision(targets, predictions),
  }


def score_auc(targets, scores, targets_threshold=None):
  """`auc` of a model's scores."""
  return auc(targets, scores, targets_threshold=targets_threshold)


def sklearn_metrics_wrapper(
    metric_str,
    metric_dict_str=None,
    metric_post_process_fn=None,
    **metric_fn_kwargs,
):
  """Makes a metric of a function of `sklearn.metrics`.

  Those that T5's tasks use are there without scikit-learn.

  Args:
    metric_str: the function's name.
    metric_dict_str: name of the value; None is the function's.
    metric_post_process_fn: applied to the value.
    **metric_fn_kwargs: of the function.

  Returns:
    The metric.

  Raises:
    ModuleNotFoundError: for another function, without scikit-learn.
    ValueError: for a function that it does not have.
  """
  score = _score(metric_str, metric_fn_kwargs)

  def metric(targets, predictions):
    value = score(targets, predictions, **metric_fn_kwargs)
    if metric_post_process_fn is not None:
      value = metric_post_process_fn(value)
    return {metric_dict_str or metric_str: value}

  return metric


def edit_distance(targets, predictions, lower=True):
  """Edit distance in words: least, most, mean, median and sum."""
  distances = []
  for target, prediction in zip(targets, predictions, strict=False):
    sides = (prediction, target)
    words = [
        re.split(r'\W', side.lower() if lower else side) for side in sides
    ]
    distances.append(editdistance.distance(*words))
  return {
      'min_edit': min(distances),
      'max_edit': max(distances),
      'mean_edit': np.mean(distances),
      'median_edit': np.median(distances),
      'sum_edit': sum(distances),
  }


def _score(name: str, arguments: dict[str, Any]) -> Callable[..., float]:
  if name in _OURS and not arguments:
    return _OURS[name]
  sklearn_metrics = _optional('sklearn.metrics', package='scikit-learn')
  if not hasattr(sklearn_metrics, name):
    raise ValueError(
        f'sklearn.metrics has no {name!r}: expected the name of one of its '
        'functions. Correct it.'
    )
  return getattr(sklearn_metrics, name)


def _rouge_scores(
    targets: Sequence[str],
    predictions: Sequence[str],
    score_keys: Sequence[str],
    arguments: dict[str, Any],
) -> list[dict[str, Any]]:
  rouge_scorer = _optional(
      'rouge_score.rouge_scorer', package='rouge-score'
  )
  scorer = rouge_scorer.RougeScorer(rouge_types=score_keys, **arguments)
  return [
      scorer.score(target=_by_lines(target), prediction=_by_lines(prediction))
      for target, prediction in zip(targets, predictions, strict=False)
  ]


def _by_lines(summary: str) -> str:
  """A sentence a line, as rougeLsum wants it."""
  return summary.replace(' . ', ' .\n')


def _qa(
    normalize: Callable[[str], str],
    targets: Sequence[Sequence[str]],
    predictions: Sequence[str],
) -> dict[str, float]:
  return answer_scores.qa_metrics(
      [[normalize(answer) for answer in answers] for answers in targets],
      list(map(normalize, predictions)),
  )


def _words(text: str) -> list[str]:
  return re.sub(r'\W', ' ', text).split()


def _span(context: Sequence[str], place: Sequence[str]) -> str:
  """Words of the context that a prediction names; none for what is no place."""
  try:
    start, end = int(place[1]), int(place[3])
  except (IndexError, ValueError):
    return ''
  return ' '.join(context[start : end + 1])


def _optional(name: str, *, package: str) -> Any:
  try:
    return importlib.import_module(name)
  except ImportError as error:
    raise ModuleNotFoundError(
        f'{name} cannot be imported ({error}): expected the package {package} '
        f'for this metric of T5. Install it (pip install {package}), or leave '
        'the task out of evaluation.'
    ) from error
