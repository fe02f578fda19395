# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A service gets what is written, and whatever it does, the run goes on."""

import json
import logging
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from t5wild import run_dir as run_dir_lib
from t5wild.trainer import service_sink
from t5wild.vitals import records as records_lib
from t5wild.vitals.services import service as service_lib
from tests.trainer import services_of_tests

_FOR_A_PROCESS = 20  # seconds, on a machine with other load
_AT_ONCE = 1.0  # seconds for calls that wait for nobody


def _record(step, value=2.5):
  return records_lib.Record(step, 5.0, 0, 'train/loss', value)


def _open(tmp_path, *, most_waiting=2000, **settings):
  notes = tmp_path / 'notes'
  service = services_of_tests.Notebook(path=str(notes), **settings)
  sink = service_sink.ServiceSink(
      service,
      run_dir_lib.RunDir(str(tmp_path / 'run')),
      most_waiting=most_waiting,
  )
  return sink, notes


def _read(notes):
  return [json.loads(line) for line in notes.read_text().splitlines()]


def _wait_for(is_true):
  until = time.monotonic() + _FOR_A_PROCESS
  while not is_true():
    assert time.monotonic() < until
    time.sleep(0.02)


def _errors(caplog):
  return [r for r in caplog.records if r.levelno >= logging.ERROR]


def test_a_service_gets_all_in_order_and_texts_without_secrets(tmp_path):
  sink, notes = _open(tmp_path)
  sink.write([_record(1)])
  sink.write_text(1, 'config', "api_key = 'abc'\nx = 1")
  sink.write([_record(2, float('inf'))])
  sink.close()
  assert _read(notes) == [
      [[1, 'train/loss', 2.5]],
      [1, 'config', "api_key = '[hidden]'\nx = 1"],
      [[2, 'train/loss', float('inf')]],
      'closed',
  ]
  assert not sink.dropped


@pytest.mark.parametrize('doing', ['connect', 'write', 'close'])
def test_a_service_that_raises_is_reported_once(tmp_path, caplog, doing):
  sink, _ = _open(tmp_path, raises_in=doing)
  for step in range(5):
    sink.write([_record(step)])
  sink.close()
  _wait_for(lambda: _errors(caplog))
  (error,) = _errors(caplog)
  assert f'cannot {doing}' in error.getMessage()
  assert 'RuntimeError' in error.getMessage()
  assert 'hunter2' not in error.getMessage()
  assert 'goes on without it' in error.getMessage()


def test_a_service_that_hangs_holds_nothing_up_and_is_reported_once(
    tmp_path, caplog
):
  sink, _ = _open(
      tmp_path, hangs_in='write', most_waiting=3, close_seconds=1.0
  )
  start = time.monotonic()
  # More than the pipe and the queue take.
  for step in range(100):
    sink.write([_record(step + i) for i in range(100)])
  assert time.monotonic() - start < _AT_ONCE
  _wait_for(lambda: sink.dropped)
  start = time.monotonic()
  sink.close()
  assert time.monotonic() - start < 1.0 + 2 * _AT_ONCE
  texts = [e.getMessage() for e in _errors(caplog)]
  assert [('hung' in t, 'has not sent' in t) for t in texts] == [
      (True, False), (False, True)
  ]  # fmt: skip


def test_a_slow_service_is_given_its_seconds_though_its_queue_was_full(
    tmp_path,
):
  sink, notes = _open(tmp_path, write_seconds=0.3, most_waiting=2)
  for step in range(8):
    sink.write([_record(step + i) for i in range(2000)])  # more than a pipe
  sink.close()
  assert sink.dropped
  taken = _read(notes)
  assert taken[-1] == 'closed'
  assert len(taken) - 1 + sink.dropped == 8


def test_services_that_hang_are_waited_for_together(tmp_path):
  sinks = []
  for name in 'abc':
    (tmp_path / name).mkdir()
    sink, _ = _open(tmp_path / name, hangs_in='close', close_seconds=2.0)
    sink.write([_record(1)])
    sinks.append(sink)
  start = time.monotonic()
  for sink in sinks:
    sink.start_closing()
  for sink in sinks:
    sink.close()
  assert time.monotonic() - start < 4.0


def test_a_service_whose_process_dies_is_reported_once(tmp_path, caplog):
  sink, _ = _open(tmp_path, ends_in='write')
  sink.write([_record(1)])
  _wait_for(lambda: sink._process and sink._process.poll() is not None)
  for step in range(5):
    sink.write([_record(step)])
  _wait_for(lambda: sink.dropped)
  sink.close()
  (error,) = _errors(caplog)
  assert 'has ended' in error.getMessage()


def test_a_killed_run_leaves_no_process_of_a_service(tmp_path):
  code = f"""
import sys, time
from t5wild import run_dir
from t5wild.trainer import service_sink
from tests.trainer import services_of_tests
sink = service_sink.ServiceSink(
    services_of_tests.Notebook(path={str(tmp_path / 'notes')!r}),
    run_dir.RunDir({str(tmp_path / 'run')!r}))
sink.write_text(1, 'a', 'b')
while sink._process is None: time.sleep(0.01)
print(sink._process.pid, flush=True)
time.sleep(100)
"""
  root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
  run = subprocess.Popen(
      [sys.executable, '-c', code], stdout=subprocess.PIPE, text=True, cwd=root
  )
  pid = int(run.stdout.readline())
  _wait_for((tmp_path / 'notes').exists)
  run.send_signal(signal.SIGKILL)
  run.wait()
  # Nothing of a zombie but its number is left.
  commands = pathlib.Path(f'/proc/{pid}/cmdline')
  _wait_for(lambda: not commands.exists() or not commands.read_bytes())
  assert _read(tmp_path / 'notes')[-1] == 'closed'


def test_what_is_no_service_is_refused():
  with pytest.raises(service_lib.BadServiceError, match='WandbSink'):
    service_lib.described(print)


def test_a_client_that_is_not_installed_is_refused_with_its_pip_line(
    tmp_path, monkeypatch
):
  # A folder of that name in the working directory is no package.
  (tmp_path / 'no_such_client').mkdir()
  monkeypatch.syspath_prepend(tmp_path)
  with pytest.raises(service_lib.BadServiceError) as error:
    service_lib.require('no_such_client', extra='wandb', of='WandbSink')
  assert "pip install 't5wild[wandb]'" in str(error.value)
