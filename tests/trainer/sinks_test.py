# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Sinks: what they take can be read where it belongs."""

import contextlib
import io
import shutil
import struct

import pytest

from t5wild.trainer import sinks
from t5wild.vitals import records as records_lib
from tests import small_disk


def _records(step, collection='train', **values):
  values = {sinks.LOSS: 2.5} | values
  return [
      records_lib.Record(step, 5.0, 0, f'{collection}/{name}', value, '')
      for name, value in values.items()
  ]


def _timed(step, **values):
  return _records(step) + [
      records_lib.Record(step, 5.0, 0, f'train/timing/{name}', value, '')
      for name, value in values.items()
  ]


def _run(reports, *, in_place=None, **kwargs):
  stream = io.StringIO()
  sink = sinks.ProgressSink(
      total_steps=100, stream=stream, in_place=in_place, **kwargs
  )
  for report in reports:
    sink.write(report)
  sink.close()
  return stream.getvalue()


def test_jsonl_holds_what_was_written(tmp_path):
  path = tmp_path / 'metrics.jsonl'
  sink = sinks.JsonlSink(str(path))
  sink.write(_records(1))
  sink.write_text(1, 'config', 'x = 1')
  sink.close()
  assert list(records_lib.read_records(path)) == _records(1)


def _events(folder):
  """Events of a folder, read without TensorBoard (which loads TensorFlow)."""
  event_pb2 = pytest.importorskip('tensorboardX.proto.event_pb2')
  data = b''.join(path.read_bytes() for path in sorted(folder.iterdir()))
  while data:  # a record: length, its checksum, the event, its checksum
    (length,) = struct.unpack('<Q', data[:8])
    yield event_pb2.Event.FromString(data[12 : 12 + length])
    data = data[16 + length :]


def test_tensorboard_has_t5xs_folder_and_tag(tmp_path):
  pytest.importorskip('tensorboardX')
  sink = sinks.TensorBoardSink(str(tmp_path / 'train'), collection='train')
  sink.write(_records(7, loss=99.0))
  sink.write(_records(7, 'training_eval/c4'))
  sink.write_text(0, 'config', 'x = 1')
  sink.close()
  events = list(_events(tmp_path / 'train'))
  values = {v.tag: (e.step, v) for e in events for v in e.summary.value}
  assert set(values) == {'loss', sinks.LOSS, 'config/text_summary'}
  assert values['loss'][0] == 7
  assert values['loss'][1].simple_value == 99.0
  assert values['config/text_summary'][1].tensor.string_val == [b'x = 1']


def test_a_full_disk_is_an_error_and_what_comes_after_it_is_written(tmp_path):
  pytest.importorskip('tensorboardX')
  with small_disk.mounted(tmp_path / 'disk', megabytes=1) as disk:
    folder = disk / 'train'
    sink = sinks.TensorBoardSink(str(folder), collection='train')
    sink.write(_records(1))
    sink.flush()
    (disk / 'ballast').write_bytes(bytes(shutil.disk_usage(disk).free))
    for step in range(2, 1000):  # more than any buffer on the way holds
      with contextlib.suppress(OSError):
        sink.write(_records(step))
    with pytest.raises(OSError, match='No space'):
      sink.write_text(1000, 'config', 'x' * 1_000_000)
    (disk / 'ballast').unlink()
    sink.write(_records(1001))
    sink.close()
    newest = max(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert len(list(folder.iterdir())) > 1
    (folder / 'kept').mkdir()
    newest = newest.rename(folder / 'kept' / newest.name)
    steps = [e.step for e in _events(newest.parent) if e.summary.value]
  assert steps == [1001]


def test_tensorboard_without_records_leaves_no_folder(tmp_path):
  sink = sinks.TensorBoardSink(str(tmp_path / 'train'), collection='train')
  sink.flush()
  sink.close()
  assert not (tmp_path / 'train').exists()


def test_a_piped_progress_is_one_plain_line_a_report():
  text = _run([_records(10), _records(20)])
  assert text.splitlines() == [
      'step 10/100  loss 2.5000',
      'step 20/100  loss 2.5000',
  ]
  assert '\x1b' not in text and '\r' not in text


def test_a_terminals_line_is_rewritten_and_ended_at_the_close():
  text = _run([_records(10), _records(20)], in_place=True)
  assert text.count('\n') == 1 and text.endswith('loss 2.5000\n')
  assert text.count('\r') == 2


def test_evaluations_keep_their_line_on_a_terminal():
  text = _run(
      [_records(10), _records(10, 'training_eval/c4', accuracy=0.5)],
      in_place=True,
  )
  assert 'training_eval/c4  loss 2.5000  accuracy 0.5000\n' in text


def test_progress_shows_rate_mfu_and_remaining_time():
  report = _timed(
      10,
      nonpadding_target_tokens_per_second=12345.0,
      mfu=0.4125,
      step_seconds=2.0,
  )
  assert _run([report], mfu_note='of a measured peak') == (
      'step 10/100  loss 2.5000  12.3k tokens/s  '
      'MFU 41.2% of a measured peak  0:03:00 left\n'
  )


def test_the_progress_loss_is_per_nonpadding_target_token():
  losses = []
  _run(
      [_records(3, loss=4000.0)],
      on_loss=lambda step, loss: losses.append((step, loss)),
  )
  assert losses == [(3, 2.5)]


def test_reports_without_a_loss_show_nothing():
  record = records_lib.Record(1, 5.0, 0, 'train/timing/seconds', 1.0, '')
  assert _run([[record]]) == ''


@pytest.mark.parametrize(
    ('seconds', 'text'),
    [(0.4, '0:00:00'), (59.6, '0:01:00'), (3661, '1:01:01'),
     (90000, '1d 1:00:00')],
)
def test_times_are_hours_minutes_seconds(seconds, text):
  assert sinks.clock_time(seconds) == text
