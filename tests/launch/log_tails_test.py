# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The end of a log, whatever is done to the log."""

import io
import os

import pytest

from t5wild.launch import log_tails


@pytest.fixture
def log(tmp_path):
  with log_tails.open_log(str(tmp_path / 'logs' / 'a.log')) as file:
    yield file


@pytest.fixture
def shown():
  return io.BytesIO()


@pytest.fixture
def tail(log, shown):
  tail = log_tails.LogTail(log.name, shown=shown, prefix='0: ')
  yield tail
  tail.close()


def _write(log, data):
  log.write(data)
  log.flush()


def test_lines_are_shown_once_they_are_whole(log, tail, shown):
  _write(log, b'one\ntw')
  tail.pump()
  assert shown.getvalue() == b'0: one\n'
  assert tail.lines() == ['one', 'tw']
  _write(log, b'o\n')
  tail.pump()
  assert tail.lines() == ['one', 'two']


def test_a_log_that_was_cut_is_read_from_its_beginning(log, tail, shown):
  _write(log, b'long ago\n' * 100)
  tail.pump()
  os.truncate(log.name, 0)
  _write(log, b'RESOURCE_EXHAUSTED: Out of memory\n')  # it appends
  tail.pump()
  assert tail.lines()[-2:] == [
      '[the log was cut from 900 to 34 bytes]',
      'RESOURCE_EXHAUSTED: Out of memory',
  ]
  assert shown.getvalue().endswith(b'0: RESOURCE_EXHAUSTED: Out of memory\n')


def test_a_flood_is_passed_over_but_for_its_end(
    log, tail, shown, monkeypatch
):
  monkeypatch.setattr(log_tails, '_MAX_BYTES', 1000)
  monkeypatch.setattr(log_tails, '_MAX_BEHIND', 8000)
  _write(log, b'flood\n' * 2000 + b'the last\n')
  tail.pump()
  assert tail.lines()[0] == '[11,009 bytes of the log are not shown]'
  assert tail.lines()[-1] == 'the last'
  assert len(shown.getvalue()) < 3000


def test_bytes_without_line_ends_are_not_kept_for_a_line_to_come(
    log, tail, monkeypatch
):
  monkeypatch.setattr(log_tails, '_MAX_BYTES', 100)
  monkeypatch.setattr(log_tails, '_MAX_LINE', 50)
  _write(log, b'\0' * 1000 + b'end\n')
  tail.pump()
  assert tail.lines() == ['\0' * 50] * 10 + ['end']


def test_who_prints_while_it_is_read_keeps_nobody(log, tail, monkeypatch):
  class Endless(io.BytesIO):
    """Grows whenever something is shown."""

    def write(self, data):
      _write(log, b'more\n')
      return super().write(data)

  monkeypatch.setattr(tail, '_shown', Endless())
  _write(log, b'one\n')
  tail.pump()
  assert tail.lines() == ['one']
