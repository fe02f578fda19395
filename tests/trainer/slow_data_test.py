# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A wait for data is told with what was waited for; a quick source is not."""

import io
import time

from t5wild.trainer import loop
from t5wild.trainer import sinks
from t5wild.trainer import slow_data
from t5wild.vitals import records

_WAITS = {
    'books:train, reading /slow/a.txt': 3.0,
    'the copy to the device': 1.0,
    'books:train': 0.001,
}


def _begun() -> slow_data.SlowData:
  """Past the first interval."""
  slow = slow_data.SlowData()
  slow.record(0, _interval(waited=0.0), on_loop=10.0)
  return slow


def _interval(*, waited: float, waits=None) -> loop.Interval:
  return loop.Interval(
      metrics={},
      num_steps=10,
      seconds=10.0,
      data_wait_seconds=waited,
      device_wait_seconds=0.0,
      dispatch_seconds=0.0,
      off_loop_seconds=0.0,
      data_waits=waits or {},
  )


def test_what_was_waited_for_is_named_with_its_part(caplog):
  found = _begun().record(
      20, _interval(waited=4.0, waits=_WAITS), on_loop=10.0
  )
  share, _, words = found[sinks.DATA_WAIT_SHARE]
  assert share == 0.4
  assert words == (
      '75% for books:train, reading /slow/a.txt; 25% for the copy to the device'
  )
  assert 'step 20 40%' in caplog.text and '/slow/a.txt' in caplog.text


def test_each_name_is_warned_of_once(caplog):
  slow = _begun()
  for step in range(5):
    slow.record(step, _interval(waited=4.0, waits=_WAITS), on_loop=10.0)
  slow.record(9, _interval(waited=4.0, waits={'b': 4.0}), on_loop=10.0)
  assert len(caplog.records) == 2


def test_a_quick_source_is_not_told_of(caplog):
  slow = _begun()
  assert not slow.record(1, _interval(waited=0.5, waits=_WAITS), on_loop=10.0)
  assert not caplog.records


def test_buffers_that_fill_at_the_start_are_told_of_where_it_takes_long(caplog):
  short, long = (slow_data.SlowData() for _ in range(2))
  assert not short.record(1, _interval(waited=5.0, waits=_WAITS), on_loop=6.0)
  assert not caplog.records
  assert long.record(1, _interval(waited=50.0, waits=_WAITS), on_loop=60.0)
  assert '/slow/a.txt' in caplog.text


def test_a_feed_that_tells_nothing_is_told_of_without_a_name(caplog):
  found = _begun().record(1, _interval(waited=5.0), on_loop=10.0)
  assert found[sinks.DATA_WAIT_SHARE] == (0.5, '', '')


def test_the_progress_line_names_what_is_waited_for():
  stream = io.StringIO()
  sink = sinks.ProgressSink(total_steps=100, stream=stream)
  now = time.time()
  sink.write([
      records.Record(20, now, 0, f'train/{sinks.LOSS}', 2.5),
      records.Record(
          20, now, 0, f'train/{sinks.DATA_WAIT_SHARE}', 0.4, '',
          '75% for books:train, reading /slow/a.txt; 25% for the copy',
      ),
  ])  # fmt: skip
  line = stream.getvalue()
  assert 'data wait 40% (books:train, reading /slow/a.txt)' in line
