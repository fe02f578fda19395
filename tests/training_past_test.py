# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a run recorded before, and what of it is gone."""

import dataclasses
import json
import types

import pytest

from t5wild import training_past
from t5wild.trainer import actions
from t5wild.trainer import recall
from t5wild.vitals import records


def _read(folder, *, step=0, is_resumed=False):
  training_past.read(
      f'{folder}/metrics.jsonl', actions={}, step=step, is_resumed=is_resumed
  )
  events = folder / 'events.jsonl'
  if not events.exists():
    return []
  return [json.loads(line) for line in events.read_text().splitlines()]


def _record(folder, steps):
  lines = [
      json.dumps({
          'step': step, 'seconds': 1.0, 'host': 0, 'name': 'train/loss',
          'value': 1.0, 'unit': '',
      })
      for step in steps
  ]  # fmt: skip
  (folder / 'metrics.jsonl').write_text('\n'.join([*lines, '{"torn']))


def test_steps_on_record_without_a_checkpoint_are_told(tmp_path):
  _record(tmp_path, range(61))
  (event,) = _read(tmp_path)
  assert event['name'] == 'checkpoint/none_left' and event['value'] == 60
  assert 'up to step 60' in event['text'] and 'mirror' in event['text']


@pytest.mark.parametrize(
    ('steps', 'how'),
    [
        ((), {}),
        ((0, 0), {}),  # what this start has written itself
        ((1000, 1000), {'step': 1000}),  # from another run's checkpoint
        (range(61), {'step': 60, 'is_resumed': True}),
    ],
)
def test_a_first_start_and_a_resume_have_lost_nothing(tmp_path, steps, how):
  _record(tmp_path, steps)
  assert _read(tmp_path, **how) == []


def test_a_run_without_records_has_lost_nothing(tmp_path):
  assert _read(tmp_path) == []


_TASKS = {actions.ActionMode.TRAIN_EVAL: ['songs']}


def _must_evaluate(recorded, *, is_due=True):
  """Whether step 4 is still to be evaluated, and what is noted of it."""
  noted = []
  must = training_past.must_evaluate_first(
      recall.Past(recorded, last_step=4, names=()),
      types.SimpleNamespace(is_evaluated=True, evaluated_tasks=_TASKS),
      note=lambda step, found: noted.append((step, found)),
      wished=False, is_due=is_due, step=4, is_resumed=True,
  )  # fmt: skip
  return must, noted


def test_killed_after_an_evaluation_its_checkpoint_still_has_its_figures():
  songs = records.Record(4, 1.0, 0, 'training_eval/songs/loss', 0.5, '', '')
  assert _must_evaluate([songs]) == (
      False, [(4, {'training_eval/songs/loss': 0.5})]
  )  # fmt: skip
  other = dataclasses.replace(songs, name='training_eval/books/loss')
  assert _must_evaluate([other]) == (True, [])
  assert _must_evaluate([other], is_due=False) == (False, [(4, {})])
