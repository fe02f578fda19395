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


def _check(actions, *, eval_period=10):
  action_checks.check_tasks(actions, _TASKS, eval_period=eval_period)


def test_a_task_that_is_not_evaluated_is_refused_with_those_that_are():
  with pytest.raises(
      action_checks.UnknownMetricError,
      match=r"watches task 'boks', expected one of \['books'\].*'books'\?",
  ):
    _check({MODES.TRAIN_EVAL: [_nan('boks')]})
  _check({MODES.TRAIN_EVAL: [_nan('books')]})


def test_training_metrics_are_those_of_the_task_train():
  with pytest.raises(action_checks.UnknownMetricError, match="'train'"):
    _check({MODES.TRAIN: [_nan('books')]})


@pytest.mark.parametrize(
    ('mode', 'eval_period', 'missing'),
    [
        (MODES.INFER_EVAL, 10, 'infer_eval_dataset_cfg'),
        (MODES.INFER_EVAL, None, 'infer_eval_dataset_cfg'),
        (MODES.TRAIN_EVAL, None, 'eval_period'),
    ],
)
def test_actions_of_an_evaluation_that_the_run_has_not_name_what_is_none(
    mode, eval_period, missing
):
  with pytest.raises(
      action_checks.UnknownMetricError,
      match=f'TerminateOnNanAction of mode {mode.name}.* {missing} is None',
  ):
    _check({mode: [_nan('books')]}, eval_period=eval_period)
  _check({mode: []}, eval_period=eval_period)


def test_actions_on_training_metrics_need_no_evaluation():
  _check({MODES.TRAIN: [_nan('train')]}, eval_period=None)


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
