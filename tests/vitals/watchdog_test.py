# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The watchdog: it ends what does not move, and nothing else."""

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from t5wild import exit_codes
from t5wild import run_dir as run_dir_lib
from t5wild.vitals import goodput
from t5wild.vitals import heartbeats
from t5wild.vitals import records
from t5wild.vitals import supervised
from t5wild.vitals import time_ledgers
from t5wild.vitals import watchdog as watchdog_lib


@pytest.fixture(autouse=True)
def quick(monkeypatch):
  monkeypatch.setattr(watchdog_lib, '_POLL_SECONDS', 0.02)
  monkeypatch.setattr(watchdog_lib, '_SIGN_SECONDS', 0.02)
  monkeypatch.setattr(watchdog_lib, '_OTHERS_SECONDS', 0.02)
  monkeypatch.delenv(supervised.VARIABLE, raising=False)


class _Watched:
  """A watchdog whose process survives being ended."""

  def __init__(self, folder, **arguments):
    arguments = {'multiple': 2.0, 'min_seconds': 0.3, **arguments}
    self.ledger = goodput.Ledger()
    self.run_dir = run_dir_lib.RunDir(str(folder))
    self.watchdog = watchdog_lib.Watchdog(
        self.run_dir, ledger=self.ledger, **arguments
    )
    self.codes = []
    self.ended = threading.Event()
    self.watchdog.on_hang = self._on_hang

  def _on_hang(self, code):
    self.codes.append(code)
    self.ended.set()
    self.watchdog._end.set()
    self.watchdog._give_last.set()  # a real one would not come back

  def steps(self, number, *, seconds=0.01):
    for step in range(1, number + 1):
      with self.ledger.span('step'):
        time.sleep(seconds)
      self.watchdog.beat(step)


def test_a_loop_that_moves_is_left_alone(tmp_path):
  watched = _Watched(tmp_path)
  with watched.watchdog:
    watched.steps(60)
  assert not watched.codes


def test_a_step_that_does_not_end_is_the_end_and_says_where(tmp_path, capfd):
  watched = _Watched(tmp_path)
  start = time.monotonic()
  watched.watchdog.__enter__()
  watched.steps(5)
  with watched.ledger.span('step'):
    assert watched.ended.wait(10)
  assert time.monotonic() - start < 5
  assert watched.codes == [exit_codes.HUNG.code]
  told = capfd.readouterr().err
  assert "process 0 hangs in 'step' after step 5" in told
  assert 'watchdog.Watchdog.multiple' in told
  stacks = (tmp_path / 'stacks' / 'process_0.txt').read_text()
  assert 'watchdog_test.py' in stacks and 'MainThread' in stacks
  (event,) = records.read_records(tmp_path / 'events.jsonl')
  assert event.name == 'watchdog/hang' and event.step == 5
  assert event.value >= 0.3


def test_native_stacks_follow_where_py_spy_is_installed(
    tmp_path, monkeypatch
):
  spy = tmp_path / 'bin' / 'py-spy'
  spy.parent.mkdir()
  spy.write_text('#!/bin/sh\necho "native frames: $@"\n')
  spy.chmod(0o755)
  monkeypatch.setenv('PATH', str(spy.parent), prepend=os.pathsep)
  watched = _Watched(tmp_path)
  watched.watchdog.__enter__()
  watched.steps(5)
  with watched.ledger.span('step'):
    assert watched.ended.wait(10)
  stacks = (tmp_path / 'stacks' / 'process_0.txt').read_text()
  assert f'native frames: dump --native --pid {os.getpid()}' in stacks


def test_with_the_detector_off_a_hang_goes_on(tmp_path):
  watched = _Watched(tmp_path, multiple=None)
  with watched.watchdog:
    watched.steps(5)
    with watched.ledger.span('step'):
      assert not watched.ended.wait(1.5)


def test_a_long_evaluation_is_no_hang_of_steps(tmp_path):
  watched = _Watched(tmp_path)
  with watched.watchdog:
    watched.steps(5)
    with watched.ledger.span('evaluate'):
      time.sleep(0.8)
    watched.steps(5)
  assert not watched.codes


def test_an_evaluation_has_a_bound_of_its_own(tmp_path):
  watched = _Watched(tmp_path, phase_seconds={'evaluate': 0.2})
  watched.watchdog.__enter__()
  watched.steps(5)
  with watched.ledger.span('evaluate'):
    assert watched.ended.wait(10)
  (event,) = records.read_records(tmp_path / 'events.jsonl')
  assert "'evaluate'" in event.text


def test_time_lost_in_a_hang_is_booked_as_hung(tmp_path):
  watched = _Watched(tmp_path)
  watched.watchdog.__enter__()
  watched.steps(5)
  with watched.ledger.span('step'):
    assert watched.ended.wait(10)
  (books,) = time_ledgers.read_all(watched.run_dir)
  assert books.ended == time_ledgers.HUNG
  assert books.seconds['hung'] >= 0.3
  assert books.seconds['step'] < 0.3


def test_a_laggard_is_named_by_its_counter(tmp_path):
  watched = _Watched(tmp_path)
  run_dir = watched.run_dir
  mine = watched.watchdog._look()
  other = dataclasses.replace(
      mine, process=1, host='node7', pid=17, step=3,
      seconds=time.time() + 60,
  )  # fmt: skip
  heartbeats.write(run_dir, other)
  watched.watchdog.__enter__()
  watched.steps(5)
  with watched.ledger.span('step'):
    assert watched.ended.wait(10)
  (event,) = records.read_records(tmp_path / 'events.jsonl')
  assert 'process 1 on node7 (pid 17) is behind' in event.text
  assert 'after step 3, others after step 5' in event.text


def test_the_stacks_of_the_others_are_written_too(tmp_path):
  first = _Watched(tmp_path, process=0)
  second = _Watched(tmp_path, process=1, multiple=None)
  with second.watchdog:
    first.watchdog.__enter__()
    first.steps(5)
    with first.ledger.span('step'):
      assert first.ended.wait(10)
    deadline = time.monotonic() + 5
    path = tmp_path / 'stacks' / 'process_1.txt'
    while not path.exists() and time.monotonic() < deadline:
      time.sleep(0.02)
  assert 'because another one hangs' in path.read_text()


@pytest.mark.slow
def test_a_stop_is_no_hang_and_told_and_booked_as_what_it_was(tmp_path):
  code = f"""
import time
from t5wild import run_dir
from t5wild.vitals import goodput, stalls, watchdog
watchdog._POLL_SECONDS, stalls.LATE_SECONDS = 0.05, 1.0
watchdog._SIGN_SECONDS = 0.05
ledger = goodput.Ledger()
with watchdog.Watchdog(
    run_dir.RunDir({str(tmp_path)!r}), ledger=ledger, min_seconds=1.5
) as dog:
  for step in range(1, 101):
    with ledger.span('step'):
      time.sleep(0.01)
    with ledger.span('data_wait'):
      if step == 20:
        print('up', flush=True)
        time.sleep(0.5)
    dog.beat(step)
"""
  process = subprocess.Popen(
      [sys.executable, '-c', code], stdout=subprocess.PIPE, text=True
  )
  assert process.stdout.readline() == 'up\n'
  process.send_signal(signal.SIGSTOP)
  time.sleep(3)
  process.send_signal(signal.SIGCONT)
  assert process.wait(30) == 0
  (event,) = records.read_records(tmp_path / 'events.jsonl')
  assert event.name == 'watchdog/stalled' and 2.5 < event.value < 20
  assert f'process 0 on {socket.gethostname()}' in event.text
  assert "stood still" in event.text and "'data_wait'" in event.text
  (books,) = time_ledgers.read_all(run_dir_lib.RunDir(str(tmp_path)))
  assert books.seconds['stalled'] == pytest.approx(event.value, abs=0.2)
  assert books.seconds['data_wait'] < 1.5
  assert sum(books.seconds.values()) == pytest.approx(
      books.end - books.start, abs=0.01
  )


@pytest.mark.parametrize('name', ['pdb', '_pydevd_bundle.pydevd_frame'])
def test_a_person_in_a_debugger_is_no_hang(name, tmp_path):
  watched = _Watched(tmp_path)
  namespace = {'__name__': name, 'wait': watched.ended.wait}
  exec('def interaction(): return wait(1.0)', namespace)
  with watched.watchdog:
    watched.steps(5)
    assert not namespace['interaction']()
    watched.watchdog.beat(6)


def test_the_last_sign_tells_the_last_step(tmp_path):
  watched = _Watched(tmp_path)
  watched.watchdog.begin(40)
  with watched.watchdog:
    watched.watchdog.beat(41)
  (sign,) = heartbeats.read_all(watched.run_dir)
  assert (sign.first_step, sign.step, sign.pid) == (40, 41, os.getpid())
  (books,) = time_ledgers.read_all(watched.run_dir)
  assert (books.first_step, books.step) == (40, 41)


def test_steps_that_are_made_again_are_in_the_books(tmp_path):
  watched = _Watched(tmp_path)
  watched.watchdog.begin(10)
  with watched.watchdog:
    for step in (11, 12, 13, 9, 10, 11, 10):  # back to 8, and to 9
      watched.watchdog.beat(step)
  (books,) = time_ledgers.read_all(watched.run_dir)
  assert (books.rewound_steps, books.rewound_to) == (5 + 2, 8)
  assert books.made_steps == 7 and books.lowest_step == 8


def test_a_run_without_a_folder_yet_is_left_without(tmp_path):
  watched = _Watched(tmp_path / 'run')
  with watched.watchdog:
    time.sleep(0.1)
  assert not (tmp_path / 'run').exists()


def test_a_bucket_gets_no_files_and_hangs_are_seen_all_the_same(tmp_path,
                                                                monkeypatch):
  monkeypatch.chdir(tmp_path)
  watched = _Watched('gs://bucket/run')
  watched.watchdog.__enter__()
  watched.steps(5)
  with watched.ledger.span('step'):
    assert watched.ended.wait(10)
  assert not os.listdir(tmp_path)


def test_a_file_system_that_hangs_does_not_keep_the_watchdog(
    tmp_path, monkeypatch
):
  monkeypatch.setattr(watchdog_lib, '_LAST_WORDS_SECONDS', 0.2)
  stuck = threading.Event()
  monkeypatch.setattr(
      watchdog_lib.heartbeats, 'replace', lambda *_, **__: stuck.wait(30)
  )
  watched = _Watched(tmp_path)
  watched.watchdog.__enter__()
  watched.steps(5)
  with watched.ledger.span('step'):
    assert watched.ended.wait(10)
  stuck.set()


def test_without_its_supervisor_a_process_asks_itself_to_stop(
    tmp_path, monkeypatch
):
  gone = subprocess.Popen(['true'])
  gone.wait()
  told = supervised.Supervised(
      attempt=3, start=time.time(), supervisor=gone.pid,
      host=socket.gethostname(), label='h', folder=str(tmp_path),
  )
  monkeypatch.setenv(*next(iter(told.to_environment().items())))
  asked = threading.Event()
  previous = signal.signal(signal.SIGTERM, lambda *_: asked.set())
  try:
    with _Watched('gs://bucket/run').watchdog:
      # Not one long sleep: it would be waited for, signal or not.
      deadline = time.monotonic() + 10
      while not asked.is_set() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert asked.is_set()
  finally:
    signal.signal(signal.SIGTERM, previous)
  (sign,) = heartbeats.read_all(run_dir_lib.RunDir(str(tmp_path)))
  assert sign.attempt == 3


def test_book_keeping_costs_less_than_a_fifth_of_a_millisecond_a_step(
    tmp_path, monkeypatch
):
  monkeypatch.undo()
  monkeypatch.delenv(supervised.VARIABLE, raising=False)
  watched = _Watched(tmp_path, min_seconds=60.0)
  start = time.process_time()
  with watched.watchdog:
    for step in range(1, 10_001):
      with watched.ledger.span('data_wait'):
        pass
      with watched.ledger.span('step'):
        pass
      watched.watchdog.beat(step)
  seconds = (time.process_time() - start) / 10_000
  assert seconds < 2e-4, f'{seconds * 1e6:.1f} us'
