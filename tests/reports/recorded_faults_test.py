# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What supervisor, watchdog and books write is in the report."""

import dataclasses

import pytest

from t5wild import run_dir as run_dir_lib
from t5wild.launch import failures
from t5wild.reports import contents as contents_lib
from t5wild.reports import events
from t5wild.reports import history as history_lib
from t5wild.reports import time_spent
from t5wild.vitals import goodput
from t5wild.vitals import goodput_report
from t5wild.vitals import records as records_lib
from t5wild.vitals import time_ledgers
from tests.reports import made_runs


def _write_event(
    run, name, seconds, *, step=0, text='', value=1.0, unit=''
):
  with open(run.events_jsonl, 'a', encoding='utf-8') as file:
    file.write(
        records_lib.to_line(
            records_lib.Record(step, seconds, 0, name, value, unit, text)
        )
    )


@pytest.fixture
def run(tmp_path):
  made_runs.make_run(tmp_path)
  return run_dir_lib.RunDir(str(tmp_path))


def test_exits_and_hangs_are_faults_with_their_words(run):
  began = made_runs.BEGAN
  _write_event(run, 'supervisor/attempt', began, value=2.0, unit='attempt')
  _write_event(
      run, 'watchdog/hang', began + 200, step=380, text='process 3 <b>'
  )
  _write_event(
      run, 'supervisor/exit/killed', began + 260,
      text='signal 9; token=abcdefghijklmn',
  )  # fmt: skip
  _write_event(run, 'supervisor/exit/done', began + 600, step=1000)
  contents = contents_lib.read_contents(run.path)
  faults = [event for event in contents.events if event.kind == 'fault']
  assert faults[0].step == 380
  # 260 s of 0.53 s a step; the last report before that.
  assert faults[1].step in (480, 490)
  texts = [each.text for each in contents.findings if each.level == 'bad']
  assert texts[0] == 'The watchdog saw a hang at step 380: process 3 <b>'
  assert 'A process was killed at step' in texts[1]
  assert 'abcdefghijklmn' not in repr(contents)
  assert not any('supervisor/' in each for each in texts)
  neutral = [event for event in contents.events if event.kind == 'recorded']
  assert len(neutral) == 2
  assert neutral[0].text == 'the supervisor starts: attempt 2'


def test_rewinds_and_left_out_updates_have_rows_of_their_own(run):
  began = made_runs.BEGAN
  for name, step in (
      ('skipped_update', 300), ('loss_spike', 400), ('rewind', 402),
      ('stop', 990),
  ):  # fmt: skip
    _write_event(run, f'vitals/{name}', began + step / 2, step=step, text='why')
  contents = contents_lib.read_contents(run.path)
  seen = {
      event.kind: (event.step, event.text)
      for event in contents.events
      if 'why' in event.text
  }
  assert seen == {
      'skip': (300, 'an update is left out: why'),
      'spike': (400, 'the loss leapt up: why'),
      'rewind': (402, 'the run goes back: why'),
      'fault': (990, 'the run stops by its own numbers: why'),
  }


def test_every_kind_of_end_is_said_in_words():
  for kind in failures.KINDS:
    record = records_lib.Record(
        1, 2.0, 0, f'supervisor/exit/{kind.name}', 1.0, text='why'
    )
    history = history_lib.History('x', {}, 'records', events=[record])
    (event,) = events.read_recorded(history)
    assert '/' not in event.text and '(' not in event.text


def _write_books(
    run, start, seconds, first, last, *, num_devices=1,
    price_per_device_hour=None,
):
  books = time_ledgers.Books(
      run, process=0, num_devices=num_devices, attempt=1,
      price_per_device_hour=price_per_device_hour,
  )  # fmt: skip
  books._name = f'attempt_{start:.0f}_1.jsonl'
  books.write({'step': seconds}, first_step=first, step=last)
  path = f'{run.time_ledgers}/{books._name}'
  with open(path, encoding='utf-8') as file:
    lines = [records_lib.from_line(line) for line in file]
  values = {'attempt/start': start, 'attempt/end': start + seconds}
  with open(path, 'w', encoding='utf-8') as file:
    for line in lines:
      value = values.get(line.name, line.value)
      file.write(
          records_lib.to_line(dataclasses.replace(line, value=value))
      )


def test_updates_done_twice_are_those_of_the_books_as_goodput_tells_them(
    tmp_path,
):
  made_runs.make_run(
      tmp_path,
      faults=made_runs.Faults(killed_steps=(20,), resumed_steps=(0,)),
  )
  run = run_dir_lib.RunDir(str(tmp_path))
  starts = history_lib.read_history(run.path).starts
  assert starts[1].num_steps_again == 20
  # Killed 7 steps after its last record.
  _write_books(run, starts[0].seconds - 5, 60.0, 0, 27)
  _write_books(run, starts[1].seconds - 5, 900.0, 0, 1000)
  report = goodput_report.make_report(time_ledgers.read_all(run))
  contents = contents_lib.read_contents(run.path)
  assert report.lost_steps == 27
  texts = [each.text for each in contents.findings]
  assert (
      'The run was started again once, from step 0; 27 updates were done twice.'
      in texts
  )
  (restart,) = [each for each in contents.events if each.kind == 'restart']
  assert '27 updates are done again' in restart.text


def test_every_event_kind_has_a_row_on_the_timeline():
  for name in ('supervisor/exit/killed', 'supervisor/attempt', 'watchdog/hang'):
    record = records_lib.Record(1, 2.0, 0, name, 1.0)
    history = history_lib.History('x', {}, 'records', events=[record])
    (event,) = events.read_recorded(history)
    assert event.kind in events.KINDS


def test_the_books_of_all_processes_come_before_what_records_tell(run):
  for start, seconds, first, last in (
      (1000.0, 100.0, 0, 50), (1150.0, 200.0, 40, 140)
  ):
    _write_books(
        run, start, seconds, first, last, num_devices=4,
        price_per_device_hour=3.6,
    )  # fmt: skip
  spent = time_spent.time_spent(history_lib.read_history(run.path))
  assert not spent.is_estimate
  assert spent.seconds == pytest.approx(
      {'step': 280.0, time_spent.AGAIN: 20.0, time_spent.DOWN: 50.0}
  )
  # 350 s of 4 devices at 3.6 an hour.
  assert sum(spent.money.values()) == pytest.approx(1.4)


def test_a_stall_of_another_process_is_in_the_table_as_goodput_has_it(run):
  _write_books(run, 1000.0, 100.0, 0, 50)
  with open(run.events_jsonl, 'a', encoding='utf-8') as file:
    file.write(
        records_lib.to_line(
            records_lib.Record(
                30, 1060.0, 3, 'watchdog/stalled', 20.0, 'seconds', 'process 3'
            )
        )
    )
  spent = time_spent.time_spent(history_lib.read_history(run.path))
  assert spent.seconds == pytest.approx({'step': 80.0, goodput.STALLED: 20.0})


def test_a_run_that_ended_before_its_first_record_is_told_why(tmp_path):
  run = run_dir_lib.RunDir(str(tmp_path))
  _write_event(run, 'supervisor/stopped', 1.0, text='out of memory, 3 times')
  with pytest.raises(history_lib.NoRunError, match='out of memory, 3 times'):
    history_lib.read_history(run.path)
