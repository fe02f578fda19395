# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The books of an attempt survive it."""

import time

import pytest

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import supervised
from t5wild.vitals import time_ledgers


def _books(tmp_path, **changes):
  arguments = {
      'process': 0, 'num_devices': 8, 'price_per_device_hour': 2.5,
      'attempt': 3, **changes,
  }  # fmt: skip
  return time_ledgers.Books(run_dir_lib.RunDir(str(tmp_path)), **arguments)


def test_what_is_written_is_read_back(tmp_path):
  books = _books(tmp_path)
  books.write({'step': 7.0, 'save': 3.0}, first_step=10, step=15)
  (attempt,) = time_ledgers.read_all(run_dir_lib.RunDir(str(tmp_path)))
  assert attempt.seconds == {'step': 7, 'save': 3}
  assert attempt.end - attempt.start == pytest.approx(10, abs=1e-3)
  assert (attempt.first_step, attempt.step) == (10, 15)
  assert (attempt.num_devices, attempt.number) == (8, 3)
  assert attempt.price_per_device_hour == 2.5


def test_how_an_attempt_ended_is_read_back_and_none_while_it_goes_on(tmp_path):
  run_dir = run_dir_lib.RunDir(str(tmp_path))
  books = _books(tmp_path)
  books.write({'step': 1.0}, first_step=0, step=1)
  assert time_ledgers.read_all(run_dir)[0].ended is None
  books.write(
      {'step': 1.0}, first_step=0, step=1, ended=time_ledgers.STOPPED
  )
  assert time_ledgers.read_all(run_dir)[0].ended == 'stopped'


def test_a_newer_writing_replaces_the_older_and_no_other_attempts(
    tmp_path, monkeypatch
):
  for attempt in (1, 2):
    monkeypatch.setattr(
        time_ledgers.time, 'time_ns', lambda a=attempt: a * 10**9
    )
    books = _books(tmp_path, attempt=attempt)
    for step in (1, 2):
      books.write({'step': 1.0}, first_step=0, step=step)
  found = time_ledgers.read_all(run_dir_lib.RunDir(str(tmp_path)))
  assert sorted((a.number, a.step) for a in found) == [(1, 2), (2, 2)]


def test_only_process_0_keeps_books(tmp_path):
  _books(tmp_path, process=1).write({'step': 1.0}, first_step=0, step=1)
  assert not time_ledgers.read_all(run_dir_lib.RunDir(str(tmp_path)))


def test_a_half_written_file_is_passed_over(tmp_path):
  _books(tmp_path).write({'step': 1.0}, first_step=0, step=1)
  (tmp_path / 'time' / 'attempt_9_9.jsonl').write_text('{"step": 1, "sec')
  assert len(time_ledgers.read_all(run_dir_lib.RunDir(str(tmp_path)))) == 1


def test_a_price_below_nothing_is_refused(tmp_path):
  with pytest.raises(ValueError, match=r'-1.0, expected 0 or more.*set'):
    _books(tmp_path, price_per_device_hour=-1.0)


def test_a_supervised_ledger_begins_with_the_process_and_only_once(monkeypatch):
  told = supervised.Supervised(
      attempt=1, start=time.time() - 100, supervisor=1, host='h', label='h',
      folder='/x',
  )
  monkeypatch.setenv(supervised.VARIABLE, '')
  monkeypatch.setenv(*next(iter(told.to_environment().items())))
  assert time_ledgers.open_ledger().seconds()['startup'] == pytest.approx(
      100, abs=5
  )
  assert time_ledgers.open_ledger().seconds()['startup'] == 0
  assert supervised.from_environment().attempt == 1
