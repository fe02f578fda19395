# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A stop that is asked for, by the scheduler or by a person."""

import os
import signal
import subprocess
import sys

import pytest

from t5wild.trainer import preemption
from tests import multiprocess

_TWICE = """
import os, signal
from t5wild.trainer import preemption
signal.signal(signal.SIGINT, signal.default_int_handler)
with preemption.StopSignal() as stop:
  os.kill(os.getpid(), signal.SIGINT)
  print('asked', stop.reached(1), flush=True)
  os.kill(os.getpid(), signal.SIGINT)
print('still here')
"""
_ONE_OF_TWO = """
import os, signal, time
import jax
from t5wild.partitioning import distributed
from t5wild.trainer import preemption
distributed.start()
signal.signal(signal.SIGINT, signal.default_int_handler)
with preemption.StopSignal() as stop:
  step = 1
  while not stop.reached(step):
    if step == 3 and jax.process_index() == 1:
      os.kill(os.getpid(), signal.SIGINT)
    step += 1
    time.sleep(0.05)
print('stopped', step, stop.by_keyboard)
"""


@pytest.fixture(autouse=True)
def _as_at_a_terminal():
  """A test run in the background inherits an ignored Ctrl-C."""
  previous = signal.signal(signal.SIGINT, signal.default_int_handler)
  yield
  signal.signal(signal.SIGINT, previous)


@pytest.mark.parametrize(
    ('number', 'by_keyboard'), [(signal.SIGTERM, False), (signal.SIGINT, True)]
)
def test_both_signals_ask_for_a_stop_and_are_given_back(number, by_keyboard):
  before = signal.getsignal(number)
  with preemption.StopSignal() as stop:
    assert not stop.reached(1)
    os.kill(os.getpid(), number)
    assert stop.reached(2)
    assert stop.by_keyboard is by_keyboard
  assert signal.getsignal(number) == before


def test_who_ignores_ctrl_c_goes_on_ignoring_it():
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  with preemption.StopSignal() as stop:
    os.kill(os.getpid(), signal.SIGINT)
    assert not stop.reached(1)


def test_the_second_ctrl_c_ends_at_once_and_without_a_traceback():
  done = subprocess.run(
      [sys.executable, '-c', _TWICE],
      env=multiprocess.process_environment(devices_per_process=1),
      capture_output=True, text=True, check=False, timeout=120,
  )  # fmt: skip
  assert done.stdout == 'asked True\n'
  assert done.returncode == -signal.SIGINT
  assert 'Traceback' not in done.stderr
  assert 'once more leaves at once' in done.stderr


@pytest.mark.slow
@pytest.mark.multiprocess
def test_a_ctrl_c_of_one_process_stops_all_after_the_same_step():
  first, second = multiprocess.run_processes(_ONE_OF_TWO, num_processes=2)
  step = int(second.stdout.split()[1])
  assert step > 3
  assert second.stdout == f'stopped {step} True\n'
  assert first.stdout == f'stopped {step} False\n'
