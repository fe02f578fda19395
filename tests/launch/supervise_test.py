# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The supervisor with commands of milliseconds: shells and small scripts."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from t5wild import exit_codes
from t5wild.launch import events
from t5wild.launch import local_group
from t5wild.launch import supervise
from t5wild.vitals import records

_QUICK = ['--first_delay_seconds=0', '--grace_seconds=0.2']


@pytest.fixture(autouse=True)
def own_ledger(tmp_path, monkeypatch):
  monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path / 'state'))


def _supervise(tmp_path, script, *flags) -> int:
  return supervise.main([
      *_QUICK, *flags, f'--run_dir={tmp_path / "run"}', '--', 'bash', '-c',
      script,
  ])  # fmt: skip


def _events(tmp_path) -> list[str]:
  found = records.read_records(tmp_path / 'run' / 'events.jsonl')
  return [record.name.removeprefix('supervisor/') for record in found]


def _heed_all_signals() -> None:
  """As in a terminal: tests started in the background may ignore some."""
  for number in (signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)


def _start(tmp_path, script, *flags) -> subprocess.Popen:
  return subprocess.Popen(
      [
          sys.executable, '-m', 't5wild.cli', 'supervise', *_QUICK, *flags,
          f'--run_dir={tmp_path / "run"}', '--', 'bash', '-c', script,
      ],
      stderr=subprocess.PIPE, text=True, preexec_fn=_heed_all_signals,
  )  # fmt: skip


def _sign_of_life(tmp_path) -> str:
  """A shell command that gives one, of the first attempt."""
  folder = f'{tmp_path}/run/heartbeats/{socket.gethostname()}'
  sign = json.dumps({
      'process': 0, 'host': 'h', 'pid': 1, 'attempt': 1, 'count': 1,
      'supervisor': os.getpid(), 'seconds': 0.0, 'first_step': 0, 'step': 7,
      'phase': 'step', 'phase_seconds': 0.0,
  })  # fmt: skip
  return f"mkdir -p {folder}; echo '{sign}' > {folder}/process_0.json"


@pytest.mark.parametrize(
    ('ended', 'age', 'code'),
    [('', 0, 1), ('failed', 0, 1), ('done', 0, 0), ('', 60, 0)],
)
def test_who_leaves_with_0_before_the_run_is_done_has_failed(
    ended, age, code, tmp_path, capfd
):
  sign = _sign_of_life(tmp_path).replace(
      '"seconds": 0.0', f'"ended": "{ended}", "seconds": {time.time() - age}', 1
  )
  assert _supervise(tmp_path, sign, '--max_restarts=0') == code
  told = capfd.readouterr().err
  assert ('at step 7, before the run was done' in told) == bool(code)


def _wait_for(path) -> None:
  deadline = time.monotonic() + 30
  while not path.exists():
    assert time.monotonic() < deadline
    time.sleep(0.01)


def test_a_command_that_works_is_run_once(tmp_path):
  assert _supervise(tmp_path, 'true') == 0
  assert _events(tmp_path) == ['attempt', 'exit/done', 'stopped']


def test_a_command_that_fails_once_is_started_again(tmp_path, capsys):
  script = f'test -e {tmp_path}/been && exit 0; touch {tmp_path}/been; exit 9'
  assert _supervise(tmp_path, script) == 0
  assert _events(tmp_path) == [
      'attempt', 'detected', 'exit/unknown', 'restart', 'attempt', 'exit/done',
      'stopped',
  ]  # fmt: skip


def test_a_users_mistake_is_told_and_not_repeated(tmp_path, capsys):
  assert _supervise(tmp_path, 'echo no such recipe >&2; exit 2') == 2
  assert _events(tmp_path).count('attempt') == 1
  shown = capsys.readouterr().err
  assert 'NOT RESTARTED' in shown and 'no such recipe' in shown
  (log,) = (tmp_path / 'run' / 'logs').iterdir()
  assert f'Its log: {log}' in shown


def test_a_crash_loop_ends_with_a_verdict_and_the_commands_code(
    tmp_path, capsys
):
  assert _supervise(tmp_path, 'echo it broke at $$; exit 1') == 1
  assert _events(tmp_path).count('attempt') == 3
  shown = capsys.readouterr().err
  assert 'CRASH LOOP: 3 times' in shown and 'it broke at' in shown


def test_attempts_are_numbered_on_over_supervisors(tmp_path):
  for _ in range(2):
    _supervise(tmp_path, 'true')
  run_dir = supervise._run_dir(str(tmp_path / 'run'), [])
  assert events.last_attempt(run_dir) == 2
  log = f'attempt_2.{socket.gethostname()}.process_0.log'
  assert (tmp_path / 'run' / 'logs' / log).exists()


def test_when_one_of_a_group_dies_all_are_started_anew_on_another_port(
    tmp_path,
):
  script = tmp_path / 'member.sh'
  script.write_text(
      f'echo "$@" >> {tmp_path}/flags\n'
      f'test -e {tmp_path}/been && exit 0\n'
      f'case "$3" in --process_index=1) touch {tmp_path}/been; kill -9 $$;; '
      'esac\nsleep 60\n'
  )
  start = time.monotonic()
  code = supervise.main([
      *_QUICK, '--processes=2', f'--run_dir={tmp_path / "run"}', '--', 'bash',
      str(script),
  ])  # fmt: skip
  assert code == 0
  assert time.monotonic() - start < 10
  assert 'exit/killed' in _events(tmp_path)
  flags = (tmp_path / 'flags').read_text().splitlines()
  assert len(flags) == 4
  assert len({line.split()[0] for line in flags}) == 2


def test_the_cause_is_told_though_who_lost_a_peer_left_before_it(tmp_path):
  script = tmp_path / 'member.sh'
  script.write_text(
      f'test -e {tmp_path}/been && exit 0\n'
      'case "$3" in --process_index=1) echo Socket closed; exit 1;; esac\n'
      f'sleep 0.6; touch {tmp_path}/been; echo Address already in use; exit 1\n'
  )
  code = supervise.main([
      *_QUICK, '--processes=2', f'--run_dir={tmp_path / "run"}', '--', 'bash',
      str(script),
  ])  # fmt: skip
  assert code == 0
  assert 'exit/port' in _events(tmp_path)


def test_with_no_grace_for_peers_a_group_waits_for_the_stuck_one(tmp_path):
  """The detector off: it is the group's end that sees the dead one."""
  script = tmp_path / 'member.sh'
  script.write_text(
      'case "$3" in --process_index=1) kill -9 $$;; esac\nsleep 1.5\n'
  )
  start = time.monotonic()
  supervise.main([
      '--grace_seconds=100', '--max_restarts=0', '--processes=2',
      f'--run_dir={tmp_path / "run"}', '--', 'bash', str(script),
  ])  # fmt: skip
  assert time.monotonic() - start > 1.4


@pytest.mark.parametrize(
    'number', [signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP]
)
def test_a_request_to_stop_is_passed_on_and_nothing_is_restarted(
    number, tmp_path
):
  script = (
      f'trap "touch {tmp_path}/saved; exit 75" TERM; touch {tmp_path}/up; '
      'while true; do sleep 0.05; done'
  )
  process = _start(tmp_path, script)
  _wait_for(tmp_path / 'up')
  process.send_signal(number)
  assert process.wait(30) == exit_codes.PREEMPTED.code
  assert (tmp_path / 'saved').exists()
  assert _events(tmp_path) == ['attempt', 'exit/preempted', 'stopped']


def test_a_request_to_stop_between_two_attempts_is_heard(tmp_path):
  process = _start(
      tmp_path, f'touch {tmp_path}/up$$; exit 9', '--first_delay_seconds=60',
      '--max_delay_seconds=60',
  )  # fmt: skip
  while len(list(tmp_path.glob('up*'))) < 2:
    assert process.poll() is None
    time.sleep(0.02)
  time.sleep(0.3)
  process.terminate()
  assert process.wait(30) == exit_codes.PREEMPTED.code


def test_a_supervisor_under_nohup_survives_its_terminal(tmp_path):
  process = subprocess.Popen(
      [
          'nohup', sys.executable, '-m', 't5wild.cli', 'supervise',
          f'--run_dir={tmp_path / "run"}', '--', 'bash', '-c',
          f'touch {tmp_path}/up; sleep 1',
      ],
      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
  )  # fmt: skip
  _wait_for(tmp_path / 'up')
  process.send_signal(signal.SIGHUP)
  assert process.wait(30) == 0


def test_who_does_not_stop_in_time_is_killed(tmp_path):
  script = f'trap "" TERM; touch {tmp_path}/up; while true; do sleep 0.05; done'
  process = _start(tmp_path, script, '--stop_seconds=0.5')
  _wait_for(tmp_path / 'up')
  process.terminate()
  told = process.communicate(timeout=30)[1]
  assert process.returncode == exit_codes.PREEMPTED.code
  assert 'not in good order: process 0: hang' in told
  assert 'newest checkpoint (none) are lost' in told


def test_what_running_again_would_not_mend_is_told_when_stopped_too(tmp_path):
  full = exit_codes.DISK_FULL.code
  script = f'trap "exit {full}" TERM; touch {tmp_path}/up; while :; do :; done'
  process = _start(tmp_path, script)
  _wait_for(tmp_path / 'up')
  process.terminate()
  told = process.communicate(timeout=30)[1]
  assert process.returncode == full and 'save_error' in told


def test_a_run_goes_on_when_who_read_its_lines_has_gone(tmp_path):
  script = f'[ -e {tmp_path}/was ] && exit 0; touch {tmp_path}/was; exit 79'
  process = _start(tmp_path, script)
  process.stderr.close()
  assert process.wait(30) == 0
  assert 'restart' in _events(tmp_path)


def test_before_the_wall_time_is_up_the_run_is_stopped_in_good_order(tmp_path):
  script = 'trap "exit 75" TERM; while true; do sleep 0.05; done'
  start = time.monotonic()
  code = _supervise(
      tmp_path, script, '--wall_time_seconds=3', '--stop_seconds=2'
  )
  assert code == exit_codes.PREEMPTED.code
  assert 1 <= time.monotonic() - start < 3


def test_a_second_supervisor_of_one_run_is_refused(tmp_path):
  process = _start(tmp_path, f'touch {tmp_path}/up; sleep 60')
  _wait_for(tmp_path / 'up')
  second = _start(tmp_path, 'true', '--stop_seconds=0.2')
  assert second.wait(30) == exit_codes.BAD_CONFIG.code
  told = second.stderr.read()
  assert f'pid {process.pid}' in told and 'another MODEL_DIR' in told
  process.send_signal(signal.SIGINT)
  assert process.wait(30) == 128 + signal.SIGINT


def test_tasks_of_one_host_have_a_supervisor_each(tmp_path, monkeypatch):
  first = None
  for rank in ('0', '1'):
    monkeypatch.setenv('SLURM_PROCID', rank)
    if first is None:
      first = _start(tmp_path, f'touch {tmp_path}/up; sleep 60')
      _wait_for(tmp_path / 'up')
  assert _supervise(tmp_path, 'true', '--stop_seconds=0.2') == 0
  logs = {path.name for path in (tmp_path / 'run' / 'logs').iterdir()}
  host = socket.gethostname()
  assert logs == {
      f'attempt_1.{host}.rank_0.process_0.log',
      f'attempt_2.{host}.rank_1.process_0.log',
  }
  first.terminate()
  first.wait(30)


def test_after_a_killed_supervisor_the_next_waits_for_what_it_left(tmp_path):
  first = _start(tmp_path, f'touch {tmp_path}/up; sleep 2; date > {tmp_path}/a')
  _wait_for(tmp_path / 'up')
  first.kill()
  first.wait()
  second = _start(tmp_path, f'test -e {tmp_path}/a')
  assert second.wait(30) == 0, second.stderr.read()


def test_secrets_stay_with_the_supervisor(tmp_path, monkeypatch, capsys):
  monkeypatch.setenv('T5WILD_WEBHOOK', 'http://127.0.0.1:9/hook_7731')
  assert _supervise(tmp_path, 'env') == 0
  for path in (tmp_path / 'run').rglob('*'):
    if path.is_file():
      assert 'hook_7731' not in path.read_text(errors='replace'), path
  assert 'hook_7731' not in capsys.readouterr().err


@pytest.mark.parametrize(
    ('flags', 'command', 'told'),
    [
        (['--run_dir=r'], [], 'no command'),
        ([], ['t5wild', 'train'], '--gin.MODEL_DIR=FOLDER'),
        (['--run_dir=gs://b/r'], ['true'], 'a bucket'),
        (['--run_dir=/dev/null/r'], ['true'], 'no folder'),
        (['--run_dir=r', '--processes=0'], ['true'], '--processes is 0'),
        (['--run_dir=r', '--crash_loop=1'], ['true'], '--crash_loop is 1'),
        (['--run_dir=r', '--grace_seconds=0'], ['true'], '--grace_seconds'),
        (['--run_dir=r', '--wall_time_seconds=60'], ['true'], '--stop_seconds'),
        (['--run_dir=r', '--coordinator_port=0'], ['true'], 'is 0, expected'),
    ],
)  # fmt: skip
def test_bad_flags_are_refused_before_anything_is_written(
    flags, command, told, tmp_path, monkeypatch, capsys
):
  monkeypatch.chdir(tmp_path)
  code = supervise.main([*flags, '--', *command])
  assert code == exit_codes.BAD_CONFIG.code
  error = capsys.readouterr().err
  assert told in error and 'expected' in error
  assert not os.listdir(tmp_path)


def test_the_run_directory_is_the_commands_model_dir(tmp_path):
  command = ['t5wild', 'train', f'--gin.MODEL_DIR={tmp_path}/a']
  assert supervise._run_dir(None, command).path == f'{tmp_path}/a'
  assert local_group.gives_signs(command)
  assert local_group.gives_signs(['python', '-m', 't5wild.train'])
  assert not local_group.gives_signs(['python', 'train.py'])
  assert not local_group.gives_signs(['srun', 't5wild', 'train'])


def test_a_command_that_is_not_there_is_a_mistake(tmp_path, capsys):
  code = supervise.main([
      f'--run_dir={tmp_path / "run"}', '--', 'no_such_command',
  ])  # fmt: skip
  assert code == exit_codes.BAD_CONFIG.code
  assert 'no_such_command' in capsys.readouterr().err


def test_still_training_is_told_as_often_as_asked(tmp_path):
  script = f'{_sign_of_life(tmp_path)}; sleep 1.8'
  alerts = tmp_path / 'alerts'
  _supervise(tmp_path, script, '--alive_seconds=0.5', f'--alert_file={alerts}')
  kinds = [json.loads(line)['kind'] for line in alerts.open()]
  assert kinds.count('alive') >= 2
  assert kinds[-1] == 'done'


def test_a_silent_process_is_hung_and_started_again(tmp_path):
  script = (
      f'test -e {tmp_path}/been && exit 0; touch {tmp_path}/been; '
      f'{_sign_of_life(tmp_path)}; sleep 60'
  )
  start = time.monotonic()
  assert _supervise(tmp_path, script, '--silent_seconds=1') == 0
  assert time.monotonic() - start < 10
  assert 'exit/hang' in _events(tmp_path)


def test_a_stopped_process_is_told_as_stopped_while_it_is(
    tmp_path, monkeypatch, capsys
):
  monkeypatch.setattr(local_group, '_LATE_SECONDS', 0.6)
  sign = _sign_of_life(tmp_path).replace('"pid": 1', '"pid": \'$$\'')
  # Somebody lets it go on, before its silence is too long.
  script = f'{sign}; (sleep 2; kill -CONT $$) & kill -STOP $$; exit 0'
  alerts = tmp_path / 'alerts'
  assert _supervise(tmp_path, script, f'--alert_file={alerts}') == 0
  assert _events(tmp_path) == [
      'attempt', 'late', 'exit/done', 'stopped'
  ]  # fmt: skip
  assert 'it is stopped (SIGSTOP' in capsys.readouterr().err
  kinds = [json.loads(line)['kind'] for line in alerts.open()]
  assert kinds == ['late', 'done']
