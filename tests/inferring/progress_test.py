# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Progress tells how far an inference is, and how fast."""

import logging

import pytest

from t5wild.inferring import progress as progress_lib


@pytest.fixture
def clock(monkeypatch):
  """Seconds, to be set."""
  seconds = [100.0]
  monkeypatch.setattr(progress_lib.time, 'monotonic', lambda: seconds[0])
  return seconds


@pytest.fixture
def told(caplog):
  caplog.set_level(logging.INFO, logger='absl')
  return lambda: [record.getMessage() for record in caplog.records]


def test_a_line_comes_every_few_seconds_with_rate_and_time_left(clock, told):
  progress = progress_lib.Progress('lines', total=100)
  for _ in progress.watch(range(24)):
    clock[0] += 0.5
  # The first line after 5.5 s, 11 examples; the second after 11 s.
  assert told() == [
      'lines: 11 of 100 examples, 2.0 a second, 44 s left',
      'lines: 22 of 100 examples, 2.0 a second, 39 s left',
  ]


def test_what_was_there_already_makes_nothing_faster(clock, told):
  progress = progress_lib.Progress('lines', total=100)
  progress.skip(80)
  for _ in progress.watch(range(10)):
    clock[0] += 0.1
  progress.tell()
  assert told() == [
      'lines: 80 examples were there already',
      'lines: 90 of 100 examples, 10.0 a second, 1 s left',
  ]


def test_an_unknown_total_is_left_out(clock, told):
  progress = progress_lib.Progress('task', total=None)
  for _ in progress.watch(range(4)):
    clock[0] += 0.5
  progress.tell()
  assert told() == ['task: 4 examples, 2.0 a second']
