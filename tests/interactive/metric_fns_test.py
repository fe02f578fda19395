# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Metric functions are told apart by the names of their arguments."""

import pytest

from t5wild.interactive import metric_fns


def _exact(targets, predictions):
  return {'exact': targets == predictions}


def _with_aux(targets, predictions, aux_values, scale=1):
  return {'aux': (len(targets), aux_values, scale)}


def _mean(targets, scores):
  return {'mean': sum(scores) / len(targets)}


def test_each_function_gets_what_it_names():
  given = {
      'targets': ['a', 'b'],
      'predictions': ['a', 'b'],
      'aux_values': {},
      'scores': [1, 2],
  }
  found = metric_fns.compute([_exact, _with_aux, _mean], given)
  assert found == {'exact': True, 'aux': (2, {}, 1), 'mean': 1.5}


def test_functions_of_other_arguments_are_refused():
  with pytest.raises(ValueError, match=r"takes \('x',\): expected one of"):
    metric_fns.kinds_of([lambda x: {}])


def test_two_metrics_of_one_name_are_refused():
  given = {'targets': ['a'], 'predictions': ['a']}
  with pytest.raises(ValueError, match=r"\['exact'\]"):
    metric_fns.compute([_exact, _exact], given)
