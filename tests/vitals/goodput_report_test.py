# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The books of a run add up, over all its attempts."""

from hypothesis import given
from hypothesis import strategies as st
import pytest

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import goodput_command
from t5wild.vitals import goodput_report
from t5wild.vitals import lost_attempts
from t5wild.vitals import records
from t5wild.vitals import time_ledgers


def _attempt(
    start, first_step, step, *, step_seconds=100.0, ended=None, number=0,
    rewound_steps=0, rewound_to=None, **seconds,
):
  kinds = {'step': step_seconds, **seconds}
  return time_ledgers.Attempt(
      start=start, end=start + sum(kinds.values()), seconds=kinds,
      first_step=first_step, step=step, num_devices=2, ended=ended,
      number=number, rewound_steps=rewound_steps, rewound_to=rewound_to,
  )  # fmt: skip


def test_steps_made_again_are_lost_work_and_gaps_are_down():
  report = goodput_report.make_report([
      _attempt(0, 0, 100, startup=10.0),
      _attempt(140, 80, 120, startup=5.0, restore=5.0),
  ])
  assert report.seconds['step'] == 80 + 100
  assert report.seconds['lost_work'] == 20
  assert report.seconds['down'] == 30
  assert report.lost_steps == 20
  assert report.recovery_seconds == [40.0]
  assert report.num_failures == 1


def test_going_back_twice_loses_what_both_had_made_beyond():
  report = goodput_report.make_report(
      [_attempt(0, 0, 10), _attempt(200, 8, 12), _attempt(400, 4, 20)]
  )
  # Kept: 0-4 of the first, none of the second, all of the third.
  assert report.lost_steps == 6 + 4
  assert report.seconds['lost_work'] == pytest.approx(60 + 100)


def test_steps_that_a_rewind_took_back_are_lost_work():
  # To 100, back to 60, on to 120: 160 steps made, 120 of use.
  report = goodput_report.make_report([
      _attempt(0, 0, 120, step_seconds=160.0, rewound_steps=40, rewound_to=60)
  ])
  assert report.seconds['lost_work'] == pytest.approx(40)
  assert report.seconds['step'] == pytest.approx(120)
  assert report.lost_steps == 40


def test_a_rewind_below_its_start_loses_what_an_attempt_before_had_made():
  # 80, then from there to 100, back to 60, on to 120.
  report = goodput_report.make_report([
      _attempt(0, 0, 80, step_seconds=80.0),
      _attempt(
          80, 80, 120, step_seconds=80.0, rewound_steps=40, rewound_to=60
      ),
  ])  # fmt: skip
  assert report.lost_steps == 20 + 20
  assert report.seconds['lost_work'] == pytest.approx(20 + 20)
  assert report.seconds['step'] == pytest.approx(120)


def test_steps_that_waited_for_who_stood_still_are_booked_as_stalled():
  report = goodput_report.make_report(
      [_attempt(0, 0, 10, save=5.0), _attempt(200, 10, 20)],
      stalls=[(30, 70), (190, 230), (500, 600)],
  )
  assert report.seconds['stalled'] == pytest.approx(40 + 30)
  assert report.seconds['step'] == pytest.approx(200 - 70)
  assert 'stalled' in goodput_report.as_text(report)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 50), st.integers(0, 50), st.floats(0, 1e3),
            st.floats(0, 1e3), st.floats(0, 1e3),
        ),
        min_size=1, max_size=8,
    )
)  # fmt: skip
def test_all_kinds_add_up_to_the_wall_time_of_the_run(rows):
  attempts, at = [], 0.0
  for first, made, step_seconds, save, gap in rows:
    attempts.append(
        _attempt(at, first, first + made, step_seconds=step_seconds, save=save)
    )
    at = attempts[-1].end + gap
  report = goodput_report.make_report(attempts)
  wall = attempts[-1].end
  assert sum(report.seconds.values()) == pytest.approx(wall, abs=1e-6)
  assert report.device_seconds['step'] == pytest.approx(
      2 * report.seconds['step']
  )
  assert 0 <= report.lost_steps <= sum(row[1] for row in rows)


def test_money_is_hours_times_devices_times_price():
  report = goodput_report.make_report(
      [_attempt(0, 0, 1, step_seconds=3600.0)], price_per_device_hour=3.0
  )
  (row,) = [
      line
      for line in goodput_report.as_text(report).splitlines()
      if line.startswith('step')
  ]
  assert row.split() == ['step', '1.0000', '100.0', '6.00']


def test_failures_are_counted_by_their_causes_and_stops_are_none(tmp_path):
  run_dir = run_dir_lib.RunDir(str(tmp_path))
  assert goodput_command.causes(lost_attempts.read_events(run_dir)) is None
  names = ['exit/killed', 'exit/hang', 'exit/killed', 'exit/preempted',
           'exit/done', 'exit/user_error', 'restart']  # fmt: skip
  writer = records.RecordWriter(run_dir.events_jsonl)
  writer.write(
      [records.Record(0, 0.0, 0, f'supervisor/{n}', 1.0) for n in names]
  )
  writer.close()
  causes = goodput_command.causes(lost_attempts.read_events(run_dir))
  assert causes == {'killed': 2, 'hang': 1}
  report = goodput_report.make_report(
      [_attempt(0, 0, 10)], causes=causes
  )
  assert report.num_failures == 3
  text = goodput_report.as_text(report)
  assert 'hang 1, killed 2' in text
  assert 'mean time between failures' in text


def test_an_attempt_that_ended_before_it_had_a_state_loses_no_work():
  attempts = [_attempt(0, 0, 100), _attempt(200, 0, 0)]
  report = goodput_report.make_report(attempts)
  assert (report.steps, report.lost_steps) == (100, 0)
  report = goodput_report.make_report([*attempts, _attempt(400, 90, 120)])
  assert (report.steps, report.lost_steps) == (120, 10)


def test_steps_before_a_return_to_the_beginning_stay_lost():
  report = goodput_report.make_report(
      [_attempt(0, 0, 10), _attempt(200, 0, 20), _attempt(400, 20, 30)]
  )
  assert report.lost_steps == 10
  report = goodput_report.make_report(
      [_attempt(0, 0, 10), _attempt(200, 5, 9), _attempt(400, 0, 30)]
  )
  assert report.lost_steps == 14


def test_ends_in_order_are_no_failures():
  report = goodput_report.make_report(
      [
          _attempt(0, 0, 10, ended='done'),
          _attempt(200, 10, 10, ended='refused'),
          _attempt(400, 10, 15, ended='stopped'),
          _attempt(600, 15, 20, ended='done'),
      ],
      now=1e6,
  )
  assert report.num_failures == 0
  text = goodput_report.as_text(report)
  assert text.startswith(
      '4 attempts (2 done, 1 refused, 1 stopped), 0 failures, 20 steps'
  )
  assert 'No failure.' in text
  assert report.recovery_seconds == [100.0]  # from the stop, no other


@pytest.mark.parametrize('ended', ['failed', 'hung', None])
def test_an_attempt_that_failed_or_tells_of_no_end_is_one_failure(ended):
  report = goodput_report.make_report(
      [_attempt(0, 0, 10, ended=ended), _attempt(200, 10, 20, ended='done')],
      now=1e6,
  )
  assert report.num_failures == 1
  assert ', 1 failure, ' in goodput_report.as_text(report)


def test_the_newest_attempt_goes_on_while_its_books_are_fresh():
  attempts = [_attempt(0, 0, 10)]
  fresh = goodput_report.make_report(attempts, now=105.0)
  assert (fresh.num_failures, fresh.ends) == (0, {'going on': 1})
  old = goodput_report.make_report(attempts, now=1000.0)
  assert (old.num_failures, old.ends) == (1, {'cut off': 1})


def test_failures_beside_a_supervisors_are_counted_by_the_books():
  report = goodput_report.make_report(
      [
          _attempt(0, 0, 10),
          _attempt(200, 0, 10, number=1),
          _attempt(400, 10, 20, number=2, ended='done'),
      ],
      causes={'killed': 1},
  )
  assert report.num_failures == 2


def test_a_folder_that_is_no_run_is_refused(tmp_path, capsys):
  assert goodput_command.main([str(tmp_path / 'no')]) == 2
  assert 'is no folder here: expected the MODEL_DIR' in capsys.readouterr().err
  assert goodput_command.main([str(tmp_path)]) == 2
  assert 'has no books of time: expected' in capsys.readouterr().err
  assert goodput_command.main(['x', '--price_per_device_hour=-1']) == 2
  assert 'is -1.0, expected 0 or more' in capsys.readouterr().err


def _tell(path, *events):
  """Writes (seconds, name, value) as a supervisor's events."""
  path.write_text(''.join(
      records.to_line(
          records.Record(0, seconds, 0, f'supervisor/{name}', value, '')
      )
      for seconds, name, value in events
  ))  # fmt: skip


def test_attempts_that_died_before_their_books_are_booked(tmp_path):
  run_dir = run_dir_lib.RunDir(str(tmp_path))
  _tell(
      tmp_path / 'events.jsonl',
      (1000.0, 'attempt', 1), (1010.0, 'exit/killed', -9),
      (1012.0, 'attempt', 2), (1020.0, 'exit/killed', -9),
      # Killed together with its supervisor.
      (1022.0, 'attempt', 3), (1025.0, 'late', 3.0),
      (1090.0, 'attempt', 4), (1300.0, 'exit/done', 0),
  )  # fmt: skip
  booked = [_attempt(1090, 0, 100, startup=7.0, number=4, ended='done')]
  events = lost_attempts.read_events(run_dir)
  attempts = lost_attempts.with_lost(booked, events, now=2000.0)
  report = goodput_report.make_report(
      attempts,
      causes=goodput_command.causes(lost_attempts.read_events(run_dir)),
      told_ends=lost_attempts.told_ends(events),
      now=2000.0,
  )
  assert (report.num_attempts, report.num_failures) == (4, 3)
  assert report.ends == {'cut off': 3, 'done': 1}
  assert sum(report.seconds.values()) == booked[0].end - 1000
  assert report.seconds['startup'] == 10 + 8 + 3 + 7
  assert report.seconds['down'] == 2 + 2 + 65
  # From the first end to the first step there was.
  assert report.recovery_seconds == [pytest.approx(1097 - 1010)]
  assert report.steps == 100


def test_a_run_that_never_had_books_is_told_by_its_events(tmp_path, capsys):
  _tell(
      tmp_path / 'events.jsonl',
      (1000.0, 'attempt', 1), (1036.0, 'exit/device', 79),
  )  # fmt: skip
  assert goodput_command.main([
      str(tmp_path), '--price_per_device_hour=2'
  ]) == 0  # fmt: skip
  text = capsys.readouterr().out
  assert text.startswith('1 attempt (1 failed), 1 failure (device 1), 0 steps')
  assert 'no attempt came so far as to tell its devices' in text


def test_an_attempt_that_is_starting_goes_on_until_it_is_silent_for_long():
  events = [records.Record(0, 1000.0, 0, 'supervisor/attempt', 1.0)]
  (starting,) = lost_attempts.with_lost([], events, now=1060.0)
  report = goodput_report.make_report([starting], now=1060.0)
  assert report.ends == {'going on': 1}
  assert report.seconds == {'startup': 60.0}
  (gone,) = lost_attempts.with_lost([], events, now=9000.0)
  assert goodput_report.make_report([gone], now=9000.0).num_failures == 1
