# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Actions: when they ask for the end, and when they stay silent."""

from clu import values
import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from t5wild.trainer import actions as actions_lib

Mode = actions_lib.ActionMode


def _stops(action, numbers, *, wrap=float):
  """The place at which the action first asks to stop, or None."""
  for place, number in enumerate(numbers):
    if action.run(None, {'task': {'loss': wrap(number)}}):
      return place
  return None


def _early(mode='min', **arguments):
  return actions_lib.EarlyStoppingAction(('task', 'loss'), mode, **arguments)


@pytest.mark.parametrize(
    ('mode', 'numbers', 'place'),
    [
        ('min', [3, 2, 1, 0.5], None),
        ('min', [3, 3, 3], 2),
        ('min', [3, 4, 3, 4, 5], 4),
        ('max', [1, 2, 3], None),
        ('max', [3, 2, 1], 2),
    ],
)
def test_early_stopping_needs_patience_values_without_improvement(
    mode, numbers, place
):
  assert _stops(_early(mode), numbers) == place


def test_small_improvements_count_as_none():
  assert _stops(_early(), [3.0, 2.9, 2.8]) is None
  assert _stops(_early(atol=0.2), [3.0, 2.9, 2.8]) == 2
  assert _stops(_early(rtol=0.1), [3.0, 2.9, 2.8]) == 2
  assert _stops(_early('max', atol=0.2), [2.8, 2.9, 3.0]) == 2


@pytest.mark.parametrize(
    ('tolerance', 'words'),
    [
        ({}, 'has not improved in its last 3'),
        ({'atol': 1.0}, 'improved by more than atol=1 in'),
        ({'rtol': 0.2}, 'improved by more than rtol=0.2 in'),
        ({'atol': 1.0, 'rtol': 0.2}, 'by more than atol=1 + rtol=0.2 in'),
    ],
)
def test_the_reason_to_stop_names_the_tolerance(tolerance, words):
  assert words in _early('min', **tolerance).stop_reason


def test_early_stopping_leaves_nan_to_others():
  assert _stops(_early(), [1.0, float('nan'), 1.0]) is None


def test_a_metric_that_swings_is_stopped_only_against_the_best():
  swinging = [3.0, 4.0, 3.5, 4.0, 3.5, 4.0]
  assert _stops(_early(), swinging) is None
  assert _stops(_early(compare_with='best'), swinging) == 2
  better = [3.0, 4.0, 2.5, 2.9, 2.4]
  assert _stops(_early(compare_with='best'), better) is None
  assert _stops(_early('max', compare_with='best'), [1.0, 0.5, 0.9]) == 2


def test_against_the_best_a_nan_counts_neither_way():
  action = _early(compare_with='best')
  assert _stops(action, [3.0, float('nan'), 3.5, float('nan'), 3.5]) == 4


@hypothesis.given(
    numbers=strategies.lists(strategies.integers(0, 4), max_size=12),
    place=strategies.integers(0, 12),
    compare_with=strategies.sampled_from(['previous', 'best']),
)
def test_what_was_recalled_counts_as_if_it_had_been_seen(
    numbers, place, compare_with
):
  unbroken = _early(compare_with=compare_with)
  resumed = _early(compare_with=compare_with)
  answers = [
      unbroken.run(None, {'task': {'loss': number}}) for number in numbers
  ]
  asked = resumed.recall(numbers[:place])
  assert asked == (answers[:place][-1] if answers[:place] else False)
  for number, answer in zip(numbers[place:], answers[place:], strict=True):
    assert resumed.run(None, {'task': {'loss': number}}) == answer


@pytest.mark.parametrize('metric', ['loss', ('a', 'b', 'c'), ('task', 3)])
def test_a_metric_that_is_no_pair_of_names_is_refused(metric):
  with pytest.raises(ValueError, match='expected a task and a metric'):
    actions_lib.EarlyStoppingAction(metric, 'min')


@pytest.mark.parametrize('bad', [float('nan'), float('inf'), -float('inf')])
@pytest.mark.parametrize('wrap', [float, values.Scalar, np.float32])
def test_nan_action_stops_at_anything_not_finite(bad, wrap):
  action = actions_lib.TerminateOnNanAction('task')
  assert _stops(action, [1.0, bad], wrap=wrap) == 1


@pytest.mark.parametrize(
    'metrics',
    [{}, {'task': {}}, {'task': {'loss': 'text'}}, {'task': {'loss': [1, 2]}}],
)
def test_absent_metrics_stop_nothing(metrics):
  for action in (_early(patience=2), actions_lib.TerminateOnNanAction('task')):
    assert not any(action.run(None, metrics) for _ in range(3))


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        ({'mode': 'low'}, "'low', expected 'min' or 'max'"),
        ({'atol': -1.0}, 'atol .* -1.0'),
        ({'rtol': -1.0}, 'rtol .* -1.0'),
        ({'rtol': float('nan')}, 'rtol .* nan'),
        ({'patience': 1}, 'patience .* 1, expected at least 2'),
        ({'compare_with': 'first'}, "'first', expected 'previous' or 'best'"),
    ],
)
def test_senseless_arguments_are_refused(arguments, words):
  with pytest.raises(ValueError, match=words):
    _early(**arguments)


class _Recorder(actions_lib.BaseAction):

  def __init__(self, answer):
    self.seen = []
    self._answer = answer

  def run(self, train_state, metrics_by_task):
    self.seen.append((train_state, metrics_by_task))
    return self._answer


def test_every_action_of_a_mode_runs_even_after_one_asked_to_stop():
  first, second, other = _Recorder(True), _Recorder(False), _Recorder(True)
  by_mode = actions_lib.parse_modes(
      {'TRAIN': [first, second], Mode.INFER_EVAL: [other]}
  )
  metrics = {'train': {}}
  assert actions_lib.run_actions(Mode.TRAIN, by_mode, 'state', metrics)
  assert first.seen == second.seen == [('state', metrics)]
  assert other.seen == []
  assert not actions_lib.run_actions(Mode.TRAIN_EVAL, by_mode, None, {})


def test_no_actions_parse_to_none():
  assert actions_lib.parse_modes(None) == {}


def test_unknown_modes_offer_a_close_name():
  with pytest.raises(ValueError, match="TRAIN_EVL.*did you mean 'TRAIN_EVAL'"):
    actions_lib.parse_modes({'TRAIN_EVL': []})


def test_actions_without_run_are_refused():
  with pytest.raises(ValueError, match='no method run'):
    actions_lib.parse_modes({'TRAIN': [print]})


@pytest.mark.parametrize(
    ('of_mode', 'message'),
    [
        ([actions_lib.TerminateOnNanAction], 'is a class'),
        (actions_lib.TerminateOnNanAction(task='train'), 'expected a list'),
        ('nan', 'expected a list'),
    ],
)
def test_what_is_no_list_of_objects_is_refused_before_training(
    of_mode, message
):
  with pytest.raises(ValueError, match=message):
    actions_lib.parse_modes({'TRAIN': of_mode})
