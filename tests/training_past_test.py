# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a run recorded before, and what of it is gone."""

import json

import pytest

from t5wild import training_past


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
