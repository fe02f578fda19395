# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Records: what is written is read, whatever happened to the file."""

import json
import logging
import math
import os
import shutil
import threading

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import pytest

from t5wild.vitals import records as records_lib


def _record(step, value=1.5, name='train/loss', host=0):
  return records_lib.Record(step, 12.25, host, name, value, 'nats')


@settings(max_examples=40)
@given(
    st.integers(0, 10**9),
    st.floats(allow_nan=False),
    st.text(min_size=1, max_size=8),
    st.text(max_size=8),
)
def test_a_line_reads_back_as_its_record_and_is_strict_json(
    step, value, name, unit
):
  record = records_lib.Record(step, 1.0, 0, name, value, unit)
  line = records_lib.to_line(record)
  assert line.count('\n') == 1
  json.loads(line, parse_constant=lambda word: pytest.fail(word))
  assert records_lib.from_line(line) == record


def test_nan_reads_back_as_nan():
  line = records_lib.to_line(_record(1, math.nan))
  assert math.isnan(records_lib.from_line(line).value)


def test_written_records_are_read_in_order(tmp_path):
  path = tmp_path / 'new' / 'metrics.jsonl'
  writer = records_lib.RecordWriter(path)
  for step in range(50):
    writer.write([_record(step), _record(step, 2.0, 'train/accuracy')])
  writer.close()
  writer.close()
  read = list(records_lib.read_records(path))
  assert [r.step for r in read] == [s for s in range(50) for _ in range(2)]


@pytest.mark.parametrize('cut', [1, 7, 30])
def test_a_half_line_of_a_killed_run_spoils_no_later_record(
    tmp_path, cut, caplog
):
  path = tmp_path / 'metrics.jsonl'
  whole = records_lib.to_line(_record(1))
  path.write_text(whole + records_lib.to_line(_record(2))[:-cut])
  writer = records_lib.RecordWriter(path)
  writer.write([_record(3)])
  writer.close()
  steps = [r.step for r in records_lib.read_records(path)]
  # Without only its line end the cut line is whole.
  assert steps == ([1, 2, 3] if cut == 1 else [1, 3])


def test_a_file_emptied_while_open_takes_further_whole_lines(tmp_path):
  path = tmp_path / 'metrics.jsonl'
  writer = records_lib.RecordWriter(path)
  writer.write([_record(1)])
  writer.flush()
  os.truncate(path, 0)
  writer.write([_record(2)])
  writer.close()
  assert [r.step for r in records_lib.read_records(path)] == [2]


@pytest.mark.parametrize('is_moved', [True, False])
def test_a_file_moved_or_removed_is_begun_anew_in_its_folder(
    is_moved, tmp_path, caplog
):
  path = tmp_path / 'run' / 'metrics.jsonl'
  writer = records_lib.RecordWriter(path)
  for step in range(3):
    writer.write([_record(step)])
    writer.flush()
    if step == 0:
      (path.rename(path.with_suffix('.1')) if is_moved else path.unlink())
  writer.close()
  assert [r.step for r in records_lib.read_records(path)] == [1, 2]
  assert caplog.text.count('was moved or removed') == 1


def test_records_follow_a_folder_that_is_moved_and_survive_one_removed(
    tmp_path,
):
  writer = records_lib.RecordWriter(tmp_path / 'run' / 'metrics.jsonl')
  (tmp_path / 'run').rename(tmp_path / 'moved')
  (tmp_path / 'run').mkdir()
  writer.write([_record(1)])
  writer.flush()
  assert not list((tmp_path / 'run').iterdir())
  moved = records_lib.read_records(tmp_path / 'moved' / 'metrics.jsonl')
  assert [record.step for record in moved] == [1]
  shutil.rmtree(tmp_path / 'moved')
  writer.write([_record(2)])
  writer.close()
  assert writer.dropped == 0 and not (tmp_path / 'moved').exists()


def test_two_writers_of_one_file_leave_whole_lines(tmp_path):
  path = tmp_path / 'metrics.jsonl'
  writers = [records_lib.RecordWriter(path) for _ in range(2)]

  def work(host):
    for step in range(200):
      writers[host].write([_record(step, host=host)])

  threads = [threading.Thread(target=work, args=(h,)) for h in range(2)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  for writer in writers:
    writer.close()
  assert len(list(records_lib.read_records(path))) == 400


@pytest.mark.skipif(not os.path.exists('/dev/full'), reason='no /dev/full')
def test_a_full_disk_is_told_once_and_the_run_goes_on(caplog):
  caplog.set_level(logging.ERROR)
  writer = records_lib.RecordWriter('/dev/full')
  for step in range(3):
    writer.write([_record(step)])
  writer.close()
  assert writer.dropped == 3
  assert len(caplog.records) == 1
  assert 'free some space' in caplog.text


def test_series_of_a_resumed_run_has_each_step_once_and_the_later_one():
  rows = [_record(1, 9.0), _record(2, 8.0), _record(3, 7.0), _record(2, 5.0)]
  series = records_lib.series(rows, 'train/loss')
  assert [(r.step, r.value) for r in series] == [(1, 9.0), (2, 5.0), (3, 7.0)]


def test_a_closed_writer_refuses_records(tmp_path):
  writer = records_lib.RecordWriter(tmp_path / 'metrics.jsonl')
  writer.close()
  with pytest.raises(ValueError, match='is closed; expected an open one'):
    writer.write([_record(1)])
