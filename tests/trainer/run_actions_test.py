# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Evaluations are reported once and decided upon, whatever their kind."""

import types

import jax.numpy as jnp
import pytest

from t5wild.trainer import action_checks
from t5wild.trainer import actions as actions_lib
from t5wild.trainer import finite
from t5wild.trainer import inference_evaluation
from t5wild.trainer import run_actions

MODES = actions_lib.ActionMode


class _Fixed:
  def __init__(self, values):
    self._values = values

  def evaluate(self, step):
    return {'task': {**self._values, 'step': step}}


class _Asks:
  def __init__(self, answer):
    self.answer, self.seen = answer, []

  def run(self, train_state, metrics_by_task):
    self.seen.append(metrics_by_task)
    return self.answer


def _make(evaluators, user_actions=None, reported=None):
  return run_actions.RunActions(
      trainer=types.SimpleNamespace(train_state='state'),
      train_metrics=None,
      evaluators=evaluators,
      saves=types.SimpleNamespace(
          report_metrics=lambda step, values: reported.append((step, values)),
          retry_is_due=lambda: False,
          save=lambda step: None,
          newest_step=lambda: 4,
      ),
      user_actions=user_actions or {},
      profiler=None,
  )


def test_both_evaluations_are_reported_together():
  reported = []
  actions = _make(
      {
          MODES.TRAIN_EVAL: _Fixed({'loss': 2.0}),
          MODES.INFER_EVAL: _Fixed({'bleu': 30.0}),
      },
      reported=reported,
  )
  assert actions.evaluate(6) is False
  assert reported == [
      (6, {
          'training_eval/task/loss': 2.0, 'training_eval/task/step': 6,
          'inference_eval/task/bleu': 30.0, 'inference_eval/task/step': 6,
      })
  ]  # fmt: skip


@pytest.mark.parametrize('mode', [MODES.TRAIN_EVAL, MODES.INFER_EVAL])
def test_actions_of_each_mode_see_its_metrics_and_can_stop(mode):
  asks = {one: _Asks(one is mode) for one in (MODES.TRAIN_EVAL,
                                              MODES.INFER_EVAL)}
  actions = _make(
      {
          MODES.TRAIN_EVAL: _Fixed({'loss': 2.0}),
          MODES.INFER_EVAL: _Fixed({'bleu': 30.0}),
      },
      {one: [ask] for one, ask in asks.items()},
      reported=[],
  )
  assert actions.evaluate(6) is True
  assert asks[MODES.INFER_EVAL].seen == [{'task': {'bleu': 30.0, 'step': 6}}]


def test_numbers_and_texts_of_an_inference_are_written_apart():
  written = []
  manager = types.SimpleNamespace(
      write_scalars=lambda step, values: written.append((step, sorted(values))),
      write_texts=lambda step, texts: written.append((step, texts)),
      close=lambda: written.append('manager closed'),
  )
  reports = inference_evaluation.InferenceReports(
      start=lambda: types.SimpleNamespace(
          result=lambda: {'task': {'bleu': 30.0, 'example': 'ja'}}
      ),
      managers={'task': manager},
      close=lambda: written.append('evaluator closed'),
  )
  assert reports.evaluate(3) == {'task': {'bleu': 30.0}}
  reports.close()
  assert written == [
      (3, ['bleu', 'timing/evaluate_seconds']), (3, {'example': 'ja'}),
      'manager closed', 'evaluator closed',
  ]


def _with_params(actions_by_mode, params, saved):
  return run_actions.RunActions(
      trainer=types.SimpleNamespace(
          train_state=types.SimpleNamespace(params=params)
      ),
      train_metrics=None,
      evaluators={MODES.TRAIN_EVAL: _Fixed({'loss': 2.0})},
      saves=types.SimpleNamespace(
          report_metrics=lambda step, values: None,
          save=saved.append,
          newest_step=lambda: 4,
      ),
      user_actions=actions_by_mode,
      profiler=None,
  )


def test_parameters_that_are_not_finite_are_never_saved():
  saved = []
  _with_params({}, {'w': jnp.ones(3)}, saved).save(6)
  assert saved == [6]
  bad = _with_params({}, {'w': jnp.array([1.0, jnp.nan])}, saved)
  with pytest.raises(finite.NotFiniteError, match='checkpoint_4 is the newest'):
    bad.save(7)
  assert saved == [6]


def test_a_save_that_failed_is_tried_again_after_the_first_step_it_is_due_at():
  saved = []
  actions = _with_params({}, {'w': jnp.ones(3)}, saved)
  actions._saves.retry_is_due = lambda: not saved and step >= 3
  for step in range(1, 6):
    assert not actions.after_step(step, {})
  assert saved == [3]


def test_an_action_on_a_metric_that_is_not_there_ends_the_run_but_is_no_loss():
  saved = []
  actions = _with_params(
      {MODES.TRAIN_EVAL: [actions_lib.TerminateOnNanAction('task', 'los')]},
      {'w': jnp.ones(3)},
      saved,
  )
  with pytest.raises(action_checks.UnknownMetricError, match="'loss'"):
    actions.evaluate(6)
  assert saved == [6]


def test_a_failure_found_by_an_evaluation_says_so():
  actions = _with_params(
      {MODES.TRAIN_EVAL: [actions_lib.TerminateOnNanAction('task')]},
      {'w': jnp.ones(3)},
      [],
  )
  actions._evaluators = {MODES.TRAIN_EVAL: _Fixed({'loss': float('nan')})}
  told = []
  actions.on_stop = lambda step, why: told.append((step, why))
  with pytest.raises(
      finite.NotFiniteError, match='loss of task is nan.*after step 6'
  ) as raised:
    actions.evaluate(6)
  assert told == [(6, str(raised.value))]
