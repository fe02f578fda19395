# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Metric functions, held to values computed by hand."""

import math
import sys

import numpy as np
import pytest
import seqio

from t5wild.tasks import metrics

_TARGET = 'the cat sat on a mat'
_PREDICTION = 'the cat sat on the mat'


def test_accuracy_is_the_per_cent_of_equal_labels():
  assert metrics.accuracy([1, 2, 3, 4], [1, 2, 0, 4]) == {'accuracy': 75.0}
  assert metrics.accuracy(['a', 'b'], ['a', 'B']) == {'accuracy': 50.0}


def test_a_sequence_counts_only_when_it_is_wholly_right():
  targets = [np.array([1, 2]), np.array([3, 4]), np.array([5])]
  predictions = [[1, 2], [3, 0], [5, 5]]
  assert metrics.sequence_accuracy(targets, predictions) == {
      'sequence_accuracy': pytest.approx(100 / 3)
  }


def test_squad_ignores_case_articles_punctuation_and_spaces():
  assert metrics.squad(['The  Cat, sat!'], ['cat sat']) == {
      'em': 100.0, 'f1': 100.0
  }  # fmt: skip


def test_squad_counts_common_words_of_the_best_answer():
  # 'cat sat mat' against 'cat mat': 2 common, P = 2/3, R = 1, F1 = 0.8.
  # 'b b c' against 'b d': 1 common, P = 1/3, R = 1/2, F1 = 0.4.
  found = metrics.squad(
      [['dog', 'cat mat'], 'b d'], ['the cat sat mat', 'b b c']
  )
  assert found == {'em': 0.0, 'f1': pytest.approx(60.0)}


def test_squad_holds_two_empty_answers_for_equal():
  assert metrics.squad(['the', 'x'], ['', '']) == {'em': 50.0, 'f1': 50.0}


def test_bleu_is_the_geometric_mean_of_four_precisions():
  pytest.importorskip('sacrebleu')
  # n-grams in common: 5 of 6, 3 of 5, 2 of 4, 1 of 3; equal lengths.
  expected = 100 * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25
  found = metrics.bleu([_TARGET], [_PREDICTION])
  assert found == {'bleu': pytest.approx(expected)}


def test_bleu_takes_as_many_references_as_an_example_has():
  pytest.importorskip('sacrebleu')
  found = metrics.bleu(
      [[_TARGET, _PREDICTION], 'one two three four'],
      [_PREDICTION, 'one two three four'],
  )
  assert found == {'bleu': pytest.approx(100)}


def test_rouge_is_the_f1_of_n_grams_and_of_the_longest_subsequence():
  pytest.importorskip('rouge_score')
  # 5 of 6 words, 3 of 5 pairs, and "the cat sat on mat" of 6 words.
  assert metrics.rouge([_TARGET], [_PREDICTION]) == {
      'rouge1': pytest.approx(100 * 5 / 6),
      'rouge2': pytest.approx(100 * 3 / 5),
      'rougeLsum': pytest.approx(100 * 5 / 6),
  }


@pytest.mark.parametrize(
    ('metric', 'module', 'package'),
    [
        (metrics.bleu, 'sacrebleu', 'sacrebleu'),
        (metrics.rouge, 'rouge_score.rouge_scorer', 'rouge-score'),
    ],
)
def test_a_missing_package_is_told_with_the_mend(
    metric, module, package, monkeypatch
):
  monkeypatch.setitem(sys.modules, module, None)
  with pytest.raises(ModuleNotFoundError, match=f'pip install {package}'):
    metric(['a'], ['a'])


def test_bits_per_byte_counts_the_bytes_of_utf8():
  # 'é' has two bytes: 8 bits of 4 bytes.
  scores = [-6 * math.log(2), -2 * math.log(2)]
  found = metrics.bits_per_byte(['aé', 'b'], scores)
  assert found == {'bits_per_byte': pytest.approx(2.0)}


def test_perplexity_is_the_number_of_equally_likely_tokens():
  # 5 tokens of byte text with their ends, each of probability 1/7.
  perplexity = metrics.make_perplexity(seqio.ByteVocabulary())
  scores = [3 * math.log(1 / 7), 2 * math.log(1 / 7)]
  assert perplexity(['ab', 'c'], scores) == {
      'perplexity': pytest.approx(7.0)
  }
  without = metrics.make_perplexity(seqio.ByteVocabulary(), add_eos=False)
  assert without(['a'], [math.log(1 / 7)]) == {'perplexity': pytest.approx(7.0)}


@pytest.mark.parametrize(
    ('metric', 'targets', 'outputs', 'message'),
    [
        (metrics.accuracy, [1, 2], [1], '2 targets\n  1 predictions'),
        (metrics.squad, [], [], '0 targets'),
        (metrics.bits_per_byte, [''], [0.0], '1 targets have 0 bytes'),
    ],
)
def test_what_has_no_value_is_refused(metric, targets, outputs, message):
  with pytest.raises(ValueError, match=message):
    metric(targets, outputs)


def test_seqio_takes_them_for_metrics_of_predictions_and_of_scores():
  task = seqio.Task(
      'of_metrics',
      source=seqio.FunctionDataSource(
          lambda split, shuffle_files: None, splits=('test',)
      ),
      output_features={'targets': seqio.Feature(seqio.ByteVocabulary())},
      metric_fns=[
          metrics.accuracy, metrics.sequence_accuracy, metrics.squad,
          metrics.bleu, metrics.rouge, metrics.bits_per_byte,
          metrics.make_perplexity(seqio.ByteVocabulary()),
      ],
  )
  assert len(task.predict_metric_fns) == 5
  assert len(task.score_metric_fns) == 2
