# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Scores of classifications, each with a weight for every example.

As scikit-learn defines them, which T5 uses; tests hold them against it where it
is installed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

_Weights = np.ndarray | Sequence[float] | None


def accuracy(targets: Any, predictions: Any, weights: _Weights = None) -> float:
  """Share of examples that are wholly right; rows are examples."""
  right = np.asarray(targets) == np.asarray(predictions)
  return float(
      np.average(right.reshape(len(right), -1).all(-1), weights=weights)
  )


def f1(
    is_class: np.ndarray, is_predicted: np.ndarray, weights: _Weights = None
) -> float:
  """F1 of one class: [examples], True where it is the class; 0 for none."""
  weights = np.ones(len(is_class)) if weights is None else np.asarray(weights)
  both = float(np.sum(weights * (is_class & is_predicted)))
  either = float(np.sum(weights * is_class) + np.sum(weights * is_predicted))
  return 2 * both / either if either else 0.0


def mean_f1(
    targets: Any, predictions: Any, num_classes: int, weights: _Weights = None
) -> float:
  """F1 of each class, all counted alike.

  Args:
    targets: classes [examples], or which of them it is [examples, classes].
    predictions: the same.
    num_classes: classes 0 up to here; others are in none.
    weights: of the examples.
  """
  sides = [
      np.asarray(side)[:, None] == np.arange(num_classes)
      if np.ndim(side) == 1
      else np.asarray(side).astype(bool)
      for side in (targets, predictions)
  ]
  return float(
      np.mean([
          f1(sides[0][:, i], sides[1][:, i], weights)
          for i in range(num_classes)
      ])
  )


def matthews_correlation(targets: Any, predictions: Any) -> float:
  """Correlation of any number of classes (Gorodkin, 2004); 0 without any."""
  targets, predictions = np.asarray(targets), np.asarray(predictions)
  classes = np.union1d(targets, predictions)
  expected = np.array([(targets == c).sum() for c in classes], np.float64)
  given = np.array([(predictions == c).sum() for c in classes], np.float64)
  total = float(len(targets))
  both = total * (targets == predictions).sum() - expected @ given
  spread = (total**2 - given @ given) * (total**2 - expected @ expected)
  return float(both / np.sqrt(spread)) if spread else 0.0


def area_under_roc(
    targets: Any, scores: Any, weights: _Weights = None
) -> float:
  """Probability that a positive example has a higher score; ties count half.

  Not a number where all examples are of one class.
  """
  right, wrong = _cumulated(targets, scores, weights)
  if not right[-1] or not wrong[-1]:
    return float('nan')
  return float(
      np.trapezoid(np.r_[0, right] / right[-1], np.r_[0, wrong] / wrong[-1])
  )


def average_precision(
    targets: Any, scores: Any, weights: _Weights = None
) -> float:
  """Precision at each score that is had, weighted by what recall it adds."""
  right, wrong = _cumulated(targets, scores, weights)
  if not right[-1]:
    return 0.0
  gained = np.diff(np.r_[0, right]) / right[-1]
  return float(np.sum(gained * right / (right + wrong)))


def _cumulated(
    targets: Any, scores: Any, weights: _Weights
) -> tuple[np.ndarray, np.ndarray]:
  """Weights of positives and negatives down to each score, highest first."""
  targets, scores = np.asarray(targets).astype(bool), np.asarray(scores)
  weights = np.ones(len(scores)) if weights is None else np.asarray(weights)
  order = np.argsort(-scores, kind='stable')
  ends = np.r_[np.flatnonzero(np.diff(scores[order])), len(scores) - 1]
  right = np.cumsum((weights * targets)[order])[ends]
  wrong = np.cumsum((weights * ~targets)[order])[ends]
  return right, wrong
