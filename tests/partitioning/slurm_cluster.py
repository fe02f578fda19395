# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A SLURM of one node, started for one test and taken down after it.

Needs Debian's `slurm-wlm` and `munge`; nothing of the system's own SLURM
configuration is read or changed.
"""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import dataclasses
import getpass
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import uuid

from tests import multiprocess

PROGRAMS = ('munged', 'slurmctld', 'slurmd', 'sbatch', 'srun', 'scontrol')

_CONFIG = """\
ClusterName=t5wild
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=20
CredType=cred/munge
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing_programs() -> list[str]:
  """Returns what is not installed of a SLURM."""
  path = os.environ.get('PATH', '') + ':/usr/sbin:/sbin'
  return [name for name in PROGRAMS if shutil.which(name, path=path) is None]


@dataclasses.dataclass(frozen=True)
class Cluster:
  """A running SLURM of one node.

  Attributes:
    folder: its files, gone after the test.
    environment: variables with which commands talk to it.
  """

  folder: pathlib.Path
  environment: Mapping[str, str]

  def run(
      self,
      arguments: Sequence[str],
      *,
      env: Mapping[str, str] | None = None,
      timeout: float = 180,
  ) -> tuple[int, str]:
    """Submits a batch script and waits for its end.

    Args:
      arguments: options of sbatch, the script and its arguments.
      env: variables of the job.
      timeout: seconds.

    Returns:
      The exit status of the job, and what it printed.
    """
    log = self.folder / f'job-{uuid.uuid4().hex}.log'
    command = ['sbatch', '--wait', f'--output={log}', *arguments]
    # Files, not pipes: sbatch --wait retries for ever when SLURM falls over.
    try:
      status = subprocess.run(
          command,
          env={**self.environment, **(env or {})},
          timeout=timeout,
          check=False,
      ).returncode
    except subprocess.TimeoutExpired:
      status = -signal.SIGKILL
    text = log.read_text(errors='replace') if log.exists() else ''
    return status, text


@contextlib.contextmanager
def one_node() -> Iterator[Cluster]:
  """Starts munged, slurmctld and slurmd; ends them and every task after."""
  # A socket's path must be short: not pytest's folder.
  folder = pathlib.Path(tempfile.mkdtemp(prefix='slurm'))
  mark = f'T5WILD_SLURM_TEST={uuid.uuid4().hex}'
  environment = multiprocess.process_environment(devices_per_process=1)
  environment['PATH'] += ':/usr/sbin:/sbin'
  environment['SLURM_CONF'] = str(folder / 'slurm.conf')
  environment.update([mark.split('=')])
  daemons = []
  try:
    _write_files(folder)
    for command in _daemons(folder):
      with (folder / f'{command[0]}.out').open('wb') as out:
        daemons.append(
            subprocess.Popen(
                command, env=environment, stdout=out, stderr=out
            )
        )
      if command[0] == 'munged':
        _wait_for((folder / 'munge.socket').exists, folder)
    _wait_for(lambda: _is_idle(environment), folder)
    yield Cluster(folder, environment)
  finally:
    for daemon in reversed(daemons):
      _end(daemon)
    _kill_marked(mark)
    shutil.rmtree(folder, ignore_errors=True)


def _write_files(folder: pathlib.Path) -> None:
  for name in ('state', 'spool'):
    (folder / name).mkdir()
  key = folder / 'munge.key'
  key.write_bytes(os.urandom(1024))
  key.chmod(0o400)
  (folder / 'slurm.conf').write_text(
      _CONFIG.format(
          folder=folder,
          host=os.uname().nodename.split('.')[0],
          user=getpass.getuser(),
          controller_port=multiprocess.free_port(),
          node_port=multiprocess.free_port(),
      )
  )


def _daemons(folder: pathlib.Path) -> list[list[str]]:
  config = str(folder / 'slurm.conf')
  munged = ['munged', '--foreground', '--force']
  for option, name in (
      ('socket', 'munge.socket'),
      ('key-file', 'munge.key'),
      ('log-file', 'munged.log'),
      ('pid-file', 'munged.pid'),
      ('seed-file', 'munged.seed'),
  ):
    munged.append(f'--{option}={folder / name}')
  return [
      munged,
      ['slurmctld', '-D', '-f', config],
      ['slurmd', '-D', '-f', config],
  ]


def _is_idle(environment: Mapping[str, str]) -> bool:
  found = subprocess.run(
      ['sinfo', '--noheader', '--format=%T'],
      env=environment,
      capture_output=True,
      text=True,
      timeout=30,
      check=False,
  )
  return found.stdout.strip() == 'idle'


def _wait_for(ready, folder: pathlib.Path, seconds: float = 60) -> None:
  deadline = time.monotonic() + seconds
  while not ready():
    if time.monotonic() > deadline:
      logs = '\n'.join(
          f'--- {path.name}\n{path.read_text(errors="replace")[-2000:]}'
          for pattern in ('*.log', '*.out')
          for path in sorted(folder.glob(pattern))
      )
      raise AssertionError(f'SLURM did not come up in {seconds} s:\n{logs}')
    time.sleep(0.2)


def _end(daemon: subprocess.Popen) -> None:
  daemon.terminate()
  try:
    daemon.wait(timeout=20)
  except subprocess.TimeoutExpired:
    daemon.kill()
    daemon.wait()


def _kill_marked(mark: str) -> None:
  """Kills steps that outlived their slurmd: they carry our variable."""
  for entry in pathlib.Path('/proc').iterdir():
    if not entry.name.isdigit() or int(entry.name) == os.getpid():
      continue
    with contextlib.suppress(OSError):
      if mark.encode() in (entry / 'environ').read_bytes().split(b'\0'):
        os.kill(int(entry.name), signal.SIGKILL)
