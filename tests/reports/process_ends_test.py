# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""How a process ended is told in one sentence that does not contradict itself.
"""

import re

import pytest

from t5wild import run_dir as run_dir_lib
from t5wild.reports import contents as contents_lib
from t5wild.reports import findings
from t5wild.reports import history as history_lib
from t5wild.vitals import records as records_lib
from t5wild.vitals import time_ledgers
from tests.reports import made_runs

_SAID = 'Killed by SIGKILL; the newest complete checkpoint resumes.'


def _write_events(run, *events):
  with open(run.events_jsonl, 'w', encoding='utf-8') as file:
    for step, seconds, name, text in events:
      file.write(
          records_lib.to_line(
              records_lib.Record(step, seconds, 0, name, 1.0, '', text)
          )
      )


@pytest.fixture
def killed(tmp_path):
  """Killed after step 440, resumed from 400; the heartbeat knew of step 423."""
  made_runs.make_run(
      tmp_path,
      faults=made_runs.Faults(killed_steps=(440,), resumed_steps=(400,)),
  )
  run = run_dir_lib.RunDir(str(tmp_path))
  start = history_lib.read_history(run.path).starts[1]
  end = start.last_seconds_before
  _write_events(
      run,
      (0, end + 3, 'supervisor/detected', 'process 0: killed'),
      (423, end + 4, 'supervisor/exit/killed', _SAID),
  )
  return run


def test_a_killed_process_is_one_sentence_with_its_restart(killed):
  (found,) = findings.find(history_lib.read_history(killed.path))
  assert re.fullmatch(
      r'A process was killed by SIGKILL at step 440 or later, seen 3(\.0+)? s '
      r'after its last sign of life\. The run was resumed from the checkpoint '
      r'of step 400; 40 updates were done twice, and 1 h 0 min '
      r'passed until training could go on\. It was the newest that was whole\.',
      found.text,
  )
  assert found.step == 440


def _add(run, *events):
  with open(run.events_jsonl, 'a', encoding='utf-8') as file:
    for seconds, name, value, text in events:
      file.write(
          records_lib.to_line(
              records_lib.Record(0, seconds, 0, name, value, '', text)
          )
      )


def test_a_kill_is_one_row_with_the_attempt_that_followed(killed):
  end = history_lib.read_history(killed.path).starts[1].last_seconds_before
  _add(
      killed,
      (end - 300, 'supervisor/attempt', 1.0, ''),
      (end + 4.1, 'supervisor/restart', 0.0, 'killed: starting again in 0 s'),
      (end + 4.5, 'supervisor/attempt', 2.0, ''),
  )
  rows = [
      each.text
      for each in contents_lib.read_contents(killed.path).events
      if each.is_of_supervisor
  ]
  assert rows == [
      'the supervisor starts: 1',
      f'a process was killed: {_SAID[:-1]}. Attempt 2 began at once',
  ]


def test_what_an_error_said_is_told_once_with_its_exit_or_its_end(killed):
  last = history_lib.read_history(killed.path).last_seconds
  _add(killed, (last + 1, 'run/error', 1.0, 'OSError: token=abcdefghijklmn'))
  contents = contents_lib.read_contents(killed.path)
  told = [each for each in contents.findings if 'OSError' in each.text]
  assert [each.level for each in told] == ['bad']
  assert told[0].text.startswith('The run ended with an error at step 1,000')
  assert sum('OSError' in each.text for each in contents.events) == 1
  assert contents.events[-1].kind == 'end'
  _add(killed, (last + 3, 'supervisor/exit/file_system', 1.0, 'exit code 1.'))
  contents = contents_lib.read_contents(killed.path)
  told = [each.text for each in contents.findings if 'OSError' in each.text]
  (said,) = told
  assert said.startswith('The file system failed at step 1,000 or later')
  assert 'exit code 1. In its own words: OSError' in said
  assert sum('OSError' in each.text for each in contents.events) == 1
  assert 'abcdefghijklmn' not in repr(contents)


def test_why_an_older_checkpoint_was_resumed_is_told(killed):
  start = history_lib.read_history(killed.path).starts[1]
  _add(
      killed,
      (start.seconds - 2, 'checkpoint/mirrored', 1.0, 'as every day'),
      (start.seconds - 1, 'checkpoint/damaged', 1.0, 'm/checkpoint_420: torn'),
  )
  (found,) = findings.find(history_lib.read_history(killed.path))
  assert found.text.endswith(
      'Of checkpoints it told: m/checkpoint_420: torn.'
  )


def test_a_restart_is_drawn_no_earlier_than_the_fault_that_it_follows(killed):
  events = contents_lib.read_contents(killed.path).events
  (fault,) = [each for each in events if each.kind == 'fault']
  (restart,) = [each for each in events if each.kind == 'restart']
  assert restart.step == 400
  assert restart.shown_step >= fault.shown_step == 440
  assert restart.seconds > fault.seconds


def test_an_end_that_nothing_came_after_weighs_most(killed):
  last = history_lib.read_history(killed.path).last_seconds
  with open(killed.events_jsonl, 'a', encoding='utf-8') as file:
    file.write(
        records_lib.to_line(
            records_lib.Record(
                0, last + 9, 0, 'supervisor/exit/device', 1.0, '', 'lost a chip'
            )
        )
    )
  first = findings.find(history_lib.read_history(killed.path))[0]
  assert first.text.startswith('A device failed at step 1,000 or later')
  assert 'lost a chip' in first.text and 'resumed' not in first.text


@pytest.fixture
def not_finite(tmp_path):
  """NaN at step 697, ended at step 800 of 1,000."""
  made_runs.make_run(
      tmp_path, faults=made_runs.Faults(nan_step=700), num_steps=800,
      period=10,
  )  # fmt: skip
  run = run_dir_lib.RunDir(str(tmp_path))
  with open(run.operative_config_gin, encoding='utf-8') as file:
    text = file.read()
  with open(run.operative_config_gin, 'w', encoding='utf-8') as file:
    file.write(text.replace('= 800', '= 1000'))
  seconds = made_runs.BEGAN + 370
  _write_events(run, (697, seconds, 'vitals/not_finite', 'nan at step 697'))
  return run


def test_nan_is_told_with_its_very_step_its_end_and_the_last_good_checkpoint(
    not_finite, tmp_path
):
  (tmp_path / 'checkpoint_640').mkdir()
  found = findings.find(history_lib.read_history(not_finite.path))[0]
  assert found.text == (
      'The training loss and the gradient norm are NaN from step 697 on, and '
      'stay so to the end. The run ended because of it at step 800 of 1,000, '
      'by all that is recorded. The last good checkpoint is that of step 640.'
  )


def test_a_run_that_failed_is_not_said_to_have_ended_in_order(not_finite):
  history = history_lib.read_history(not_finite.path)
  books = time_ledgers.Books(
      not_finite, process=0, num_devices=1, attempt=1,
      price_per_device_hour=None,
  )  # fmt: skip
  books.write(
      {'step': 1.0}, first_step=0, step=800, ended=time_ledgers.FAILED
  )
  contents = contents_lib.read_contents(not_finite.path)
  assert history.ended is not None
  assert contents.state == 'ended with an error, at step 800 of 1,000'
  (end,) = [each for each in contents.events if each.kind == 'end']
  assert end.text.startswith('ended with an error')
