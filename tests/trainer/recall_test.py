# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A resumed run's actions know what the run saw before."""

import math

import pytest

from t5wild.trainer import actions as actions_lib
from t5wild.trainer import recall
from t5wild.trainer import training_actions
from t5wild.vitals import records

MODES = actions_lib.ActionMode
_NAMES = {
    MODES.TRAIN: 'train/loss',
    MODES.TRAIN_EVAL: 'training_eval/books/loss',
    MODES.INFER_EVAL: 'inference_eval/books/loss',
}


def _record(step, value, name, host=0):
  return records.Record(step, 0.0, host, name, value, '')


def _actions(mode):
  task = 'train' if mode is MODES.TRAIN else 'books'
  return {mode: [actions_lib.EarlyStoppingAction((task, 'loss'), 'min')]}


def _past(written, actions, *, last_step):
  return recall.Past(
      written, last_step=last_step, names=recall.recalled_names(actions)
  )


@pytest.mark.parametrize('mode', list(MODES))
def test_a_stop_that_was_due_is_due_still_and_no_other(mode):
  actions = _actions(mode)
  written = [_record(s, 3.0, _NAMES[mode]) for s in (2, 4, 6)]
  delay = training_actions.STOP_AFTER if mode is MODES.TRAIN else 0
  for step in (6, 6 + delay):
    past = _past(written, actions, last_step=step)
    ends_at, reason = recall.recall(past, actions, step=step)
    assert ends_at == 6 + delay
    assert reason.startswith('EarlyStoppingAction: loss of ')
  # It went on after that: with other actions.
  late = 6 + delay + 1
  past = _past(written, actions, last_step=late)
  assert recall.recall(past, actions, step=late) is None


def test_steps_after_the_checkpoint_are_as_if_never_made():
  actions = _actions(MODES.TRAIN_EVAL)
  name = _NAMES[MODES.TRAIN_EVAL]
  written = [_record(step, 3.0, name) for step in (2, 4, 6)]
  past = _past(written, actions, last_step=5)
  assert past.values(name) == [(2, 3.0), (4, 3.0)]
  assert recall.recall(past, actions, step=5) is None
  (action,) = actions[MODES.TRAIN_EVAL]
  assert action.run(None, {'books': {'loss': 3.0}})


def test_of_a_step_made_twice_the_later_record_counts():
  actions = _actions(MODES.TRAIN_EVAL)
  name = _NAMES[MODES.TRAIN_EVAL]
  written = [
      _record(2, 1.0, name), _record(4, 9.0, name), _record(4, 2.0, name),
      _record(4, 7.0, name, host=1),
  ]  # fmt: skip
  past = _past(written, actions, last_step=4)
  assert past.values(name) == [(2, 1.0), (4, 2.0)]


def test_actions_without_memory_are_left_alone():
  actions = {MODES.TRAIN: [actions_lib.TerminateOnNanAction('train')]}
  assert recall.recalled_names(actions) == []
  past = _past([_record(2, math.nan, 'train/loss')], actions, last_step=2)
  assert recall.recall(past, actions, step=2) is None


def test_an_evaluation_of_the_last_step_is_known_by_its_metrics():
  written = [
      _record(2, 1.0, 'training_eval/books/loss'),
      _record(4, 1.0, 'training_eval/songs/loss'),
      _record(4, 1.0, 'training_eval/books/timing/evaluate_seconds'),
  ]
  past = recall.Past(written, last_step=4, names=())
  assert past.has_evaluation('training_eval/songs')
  assert not past.has_evaluation('training_eval/books')
  assert past.evaluation == {'training_eval/songs/loss': 1.0}


def test_an_evaluation_of_a_state_that_was_trained_anew_is_of_another_one():
  evaluated = _record(60, 1.0, 'training_eval/songs/loss')
  written = [_record(step, 1.0, 'train/loss') for step in (50, 60)]
  again = [_record(step, 2.0, 'train/loss') for step in (55, 60)]

  def evaluation(records):
    return recall.Past(records, last_step=60, names=()).evaluation

  assert evaluation([*written, evaluated]) == {evaluated.name: 1.0}
  assert evaluation([*written, evaluated, *again]) == {}
  assert evaluation([*written, *again, evaluated]) == {evaluated.name: 1.0}


def test_without_a_file_the_memory_begins_anew(tmp_path):
  path = tmp_path / 'metrics.jsonl'
  past = recall.Past.read(str(path), last_step=4, names=['train/loss'])
  assert past.values('train/loss') == []
  with path.open('w') as file:
    file.write(records.to_line(_record(3, math.nan, 'train/loss')))
  past = recall.Past.read(str(path), last_step=4, names=['train/loss'])
  ((step, value),) = past.values('train/loss')
  assert step == 3
  assert math.isnan(value)
