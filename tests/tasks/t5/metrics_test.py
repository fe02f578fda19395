# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5's metrics have the values of t5 0.9.4, and of scikit-learn."""

import numpy as np
import pytest

from t5wild.tasks.t5 import answer_scores
from t5wild.tasks.t5 import class_scores
from t5wild.tasks.t5 import glue
from t5wild.tasks.t5 import metrics


def test_answers_count_as_in_squad():
  targets = [['The cat', 'a dog'], ['x']]
  assert metrics.squad(targets, ['cat!', 'y x']) == {
      'em': 50.0, 'f1': pytest.approx(100 * (1 + 2 / 3) / 2)
  }


def test_nothing_said_counts_in_coqa_and_not_in_squad():
  assert metrics.squad([['']], [''])['f1'] == 0
  assert answer_scores.coqa_f1([['']], ['']) == {'f1': 100}


def test_trivia_answers_are_split_at_punctuation():
  assert answer_scores.normalize_trivia_qa('A `well-known` x') == 'well known x'
  assert answer_scores.normalize_squad('A `well-known` x') == 'wellknown x'


def test_an_invalid_prediction_is_the_wrong_one():
  assert metrics.f1_score_with_invalid([1, 0, 1], [1, -1, 5]) == {
      'f1': pytest.approx(50)
  }


def test_cola_is_measured_by_correlation():
  (metric,) = glue.get_glue_metric('cola')
  # Predictions that are no label count as a class of their own.
  assert metric([1, 1, 0, 0], [1, -1, 0, 0]) == {
      'matthews_corrcoef': pytest.approx(100 * 0.6708203932499369)
  }


def test_three_classes_count_alike():
  metric = metrics.mean_multiclass_f1(num_classes=3)
  assert metric([0, 1, 2, 2], [0, 1, 1, -1]) == {
      'mean_3class_f1': pytest.approx(100 * (1 + 2 / 3 + 0) / 3)
  }


def test_multirc_wants_all_answers_of_a_question():
  targets = [{'group': g, 'value': v} for g, v in ((1, 0), (1, 1), (2, 1))]
  predictions = [{'value': v} for v in (0, 1, 0)]
  _, exact = glue.get_super_glue_metric('multirc')
  assert exact(targets, predictions) == {'exact_match': 50.0}


def test_record_counts_a_query_once():
  (metric,) = glue.get_super_glue_metric('record')
  targets = [{'group': (1, 2), 'value': ['A', 'B']}] * 2
  predictions = [{'value': 'B'}, {'value': 'x'}]
  assert metric(targets, predictions) == {'em': 100.0, 'f1': 100.0}


def test_a_place_in_the_context_is_read_as_words():
  targets = [{'context': 'a b c', 'answers': ['b c']}] * 2
  assert metrics.span_squad(targets, ['start: 1 end: 2', 'nonsense']) == {
      'em': 50.0, 'f1': 50.0
  }


def test_areas_under_curves_are_those_of_scikit_learn():
  sklearn_metrics = pytest.importorskip('sklearn.metrics')
  generator = np.random.default_rng(0)
  targets = generator.integers(0, 2, 50)
  scores = np.round(generator.normal(size=50), 1)  # with ties
  weights = generator.random(50)
  assert class_scores.area_under_roc(targets, scores, weights) == (
      pytest.approx(
          sklearn_metrics.roc_auc_score(targets, scores, sample_weight=weights)
      )
  )
  assert class_scores.average_precision(targets, scores, weights) == (
      pytest.approx(sklearn_metrics.average_precision_score(
          targets, scores, sample_weight=weights
      ))
  )


def test_areas_under_curves_by_hand():
  assert metrics.auc([1, 0, 1, 0], [0.9, 0.8, 0.8, 0.1]) == {
      'auc-roc': pytest.approx(0.875),
      'auc-pr': pytest.approx(0.5 + 0.5 * 2 / 3),
  }


def _answers(likelihoods, right):
  targets = [
      ((i, j), j == right[i], 1.0, 2)
      for i, row in enumerate(likelihoods)
      for j in range(len(row))
  ]
  return targets, [value for row in likelihoods for value in row]


def test_the_likeliest_answer_is_the_prediction():
  targets, scores = _answers([[-1, -2], [-3, -1], [-1, -4]], [0, 1, 1])
  found = metrics.rank_classification(targets, scores, num_classes=2)
  assert found['accuracy'] == pytest.approx(200 / 3)
  assert found['f1'] == pytest.approx(200 / 3)
  targets, scores = _answers([[-1, -2], [-3, -1, -5]], [0, 0])
  assert metrics.rank_classification(targets, scores) == {'accuracy': 50.0}


def test_answers_with_one_index_twice_are_refused():
  targets, scores = _answers([[-1, -2]], [0])
  with pytest.raises(ValueError, match='not unique'):
    metrics.rank_classification(targets * 2, scores * 2)


def test_a_metric_without_its_package_names_it(monkeypatch):
  monkeypatch.setitem(__import__('sys').modules, 'sacrebleu', None)
  with pytest.raises(ModuleNotFoundError, match='pip install sacrebleu'):
    metrics.bleu(['a'], ['a'])
