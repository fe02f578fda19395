# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What befalls a run before its first step, and when its time is up."""

import signal
import sys
import time

import pytest

from t5wild import exit_codes
from tests.faults import supervised

pytestmark = [pytest.mark.slow, pytest.mark.multiprocess]


def test_a_process_killed_while_it_compiles_costs_no_step(
    start, undisturbed, tmp_path, capsys
):
  # A cache of its own: what is compiled already would be read in no time.
  run = start(extra={'JAX_COMPILATION_CACHE_DIR': str(tmp_path / 'cache')})
  while run.sign(1).phase not in ('init', 'compile'):
    assert run.sign(1).step == 0
    time.sleep(0.02)
  fault = run.send(1, signal.SIGKILL)
  assert run.wait() == 0, run.log.read_text()
  assert run.exits() == ['killed', 'done']
  assert supervised.losses(run.folder) == undisturbed
  supervised.tell(capsys, 'kill -9 while it compiles', run, fault)


def test_two_that_lower_another_program_are_told_its_first_line(
    start, tmp_path
):
  """Gin, code and versions are the same; an environment variable is not."""
  wrapper = tmp_path / 'wrapper.sh'
  wrapper.write_text(
      'case "$*" in *--process_index=1*) export ODD=1;; esac\n'
      f'shift; exec {sys.executable} -m t5wild.cli "$@"\n'
  )
  run = start(first=['bash', str(wrapper)], recipe='programs.gin')
  assert run.wait() == exit_codes.BAD_CONFIG.code, run.log.read_text()
  assert run.exits() == ['user_error']
  told = run.log.read_text()
  assert 'Processes [1] lowered another program of the training step' in told
  assert 'on process 0: ' in told and 'on process 1: ' in told
  assert '2.000000e-02' in told or '0.02' in told
  assert not supervised.losses(run.folder)


def test_before_slurms_time_is_up_a_run_saves_and_the_next_job_goes_on(
    start, undisturbed
):
  stop, job = 20, 65
  run = start(
      TRAIN_STEPS=1_000_000,
      flags=[f'--stop_seconds={stop}'],
      extra={'SLURM_JOB_END_TIME': str(int(time.time()) + job)},
  )
  began = time.time()
  assert run.wait() == exit_codes.PREEMPTED.code, run.log.read_text()
  assert time.time() - began < job
  assert run.exits() == ['preempted']
  losses = supervised.losses(run.folder)
  stopped_at = max(losses)
  assert (run.folder / f'checkpoint_{stopped_at}').is_dir()
  assert list(losses) == list(range(1, stopped_at + 1))
  assert all(losses[step] == loss for step, loss in undisturbed.items())
  again = supervised.SupervisedRun(run.folder, TRAIN_STEPS=stopped_at + 5)
  try:
    assert again.wait() == 0
  finally:
    again.close()
  assert list(supervised.losses(run.folder)) == list(range(1, stopped_at + 6))
