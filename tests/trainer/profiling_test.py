# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Traces: of the steps asked for, by number or by signal."""

import logging
import os
import pathlib
import signal
import sys

import jax
import jax.numpy as jnp
import pytest

from t5wild.trainer import profiling


@pytest.fixture
def calls(monkeypatch):
  calls = []
  monkeypatch.setattr(
      jax.profiler, 'start_trace', lambda path, **_: calls.append('start')
  )
  monkeypatch.setattr(jax.profiler, 'stop_trace', lambda: calls.append('stop'))
  return calls


def _steps_traced(profiler, calls, steps):
  traced = []
  for step in steps:
    profiler.at_step(step)
    if profiler.tracing:
      traced.append(step)
  profiler.close()
  return traced


def test_the_steps_named_are_traced_and_no_others(calls):
  profiler = profiling.StepProfiler('/x', start_step=3, num_steps=2)
  assert _steps_traced(profiler, calls, range(10)) == [3, 4]
  assert calls == ['start', 'stop']


def test_sigusr2_traces_from_the_next_step_and_is_given_back(calls):
  before = signal.getsignal(signal.SIGUSR2)
  profiler = profiling.StepProfiler('/x', num_steps=2)
  profiler.at_step(0)
  os.kill(os.getpid(), signal.SIGUSR2)
  assert _steps_traced(profiler, calls, range(1, 6)) == [1, 2]
  assert signal.getsignal(signal.SIGUSR2) == before


def test_a_run_that_ends_in_a_trace_still_writes_it(calls):
  profiler = profiling.StepProfiler('/x', start_step=3, num_steps=100)
  assert _steps_traced(profiler, calls, range(5)) == [3, 4]
  assert calls == ['start', 'stop']


def test_without_being_asked_nothing_is_traced(calls):
  profiler = profiling.StepProfiler('/x')
  assert _steps_traced(profiler, calls, range(5)) == []
  assert calls == []


@pytest.mark.parametrize('bad', [{'num_steps': 0}, {'start_step': -1}])
def test_a_trace_of_no_step_is_refused(bad):
  with pytest.raises(ValueError, match='expected start_step >= 0'):
    profiling.StepProfiler('/x', on_signal=False, **bad)


def test_a_trace_beside_another_is_told_and_no_step_fails(tmp_path, caplog):
  profiler = profiling.StepProfiler(str(tmp_path), start_step=0, num_steps=1)
  with jax.profiler.trace(str(tmp_path / 'other')):
    profiler.at_step(0)
  assert not profiler.tracing
  assert 'Only one profile may be run' in caplog.text
  profiler.close()


def test_a_trace_that_cannot_be_written_is_told_and_the_next_one_is(
    tmp_path, caplog
):
  (tmp_path / 'plugins').write_text('no folder')
  profiler = profiling.StepProfiler(str(tmp_path), start_step=0, num_steps=1)
  profiler.at_step(0)
  profiler.at_step(1)
  assert f'could not be written to {tmp_path}' in caplog.text
  (tmp_path / 'plugins').unlink()
  caplog.set_level(logging.INFO)
  profiler.request()
  profiler.at_step(2)
  profiler.at_step(3)
  profiler.close()
  assert f'Profiler trace in {tmp_path}' in caplog.text
  assert any(tmp_path.rglob('*.xplane.pb'))


def test_frames_of_python_are_traced_only_where_that_is_safe(monkeypatch):
  options = []
  monkeypatch.setattr(
      jax.profiler, 'start_trace',
      lambda path, profiler_options: options.append(profiler_options),
  )  # fmt: skip
  monkeypatch.setattr(jax.profiler, 'stop_trace', lambda: None)
  for version in ((3, 11), (3, 12)):
    monkeypatch.setattr(sys, 'version_info', version)
    profiler = profiling.StepProfiler('/x', start_step=0)
    profiler.at_step(0)
    profiler.close()
  assert [o.python_tracer_level for o in options] == [0, 1]


@pytest.mark.slow
def test_a_trace_is_left_on_disk(tmp_path):
  profiler = profiling.StepProfiler(str(tmp_path), start_step=0, num_steps=1)
  profiler.at_step(0)
  result = jnp.ones(8) @ jnp.ones(8)
  profiler.at_step(1, block_on=result)
  profiler.close()
  assert any(pathlib.Path(tmp_path).rglob('*.xplane.pb'))
