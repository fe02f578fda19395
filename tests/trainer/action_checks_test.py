# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Actions on what is not there are refused, with what is."""

import pytest

from t5wild.trainer import action_checks
from t5wild.trainer import actions as actions_lib

MODES = actions_lib.ActionMode
_TASKS = {
    MODES.TRAIN: ['train'], MODES.TRAIN_EVAL: ['books'], MODES.INFER_EVAL: []
}  # fmt: skip


def _nan(task, metric='loss'):
  return actions_lib.TerminateOnNanAction(task, metric)


def test_a_task_that_is_not_evaluated_is_refused_with_those_that_are():
  with pytest.raises(
      action_checks.UnknownMetricError,
      match=r"watches task 'boks', expected one of \['books'\].*'books'\?",
  ):
    action_checks.check_tasks({MODES.TRAIN_EVAL: [_nan('boks')]}, _TASKS)
  action_checks.check_tasks({MODES.TRAIN_EVAL: [_nan('books')]}, _TASKS)


def test_training_metrics_are_those_of_the_task_train():
  with pytest.raises(action_checks.UnknownMetricError, match="'train'"):
    action_checks.check_tasks({MODES.TRAIN: [_nan('books')]}, _TASKS)


def test_actions_of_an_evaluation_that_the_run_has_not_are_refused():
  with pytest.raises(
      action_checks.UnknownMetricError, match='mode INFER_EVAL.*infer_eval'
  ):
    action_checks.check_tasks({MODES.INFER_EVAL: [_nan('books')]}, _TASKS)
  action_checks.check_tasks({MODES.INFER_EVAL: []}, _TASKS)


@pytest.mark.parametrize(
    'metric', ['loss', 'timing/step_seconds', 'memory/host_peak_bytes', 'v/0']
)
def test_metrics_of_a_step_and_what_is_measured_beside_it_are_there(metric):
  action_checks.check_step_metrics(
      {MODES.TRAIN: [_nan('train', metric)]}, ['loss', 'v']
  )


def test_a_metric_that_no_step_gives_is_refused():
  with pytest.raises(
      action_checks.UnknownMetricError, match="'los' .*did you mean 'loss'"
  ):
    action_checks.check_step_metrics(
        {MODES.TRAIN: [_nan('train', 'los')]}, ['loss', 'v']
    )


@pytest.mark.parametrize(
    ('values', 'words'),
    [
        ({'accuracy': 1.0}, "'loss' of task 'books'.*\\['accuracy'\\]"),
        ({'loss': [1, 2]}, r"is \[1, 2\], expected a number"),
        ({'loss': 'text'}, "is 'text', expected a number"),
    ],
)
def test_a_metric_that_an_evaluation_does_not_give_is_refused(values, words):
  actions = {MODES.TRAIN_EVAL: [_nan('books')]}
  with pytest.raises(action_checks.UnknownMetricError, match=words):
    action_checks.check_metrics(actions, MODES.TRAIN_EVAL, {'books': values})


def test_a_task_without_a_batch_is_not_held_against_an_action():
  actions = {MODES.TRAIN_EVAL: [_nan('books')]}
  action_checks.check_metrics(actions, MODES.TRAIN_EVAL, {})
