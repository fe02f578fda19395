# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a run appends to comes into a bucket; a folder stands for one here."""

import pathlib

import pytest

from t5wild import run_dir as run_dir_lib
from t5wild.trainer import bucket_mirror
from t5wild.trainer import run_sinks
from t5wild.vitals import goodput
from t5wild.vitals import records


@pytest.fixture
def bucket(tmp_path, monkeypatch):
  """A folder that is taken for a bucket."""
  monkeypatch.setattr(
      run_dir_lib.RunDir,
      'is_bucket',
      property(lambda self: pathlib.Path(self.path).name == 'bucket'),
  )
  return run_dir_lib.RunDir(str(tmp_path / 'bucket'))


def _record(step):
  return records.Record(step, 0.0, 0, 'train/loss', float(step), 'nats')


def _run(bucket, *steps):
  """Writes records as a run does, and ends it."""
  opened = run_sinks.RunSinks(bucket, total_steps=9, is_writer=True)
  local = pathlib.Path(opened.run_dir.path)
  for step in steps:
    for sink in opened.of('train'):
      sink.write([_record(step)])
  opened.close(goodput.Ledger(), step=steps[-1])
  return local


def _steps(bucket):
  found = records.read_records(bucket.metrics_jsonl)
  return [record.step for record in found if record.name == 'train/loss']


def test_a_path_with_a_scheme_is_a_bucket():
  assert run_dir_lib.RunDir('gs://some/run').is_bucket
  assert not run_dir_lib.RunDir('/some/run').is_bucket


def test_all_that_a_run_wrote_is_there_at_its_end(bucket):
  local = _run(bucket, 1, 2)
  assert _steps(bucket) == [1, 2]
  folder = pathlib.Path(bucket.summaries('train'))
  assert list(folder.glob('events.out.tfevents*'))
  assert not local.exists()


def test_a_resumed_run_goes_on_with_the_records_that_are_there(bucket):
  _run(bucket, 1, 2)
  _run(bucket, 3)
  assert _steps(bucket) == [1, 2, 3]


def test_what_is_written_is_sent_now_and_then(bucket, monkeypatch):
  mirror = bucket_mirror.BucketMirror(bucket)
  path = pathlib.Path(mirror.run_dir.join('profile', 'trace'))
  path.parent.mkdir()
  path.write_text('a')
  there = pathlib.Path(bucket.join('profile', 'trace'))
  mirror.write([_record(1)])
  assert not there.exists()
  monkeypatch.setattr(bucket_mirror, 'SEND_PERIOD_SECONDS', -1.0)
  mirror.write([_record(2)])
  assert there.read_text() == 'a'
  # What has not changed is not sent again.
  there.unlink()
  mirror.write([_record(3)])
  assert not there.exists()
  mirror.close()


def test_a_bucket_that_fails_is_an_os_error_and_is_tried_again(
    bucket, monkeypatch
):
  class DriverError(Exception):
    pass

  def fail(*unused):
    raise DriverError('403')

  mirror = bucket_mirror.BucketMirror(bucket)
  pathlib.Path(mirror.run_dir.metrics_jsonl).write_text('a')
  with monkeypatch.context() as patch:
    patch.setattr(type(mirror._bucket), 'write_bytes', fail)
    with pytest.raises(OSError, match=r'\(403\); it is kept as .*jsonl'):
      mirror.flush()
  mirror.flush()
  assert pathlib.Path(bucket.metrics_jsonl).read_text() == 'a'
  with monkeypatch.context() as patch:
    patch.setattr(type(mirror._bucket), 'read_bytes', fail)
    with pytest.raises(OSError, match='(?s)cannot be read.*set MODEL_DIR'):
      bucket_mirror.BucketMirror(bucket)
  mirror.close()
