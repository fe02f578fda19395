# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Two processes, harmed from outside: found out, named, survived, same bits.

Each fault is also shown to go unseen with its detector off.
"""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from t5wild import exit_codes
from tests import multiprocess
from tests.faults import supervised

pytestmark = [pytest.mark.slow, pytest.mark.multiprocess]
# watchdog.Watchdog.min_seconds of the recipe.
_HANG_SECONDS = 8.0


@pytest.mark.parametrize('process', [1, 0])
def test_kill_9_of_one_is_seen_at_once_and_all_go_on_with_the_same_bits(
    process, start, undisturbed, capsys
):
  run = start()
  run.wait_for_step()
  fault = run.send(process, signal.SIGKILL)
  assert run.wait() == 0, run.log.read_text()
  assert run.exits() == ['killed', 'done']
  assert supervised.losses(run.folder) == undisturbed
  seconds = supervised.tell(capsys, f'kill -9 of process {process}', run, fault)
  assert seconds.detected < 2


def test_without_a_supervisor_a_killed_process_leaves_its_peer_waiting(
    tmp_path,
):
  port = multiprocess.free_port()
  command = supervised.train_command(tmp_path / 'run', {})
  processes = [
      subprocess.Popen(
          [
              sys.executable, '-m', 't5wild.cli', *command[1:],
              f'--coordinator_address=127.0.0.1:{port}', '--process_count=2',
              f'--process_index={index}',
          ],
          env=supervised.environment(),
          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
      )
      for index in (0, 1)
  ]  # fmt: skip
  try:
    while supervised.STEP not in supervised.losses(tmp_path / 'run'):
      assert processes[0].poll() is None
      time.sleep(0.05)
    processes[1].kill()
    time.sleep(2)  # with a supervisor it is seen and torn down by now
    assert processes[0].poll() is None
  finally:
    for process in processes:
      process.kill()
      process.wait()


def test_a_stopped_process_is_a_hang_within_its_bound_and_is_named(
    start, undisturbed, capsys
):
  run = start()
  run.wait_for_step()
  pid = run.sign(1).pid
  fault = run.send(1, signal.SIGSTOP)
  assert run.wait() == 0, run.log.read_text()
  assert run.exits() == ['hang', 'done']
  assert supervised.losses(run.folder) == undisturbed
  (hang,) = [e for e in run.events() if e.name == 'watchdog/hang']
  assert f'process 1 on {socket.gethostname()} (pid {pid})' in hang.text
  assert 'no sign of life' in hang.text
  assert f'(pid {pid}) gave no sign of life' in run.log.read_text()
  (end,) = [e for e in run.events() if e.name == 'supervisor/exit/hang']
  assert f'(pid {pid}) gave no sign of life' in end.text
  stacks = (run.folder / 'stacks' / 'process_0.txt').read_text()
  assert 'loop.py' in stacks
  seconds = supervised.tell(capsys, 'SIGSTOP of process 1', run, fault)
  # Two steps are still handed to the device before the loop waits.
  assert seconds.detected < _HANG_SECONDS + 3


def test_with_the_watchdog_off_a_stopped_process_stops_the_run_for_good(start):
  run = start(watchdog__Watchdog__multiple='None')
  run.wait_for_step()
  run.send(1, signal.SIGSTOP)
  time.sleep(2 * _HANG_SECONDS)
  assert not [e for e in run.events() if e.name == 'supervisor/detected']
  run.kill()


def test_a_silent_process_is_a_hang_for_the_supervisor_itself(
    start, undisturbed, capsys
):
  run = start(
      watchdog__Watchdog__multiple='None', flags=['--silent_seconds=4']
  )
  run.wait_for_step()
  fault = run.send(0, signal.SIGSTOP)
  assert run.wait() == 0, run.log.read_text()
  assert run.exits() == ['hang', 'done']
  assert supervised.losses(run.folder) == undisturbed
  seconds = supervised.tell(
      capsys, 'SIGSTOP of process 0, seen by the supervisor', run, fault
  )
  assert seconds.detected < 4 + 2


def test_a_request_to_stop_saves_the_step_under_way_and_loses_none(
    start, undisturbed
):
  run = start()
  run.wait_for_step()
  run.process.send_signal(signal.SIGUSR1)
  assert run.wait() == exit_codes.PREEMPTED.code, run.log.read_text()
  assert run.exits() == ['preempted']
  stopped_at = max(supervised.losses(run.folder))
  assert (run.folder / f'checkpoint_{stopped_at}').is_dir()
  again = supervised.SupervisedRun(run.folder)
  try:
    assert again.wait() == 0
  finally:
    again.close()
  assert supervised.losses(run.folder) == undisturbed


def test_all_stop_with_one_and_a_kill_in_the_restore_that_follows_costs_no_step(
    start, undisturbed
):
  run = start()
  run.wait_for_step()
  run.send(1, signal.SIGTERM)
  # Its first sign of life comes before the state is read.
  sign = run.sign(1, attempt=2)
  os.kill(sign.pid, signal.SIGKILL)
  assert run.wait() == 0, run.log.read_text()
  assert run.exits() == ['preempted', 'killed', 'done']
  assert supervised.losses(run.folder) == undisturbed
  assert sign.step == sign.first_step


def test_a_killed_supervisor_leaves_no_orphans_and_no_step_is_lost(
    start, undisturbed, capsys
):
  run = start()
  run.wait_for_step()
  pids = [run.sign(process).pid for process in (0, 1)]
  run.process.kill()
  run.process.wait()
  fault = time.time()
  while any(map(_is_alive, pids)):
    assert time.time() - fault < 60
    time.sleep(0.05)
  left = time.time() - fault
  with capsys.disabled():
    sys.stdout.write(f'\nsupervisor killed, all left after {left:.1f} s\n')
  stopped_at = max(supervised.losses(run.folder))
  assert (run.folder / f'checkpoint_{stopped_at}').is_dir()
  again = supervised.SupervisedRun(run.folder)
  try:
    assert again.wait() == 0
  finally:
    again.close()
  assert supervised.losses(run.folder) == undisturbed


def _is_alive(pid: int) -> bool:
  try:
    os.kill(pid, 0)
  except ProcessLookupError:
    return False
  return True


def test_two_hosts_with_a_supervisor_each_find_together_again(
    start, undisturbed, tmp_path
):
  """Both on this machine; they share MODEL_DIR and the coordinator's port."""
  address = f'127.0.0.1:{multiprocess.free_port()}'
  hosts = [
      start(
          processes=1,
          MODEL_DIR=tmp_path / 'shared',
          extra={
              'JAX_COORDINATOR_ADDRESS': address,
              'JAX_PROCESS_COUNT': '2',
              'JAX_PROCESS_INDEX': str(index),
          },
      )
      for index in (0, 1)
  ]
  while supervised.STEP not in supervised.losses(tmp_path / 'shared'):
    assert hosts[0].process.poll() is None, hosts[0].log.read_text()
    time.sleep(0.02)
  hosts[1].send(1, signal.SIGKILL)
  for host in hosts:
    assert host.wait() == 0, host.log.read_text()
  assert hosts[1].exits() == ['killed', 'done']
  assert hosts[0].exits()[-1] == 'done'
  assert set(hosts[0].exits()) <= {'lost_peer', 'hang', 'done'}
  assert supervised.losses(tmp_path / 'shared') == undisturbed


def test_a_wrong_recipe_is_told_and_not_started_again(start):
  run = start(network__T5Config__emb_dmi=32)
  assert run.wait() == exit_codes.BAD_CONFIG.code
  assert run.exits() == ['user_error']
  told = run.log.read_text()
  assert 'NOT RESTARTED' in told and 'emb_dmi' in told


def test_two_that_differ_are_told_the_difference_in_seconds(start, tmp_path):
  wrapper = tmp_path / 'wrapper.sh'
  wrapper.write_text(
      'for flag in "$@"; do case "$flag" in --process_index=1) '
      'extra=--gin.network.T5Config.dropout_rate=0.5;; esac; done\n'
      f'shift; exec {sys.executable} -m t5wild.cli "$@" $extra\n'
  )
  run = start(first=['bash', str(wrapper)])
  assert run.wait() == exit_codes.BAD_CONFIG.code, run.log.read_text()
  assert run.exits() == ['user_error']
  told = run.log.read_text()
  assert 'Processes [1] differ from process 0 in config' in told
  assert '+network.T5Config.dropout_rate = 0.5' in told
  assert not supervised.losses(run.folder)


def test_a_run_that_is_not_finite_is_not_started_again(start):
  run = start(
      optimizers__create_learning_rate_scheduler__base_learning_rate=1e30
  )
  assert run.wait() == exit_codes.NON_FINITE.code
  assert run.exits() == ['non_finite']
  assert 'NOT RESTARTED' in run.log.read_text()


def test_the_same_crash_at_the_same_step_is_a_loop_with_a_verdict(
    start, capsys
):
  run = start(
      flags=['--first_delay_seconds=0'],
      train_script__train__train_dataset_cfg='@broken_data.BrokenConfig()',
  )
  assert run.wait() == exit_codes.FAILED.code, run.log.read_text()
  assert run.exits() == ['unknown'] * 3
  told = run.log.read_text()
  assert 'CRASH LOOP: 3 times' in told
  assert 'RuntimeError: the disk array of shard 7 is gone' in told


def test_a_taken_port_is_named_and_the_next_attempt_takes_another(
    start, undisturbed, capsys
):
  with socket.socket() as squatter:
    squatter.bind(('127.0.0.1', 0))
    squatter.listen()
    run = start(flags=[f'--coordinator_port={squatter.getsockname()[1]}'])
    fault = time.time()
    assert run.wait() == 0, run.log.read_text()
  assert run.exits() == ['port', 'done']
  assert supervised.losses(run.folder) == undisturbed
  supervised.tell(capsys, 'port taken', run, fault)
