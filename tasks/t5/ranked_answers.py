# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The metric of answers that a model ranks by their likelihood."""

import itertools
from typing import Any

import numpy as np

from t5wild.tasks.t5 import class_scores


def rank_classification(
    targets,
    scores,
    num_classes=None,
    normalize_by_target_length=False,
    idx_len=2,
):
  """Per cent of examples whose likeliest answer is right, and more.

  Args:
    targets: of each answer what the postprocessor of this name gives: index,
      whether it is right, weight, length in tokens.
    scores: its log likelihood.
    num_classes: how many answers each example has; None where they vary, and
      then accuracy is all there is. For two F1 and areas under curves are told
      (class 1 is positive), for more the mean F1.
    normalize_by_target_length: whether the likelihood of a token counts.
    idx_len: how many numbers an index has.

  Returns:
    Name to value.

  Raises:
    ValueError: targets that are none of this kind, or not all there.
  """
  _check(targets, scores, idx_len)
  if normalize_by_target_length:
    scores = [s / t[3] for t, s in zip(targets, scores, strict=True)]
  pairs = sorted(zip(targets, scores, strict=True), key=lambda p: p[0][0])
  if not num_classes:
    return _accuracy_of_groups(pairs)
  if len(pairs) % num_classes:
    raise ValueError(
        f'there are {len(pairs)} answers: expected a multiple of num_classes = '
        f'{num_classes}. Evaluate all answers of each example.'
    )
  shape = (-1, num_classes)
  is_right = np.array([bool(t[1]) for t, _ in pairs]).reshape(shape)
  weights = np.array([t[2] for t, _ in pairs]).reshape(shape)[:, 0]
  likelihoods = np.array([s for _, s in pairs], np.float32).reshape(shape)
  predicted = likelihoods.argmax(-1)
  if np.any(is_right.sum(-1) > 1):
    hits = is_right[np.arange(len(is_right)), predicted]
    return {'accuracy': 100 * float(np.average(hits, weights=weights))}
  return _scores(is_right, predicted, likelihoods, weights)


def _scores(
    is_right: np.ndarray,
    predicted: np.ndarray,
    likelihoods: np.ndarray,
    weights: np.ndarray,
) -> dict[str, float]:
  """Scores where each example has one right answer: [examples, classes]."""
  num_classes = is_right.shape[1]
  is_predicted = np.eye(num_classes, dtype=bool)[predicted]
  found = {'accuracy': class_scores.accuracy(is_right, is_predicted, weights)}
  if num_classes > 2:
    found[f'mean_{num_classes}class_f1'] = class_scores.mean_f1(
        is_right, is_predicted, num_classes, weights
    )
  else:
    shifted = np.exp(likelihoods - likelihoods.max(-1, keepdims=True))
    positive = (shifted / shifted.sum(-1, keepdims=True))[:, 1]
    target = is_right[:, 1]
    found['f1'] = class_scores.f1(target, predicted == 1, weights)
    found['auc-roc'] = class_scores.area_under_roc(target, positive, weights)
    found['auc-pr'] = class_scores.average_precision(target, positive, weights)
  return {name: 100 * value for name, value in found.items()}


def _accuracy_of_groups(pairs: list[tuple[Any, float]]) -> dict[str, float]:
  """Accuracy where examples differ in their number of answers."""
  right = total = 0.0
  for _, group in itertools.groupby(pairs, lambda pair: pair[0][0][0]):
    (_, is_right, weight, _), _ = max(group, key=lambda pair: pair[1])
    right += bool(is_right) * weight
    total += weight
  return {'accuracy': 100 * right / total}


def _check(targets: Any, scores: Any, idx_len: int) -> None:
  if len(targets) != len(scores) or not len(targets):
    raise ValueError(
        f'there are {len(targets)} targets and {len(scores)} scores: expected '
        'as many of both, at least one. Give both of the same examples.'
    )
  first = targets[0]
  if len(first) != 4 or np.size(first[0]) != idx_len:
    raise ValueError(
        f'the first target is {first!r}: expected an index of {idx_len} '
        'numbers, whether it is right, a weight and a length. Use the '
        'postprocessor rank_classification, without passthrough_feature_keys.'
    )
  if len({tuple(target[0]) for target in targets}) < len(targets):
    raise ValueError(
        f'the {len(targets)} targets have indices that are not unique: '
        'expected one for each answer. Each host numbers its own examples: '
        'evaluate on one host, or number them in the data.'
    )
