# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Time that a run lost is told once, with its cause and its cost."""

import os

import numpy as np
import pytest

from t5wild.reports import finding as finding_lib
from t5wild.reports import findings
from t5wild.reports import history as history_lib
from t5wild.vitals import records as records_lib
from tests.reports import made_runs

_TIMING = 'train/timing/'


def _add(path, *records):
  with open(os.path.join(path, 'metrics.jsonl'), 'a') as file:
    file.writelines(map(records_lib.to_line, records))


def _column(name, steps, seconds, values):
  return history_lib.Column(
      name=name, unit='', steps=steps, seconds=seconds, values=values
  )


def test_a_drop_that_waiting_for_data_explains_is_one_finding_with_its_reason(
    tmp_path,
):
  made_runs.make_run(
      tmp_path, faults=made_runs.Faults(slow_steps=(400, 1000))
  )
  _add(
      tmp_path,
      records_lib.Record(
          500, made_runs.BEGAN + 300, 0, f'{_TIMING}data_wait_share', 0.6, '',
          '100% for /data/train.txt',
      ),
  )  # fmt: skip
  (found,) = findings.find(history_lib.read_history(str(tmp_path)))
  assert found.level == 'bad' and found.step == 400
  assert 'of the median before it from step 400 to the end (1' in found.text
  assert '64% of a step is waiting for data (/data/train.txt)' in found.text
  # 61 records of 10 steps, 0.88 s each beyond the usual 0.53.
  assert 530 <= _seconds_in(found.text) <= 545
  assert found.events[0].kind == 'slow'


def _seconds_in(text):
  minutes, seconds = text.split('it cost ')[1].split(' s,')[0].split(' min ')
  return 60 * int(minutes) + int(seconds)


def _stalled(tmp_path, part, *, events=()):
  """Records each second; the 60th comes after 200 s, that `part` took."""
  steps = np.arange(100) * 5 + 5
  seconds = np.arange(100.0) + 200.0 * (np.arange(100) >= 60)
  slow = np.where(np.arange(100) == 60, 40.0, 0.01)
  columns = [
      _column('train/loss', steps, seconds, np.ones(100)),
      _column(f'{_TIMING}{part}_seconds', steps, seconds, slow),
      _column(f'{_TIMING}step_seconds', steps, seconds, slow + 0.2),
  ]
  return history_lib.History(
      str(tmp_path), {c.name: c for c in columns}, 'records', events=events
  )


@pytest.mark.parametrize(
    ('part', 'words'),
    [
        ('data_wait', 'booked as waiting for data'),
        ('device', 'booked as the device'),
        ('other', 'booked as writing and callbacks'),
        ('unheard_of', 'No record tells what for'),
    ],
)
def test_a_stall_is_told_with_its_cost_and_cause_and_once(
    tmp_path, part, words
):
  (stall,) = findings.find(_stalled(tmp_path, part))
  assert stall.level == 'bad' and stall.step == 300
  assert 'for 3 min 21 s after step 300, 67% of the wall time' in stall.text
  assert words in stall.text


def test_a_hang_that_the_watchdog_saw_is_the_cause_of_its_stall(tmp_path):
  hang = records_lib.Record(300, 120.0, 0, 'watchdog/hang', 1.0, '', 'stuck')
  found = findings.find(_stalled(tmp_path, 'device', events=[hang]))
  (stall,) = [each for each in found if 'Nothing was recorded' in each.text]
  assert 'The watchdog saw the process hang.' in stall.text


def test_a_save_far_longer_than_the_others_is_told_with_its_cost(tmp_path):
  made_runs.make_run(tmp_path)
  _add(
      tmp_path,
      records_lib.Record(
          1000, made_runs.BEGAN + 540, 0, f'{_TIMING}save_blocked_seconds',
          300.0, 'seconds',
      ),
  )  # fmt: skip
  (found,) = findings.find(history_lib.read_history(str(tmp_path)))
  assert 'A save held up training 5 min at step 1,000' in found.text


def test_the_worst_comes_first_then_what_cost_most_then_the_earliest():
  def made(level, weight, step):
    return finding_lib.Finding(
        level=level, text='x', weight=weight, step=step
    )

  wanted = [
      made('bad', 0.6, 900), made('bad', 0.3, 100), made('warning', 1.0, 500),
      made('warning', 0.1, 10), made('warning', 0.1, 20), made('note', 0.9, 1),
  ]  # fmt: skip
  assert finding_lib.in_order(wanted[::-1]) == wanted


def test_waiting_all_along_is_told_with_its_steps_and_rests_on_its_cost(
    tmp_path, monkeypatch
):
  def times(step, faults, draw):
    del step, faults
    return 0.8 + 0.02 * draw.random(), 0.3

  monkeypatch.setattr(made_runs, '_times', times)
  made_runs.make_run(tmp_path)
  (found,) = findings.find(history_lib.read_history(str(tmp_path)))
  assert found.level == 'bad'
  assert 'From step 1 to 1,000, 37% of a step is waiting for data' in found.text
  assert 'It cost 5 min' in found.text


@pytest.mark.parametrize(('num_steps', 'level'), [(30, 'note'), (1000, 'bad')])
def test_waiting_in_a_run_of_seconds_is_no_fault_whatever_its_share(
    tmp_path, monkeypatch, num_steps, level
):
  def times(step, faults, draw):
    del step, faults, draw
    return 0.8, 0.3

  monkeypatch.setattr(made_runs, '_times', times)
  cut = made_runs.Faults(is_cut=True)  # no ledger of a longer run
  made_runs.make_run(tmp_path, num_steps=num_steps, period=1, faults=cut)
  found = findings.find(history_lib.read_history(str(tmp_path)))
  (wait,) = [each for each in found if 'waiting for data' in each.text]
  assert wait.level == level
