# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a run went back behind is marked on its page, and nothing else is."""

import json

from t5wild import run_dir as run_dir_lib
from t5wild.reports import events as events_lib
from t5wild.reports import history as history_lib
from t5wild.reports import one_fault
from t5wild.reports import taken_back
from t5wild.vitals import records as records_lib
from tests.reports import made_runs

_MARK = 'went back behind'


def _saves(path):
  events = events_lib.read_events(history_lib.read_history(str(path)))
  return [event for event in events if event.kind == 'save']


def test_saves_of_steps_that_a_restart_makes_again_are_marked(tmp_path):
  faults = made_runs.Faults(killed_steps=(560,), resumed_steps=(300,))
  made_runs.make_run(tmp_path, faults=faults)
  marked = [(e.step, _MARK in e.text) for e in _saves(tmp_path)]
  before, after = marked[:5], marked[5:]
  assert before == [(100 * n, n > 3) for n in range(1, 6)]
  assert after == [(100 * n, False) for n in range(4, 11)]


def test_what_a_rewind_takes_back_is_marked_and_keeps_its_own_seconds(tmp_path):
  made_runs.make_run(tmp_path)
  run = run_dir_lib.RunDir(str(tmp_path))
  with open(run.metrics_jsonl, encoding='utf-8') as file:
    records = [records_lib.from_line(line) for line in file]
  saved = [each for each in records if each.name == 'train/checkpoint/saved']
  at = {each.step: each.seconds for each in saved}
  rewind = records_lib.Record(
      520, at[500] + 1, 0, taken_back.REWIND, 220.0, 'steps', 'back to 300'
  )
  again = [
      records_lib.Record(400, at[500] + 9, 0, name, value)
      for name, value in (
          ('train/checkpoint/saved', 1.0),
          ('train/timing/save_seconds', 7.25),
      )
  ]
  with open(run.events_jsonl, 'a', encoding='utf-8') as file:
    file.write(records_lib.to_line(rewind))
  with open(run.metrics_jsonl, 'a', encoding='utf-8') as file:
    file.writelines(map(records_lib.to_line, again))
  saves = _saves(tmp_path)
  assert [e.step for e in saves if _MARK in e.text] == [400, 500]
  assert [e.step for e in saves if '7.25 s' in e.text] == [400]
  assert '7.25 s' not in next(e.text for e in saves if _MARK in e.text)


def test_faults_of_a_thousand_restarts_are_told_once_each(tmp_path):
  records = []
  for number in range(1, 1001):
    records += [
        records_lib.Record(number, 100.0 * number + late, 0, name, value, '', t)
        for late, name, value, t in (
            (0.0, 'supervisor/attempt', float(number), ''),
            (50.0, 'run/error', 1.0, f'words {number}'),
            (50.1, 'supervisor/detected', 1.0, 'seen'),
            (50.2, 'supervisor/exit/unknown', 1.0, 'last line.'),
            (50.3, 'supervisor/restart', 1.0, 'again'),
        )
    ]
  merged = one_fault.merged(records)
  assert len(merged) == 1001  # the first attempt is of no exit
  assert merged[7].text == (
      'last line. In its own words: words 7. Attempt 8 began 50 s later'
  )
  assert json.dumps([each.text for each in merged]).count('own words') == 1000
