# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Columns hold what `vitals.records` reads, whatever is in the file."""

import math
import random

import numpy as np
import pytest

from t5wild.reports import record_columns
from t5wild.vitals import records as records_lib


def _records(num, *, seed=0):
  draw = random.Random(seed)
  values = (0.5, -1.5e-30, 7.0, math.nan, math.inf, -math.inf, 1e300)
  names = ('train/loss', 'train/timing/step_seconds', 'eval/a,b/x', 'x')
  return [
      records_lib.Record(
          step=draw.randrange(10**9),
          seconds=1.7e9 + draw.random(),
          host=draw.choice((0, 0, 0, 1)),
          name=draw.choice(names[: 2 + 2 * (seed % 2)]),
          value=draw.choice(values) * draw.choice((1, draw.random())),
          unit=draw.choice(('', 'nats/token')),
      )
      for _ in range(num)
  ]


def _expected(path):
  """By the reader that all others are held against."""
  columns = {}
  for record in records_lib.read_records(path):
    if record.host == 0:
      columns.setdefault(record.name, []).append(record)
  return columns


def _assert_same(path):
  found = record_columns.read_columns(path)
  expected = _expected(path)
  assert list(found.by_name) == list(expected)
  for name, records in expected.items():
    column = found.by_name[name]
    assert column.steps.tolist() == [r.step for r in records]
    assert column.seconds.tolist() == [r.seconds for r in records]
    np.testing.assert_array_equal(column.values, [r.value for r in records])
    assert column.unit == records[-1].unit
  return found


@pytest.mark.parametrize('seed', range(4))
def test_whatever_is_written_is_read_as_the_record_reader_reads_it(
    tmp_path, seed
):
  path = tmp_path / 'metrics.jsonl'
  path.write_text(''.join(map(records_lib.to_line, _records(300, seed=seed))))
  assert _assert_same(path).num_broken_lines == 0


@pytest.mark.parametrize('seed', range(30))
def test_a_file_with_one_byte_lost_or_changed_loses_no_more_than_its_line(
    tmp_path, seed
):
  data = ''.join(map(records_lib.to_line, _records(20, seed=seed))).encode()
  draw = random.Random(seed)
  place = draw.randrange(len(data))
  replacement = draw.choice((b'', b'"', b',', b'\n', b'{', b'\xff', b'\\'))
  path = tmp_path / 'metrics.jsonl'
  path.write_bytes(data[:place] + replacement + data[place + 1 :])
  _assert_same(path)


@pytest.mark.parametrize(
    'line',
    [
        '{"step":1,"sec', '', '\n', 'null\n', '{}\n', '\x00' * 40,
        '{"step":1,"seconds":2,"host":0,"name":"a","value":"2","unit":""}\n',
        '{"step":1,"seconds":2,"host":0,"name":"a","value":2,"unit":"}\n',
        '{"step":1,"seconds":2,"host":0,"name":"a","value":2,"unit":""}',
        '{"unit":"","value":2,"step":1,"seconds":2,"host":0,"name":"a"}\n',
        '{"step":1, "seconds":2, "host":0, "name":"a", "value":2, "unit":""}\n',
    ],
)  # fmt: skip
def test_a_line_of_another_kind_is_read_or_left_out_as_by_the_record_reader(
    tmp_path, line
):
  path = tmp_path / 'metrics.jsonl'
  whole = ''.join(map(records_lib.to_line, _records(5)))
  path.write_text(whole + line)
  _assert_same(path)
  path.write_text(line + '\n' + whole)
  _assert_same(path)


def test_lines_as_the_writer_writes_them_are_cut_up_by_arrow():
  pytest.importorskip('pyarrow')
  text = ''.join(map(records_lib.to_line, _records(100)))
  assert record_columns._cut_up(text.encode(), host=0) is not None


def test_blocks_give_the_same_columns_as_the_whole(tmp_path, monkeypatch):
  path = tmp_path / 'metrics.jsonl'
  path.write_text(''.join(map(records_lib.to_line, _records(300))))
  monkeypatch.setattr(record_columns, '_BLOCK_BYTES', 1000)
  _assert_same(path)


def test_a_file_that_grows_is_read_on_and_a_half_line_waits(tmp_path):
  lines = list(map(records_lib.to_line, _records(60)))
  path = tmp_path / 'metrics.jsonl'
  follower = record_columns.Follower(path)
  data = ''.join(lines).encode()
  for size in (0, 10, len(data) // 2, len(data) // 2 + 7, len(data)):
    path.write_bytes(data[:size])
    found = follower.read()
    whole = data[: data[:size].rfind(b'\n') + 1]
    path.write_bytes(whole)
    expected = record_columns.read_columns(path)
    assert list(found.by_name) == list(expected.by_name)
    for name, column in expected.by_name.items():
      np.testing.assert_array_equal(found.by_name[name].values, column.values)
    assert found.num_broken_lines == 0


def test_a_file_that_was_replaced_by_a_shorter_one_is_read_anew(tmp_path):
  path = tmp_path / 'metrics.jsonl'
  follower = record_columns.Follower(path)
  path.write_text(''.join(map(records_lib.to_line, _records(50))))
  follower.read()
  path.write_text(records_lib.to_line(records_lib.Record(1, 2.0, 0, 'x', 3.0)))
  assert list(follower.read().by_name) == ['x']
