# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Supervisors of several hosts, all on this machine, with shells for training.
"""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from t5wild import exit_codes
from t5wild.launch import supervise
from t5wild.vitals import records

_SECONDS = 120
# Says how it was started, and runs until a file is there.
_SCRIPT = r"""
fold=${{T5WILD_SUPERVISED##*fold}}
attempt=${{T5WILD_SUPERVISED#*attempt}}
attempt=${{attempt%%,*}}
echo "${{attempt//[^0-9]}} ${{2#*=}}/${{1#*=}} ${{fold//[^0-9]}} ${{0#*=}}" \
  >> {folder}/seats
echo $$ > {folder}/pid_$HOST_NAME
trap 'exit 75' TERM
until test -e {folder}/done; do sleep 0.05; done
"""


class _Hosts:
  """Supervisors, by the names of their hosts."""

  def __init__(self, folder: pathlib.Path):
    self.folder = folder
    self.processes: dict[str, subprocess.Popen] = {}

  def start(self, name: str, *flags: str, hosts: int = 2) -> None:
    with (self.folder / f'{name}.log').open('ab') as log:
      self.processes[name] = subprocess.Popen(
          [
              sys.executable, '-m', 't5wild.cli', 'supervise',
              f'--hosts={hosts}', f'--host_name={name}',
              '--host_address=127.0.0.1', '--host_silent_seconds=8',
              '--host_gather_seconds=15', '--grace_seconds=0.2',
              '--first_delay_seconds=0', *flags,
              f'--run_dir={self.folder / "run"}', '--', 'bash', '-c',
              _SCRIPT.format(folder=self.folder),
          ],
          stdout=log, stderr=log,
          env={
              **os.environ, 'HOST_NAME': name, 'JAX_PLATFORMS': 'cpu',
              'XDG_STATE_HOME': str(self.folder / 'state'),
          },
      )  # fmt: skip

  def seats(self) -> list[str]:
    """`ATTEMPT INDEX/COUNT FOLD` of each process that was started."""
    path = self.folder / 'seats'
    rows = path.read_text().splitlines() if path.exists() else []
    return sorted(row.rsplit(' ', 1)[0] for row in rows)

  def coordinators(self, attempt: int) -> set[str]:
    """Where the processes of an attempt were told to find process 0."""
    rows = (self.folder / 'seats').read_text().splitlines()
    return {r.split()[-1] for r in rows if r.startswith(f'{attempt} ')}

  def wait_for(self, *seats: str) -> None:
    deadline = time.monotonic() + _SECONDS
    while not set(seats) <= set(self.seats()):
      assert time.monotonic() < deadline, (self.seats(), self.told())
      time.sleep(0.05)

  def lose(self, name: str) -> None:
    """As when the power goes: supervisor and processes at once."""
    self.processes[name].kill()
    pid = int((self.folder / f'pid_{name}').read_text())
    with contextlib.suppress(ProcessLookupError):
      os.killpg(pid, signal.SIGKILL)
    self.processes.pop(name).wait()

  def finish(self) -> dict[str, int]:
    (self.folder / 'done').touch()
    return self.wait()

  def wait(self) -> dict[str, int]:
    return {n: p.wait(_SECONDS) for n, p in self.processes.items()}

  def told(self) -> dict[str, str]:
    return {p.stem: p.read_text() for p in self.folder.glob('*.log')}

  def events(self, prefix: str) -> list[records.Record]:
    path = self.folder / 'run' / 'events.jsonl'
    return [
        e for e in records.read_records(path)
        if e.name.startswith(f'supervisor/{prefix}')
    ]  # fmt: skip

  def close(self) -> None:
    for name in list(self.processes):
      if self.processes[name].poll() is None:
        self.lose(name)


@pytest.fixture
def hosts(tmp_path):
  found = _Hosts(tmp_path)
  yield found
  found.close()


@pytest.mark.slow
def test_a_spare_takes_over_from_a_lost_host_and_without_one_fewer_go_on(
    hosts,
):
  alerts = hosts.folder / 'alerts'
  for name in ('a', 'b'):
    hosts.start(name, f'--alert_file={alerts}')
  hosts.wait_for('1 0/2 1', '1 1/2 1')
  assert len(hosts.coordinators(1)) == 1
  hosts.start('c')
  hosts.lose('b')
  hosts.wait_for('2 0/2 1', '2 1/2 1')
  assert 'c takes over from b' in hosts.told()['a']
  hosts.lose('c')
  hosts.wait_for('3 0/1 2')
  assert hosts.coordinators(3) != hosts.coordinators(2)
  assert hosts.finish() == {'a': 0}
  told = hosts.told()['a']
  assert 'host b gave no sign of life' in told
  assert '1 of 2 hosts go on (a)' in told and 'into 2 times as many' in told
  assert [e.name for e in hosts.events('exit/')] == [
      'supervisor/exit/lost_host', 'supervisor/exit/lost_host',
      'supervisor/exit/done',
  ]  # fmt: skip
  assert '1 of 2 hosts go on' in alerts.read_text()


@pytest.mark.slow
def test_what_ends_on_one_host_starts_anew_on_all_that_are_there(hosts):
  for name in ('a', 'b'):
    hosts.start(name)
  hosts.wait_for('1 0/2 1', '1 1/2 1')
  os.kill(int((hosts.folder / 'pid_b').read_text()), signal.SIGKILL)
  hosts.wait_for('2 0/2 1', '2 1/2 1')
  (restart,) = hosts.events('restart')
  assert 'killed: starting again' in restart.text
  # As training does: all save and leave when one is told to.
  hosts.processes['b'].terminate()
  os.kill(int((hosts.folder / 'pid_a').read_text()), signal.SIGTERM)
  assert hosts.processes.pop('b').wait(_SECONDS) == exit_codes.PREEMPTED.code
  hosts.wait_for('3 0/1 2')
  # It comes back: the run is made whole again, in good order.
  hosts.start('b')
  hosts.wait_for('4 0/2 1', '4 1/2 1')
  assert 'Hosts that were missing wait' in hosts.told()['a']
  assert hosts.finish() == {'a': 0, 'b': 0}
  assert [e.name.split('/')[-1] for e in hosts.events('exit/')] == [
      'killed', 'preempted', 'preempted', 'done'
  ]  # fmt: skip
  assert [e.value for e in hosts.events('attempt')] == [1, 2, 3, 4]


@pytest.mark.slow
def test_below_the_fewest_hosts_the_run_ends_with_a_verdict(hosts):
  hosts.start('a', '--min_hosts=2', '--host_gather_seconds=0.5')
  assert hosts.wait() == {'a': exit_codes.LOST_PEER.code}
  told = hosts.told()['a']
  assert 'TOO FEW HOSTS: 1 of 2 are there (a)' in told
  assert not hosts.seats()


@pytest.mark.slow
def test_hosts_that_were_told_different_numbers_are_refused_on_all(hosts):
  hosts.start('a')
  hosts.start('b', '--processes=2')
  codes = hosts.wait()
  assert set(codes.values()) == {exit_codes.BAD_CONFIG.code}
  for told in hosts.told().values():
    assert 'a: --processes=1' in told and 'b: --processes=2' in told


@pytest.mark.parametrize(
    ('flags', 'named'),
    [
        (['--hosts=0'], '--hosts is 0'),
        (['--hosts=2', '--min_hosts=3'], '--min_hosts is 3 of --hosts=2'),
        (['--hosts=2', '--processes=2', '--spares=1'], '--spares=1'),
        (['--hosts=2', '--host_name=a/b'], "--host_name is 'a/b'"),
        (['--host_name=a'], "--host_name is 'a' without --hosts"),
        (['--hosts=2', '--host_silent_seconds=0'], '--host_silent_seconds'),
    ],
)
def test_flags_for_hosts_that_cannot_work_are_refused(
    tmp_path, capsys, flags, named
):
  argv = [*flags, f'--run_dir={tmp_path / "run"}', '--', 'true']
  assert supervise.main(argv) == exit_codes.BAD_CONFIG.code
  told = capsys.readouterr().err
  assert named in told and 'expected' in told
  assert not (tmp_path / 'run').exists()


def test_one_supervisor_of_several_on_a_slurm_node_is_refused(
    tmp_path, capsys, monkeypatch
):
  monkeypatch.setenv('SLURM_LOCALID', '1')
  argv = ['--hosts=2', f'--run_dir={tmp_path / "run"}', '--', 'true']
  assert supervise.main(argv) == exit_codes.BAD_CONFIG.code
  assert '--ntasks-per-node=1' in capsys.readouterr().err
