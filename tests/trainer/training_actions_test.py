# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Actions on training metrics: late by a fixed number of steps, no stall."""

from concurrent import futures
import math
import types

from clu import metrics as clu_metrics
import jax.numpy as jnp
import pytest

from t5wild.trainer import action_checks
from t5wild.trainer import actions as actions_lib
from t5wild.trainer import stopping
from t5wild.trainer import training_actions

MODES = actions_lib.ActionMode
_STOP_AFTER = training_actions.STOP_AFTER


class _StopsAt:
  """Asks for the end at the n-th look."""

  stop_reason = 'enough'

  def __init__(self, look):
    self._look = look
    self.seen = []

  def run(self, train_state, metrics_by_task):
    self.seen.append((train_state, metrics_by_task['train']['loss']))
    return len(self.seen) == self._look


def _make(*actions):
  return training_actions.TrainingActions(
      {MODES.TRAIN: actions} if actions else {},
      trainer=types.SimpleNamespace(train_state='state'),
  )


def _done(**values):
  future = futures.Future()
  future.set_result(values)
  return future


def _step(loss=1.0):
  return {
      'loss': clu_metrics.Average(total=jnp.float32(loss), count=jnp.float32(1))
  }


def _run(training, *, period, losses):
  """The step after which the actions end the run, and why."""
  for step, loss in enumerate(losses, start=1):
    request = training.after_step(step, _step(loss))
    if request is not None:
      return step, request
    if step % period == 0:
      training.log(step, _done(loss=loss))
  return None


@pytest.mark.parametrize('period', [1, 2, 5])
def test_a_run_ends_a_fixed_number_of_steps_after_the_interval(period):
  action = _StopsAt(3)
  step, request = _run(_make(action), period=period, losses=[1.0] * 40)
  assert step == 3 * period + _STOP_AFTER
  assert request.reason == '_StopsAt: enough'
  assert not request.is_failure
  assert action.seen[0] == ('state', 1.0)


def test_nothing_waits_for_metrics_that_are_not_there_before_they_are_due():
  training = _make(_StopsAt(1))
  unfinished = futures.Future()
  training.after_step(1, _step())
  training.log(1, unfinished)
  for step in range(2, 1 + training_actions.LOOK_AFTER):
    assert training.after_step(step, _step()) is None
  unfinished.set_result({'loss': 1.0})
  assert training.after_step(1 + training_actions.LOOK_AFTER, _step()) is None
  assert training.after_step(1 + _STOP_AFTER, _step()) is not None


def test_intervals_at_the_very_end_are_looked_at_after_it():
  training = _make(actions_lib.TerminateOnNanAction('train'))
  assert _run(training, period=6, losses=[1.0] * 5 + [math.nan]) is None
  request = training.finish()
  assert request.is_failure
  assert 'loss of train is nan' in request.reason
  assert training.watch.first() == 'train/loss is nan at step 6'
  assert training.finish() is None


def test_the_first_bad_step_of_an_interval_is_found():
  training = _make(actions_lib.TerminateOnNanAction('train'))
  losses = [1.0] * 12 + [math.nan] * 20
  step, request = _run(training, period=5, losses=losses)
  assert step == 15 + _STOP_AFTER
  assert request.is_failure
  assert training.watch.first() == 'train/loss is nan at step 13'


def test_a_stop_asked_for_before_the_resume_comes_at_its_step():
  training = _make()
  training.stop_at(9, stopping.StopRequest(reason='then'))
  assert training.after_step(8, _step()) is None
  assert training.after_step(9, _step()).reason == 'then'


def test_a_metric_that_no_step_gives_is_refused_after_the_first_step():
  training = _make(actions_lib.TerminateOnNanAction('train', 'los'))
  with pytest.raises(action_checks.UnknownMetricError, match="'loss'"):
    training.after_step(1, _step())


def test_an_error_of_an_action_ends_the_run_with_it():
  class Broken:
    def run(self, train_state, metrics_by_task):
      raise KeyError('mine')

  training = _make(Broken())
  with pytest.raises(KeyError, match='mine'):
    _run(training, period=1, losses=[1.0] * 10)
