# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs one script as several JAX processes over gloo on this machine.

The script calls `t5wild.partitioning.distributed.start()`, as a binary does:
the processes are told of each other by JAX_COORDINATOR_ADDRESS,
JAX_PROCESS_COUNT and JAX_PROCESS_INDEX.
"""

from collections.abc import Mapping, Sequence
import contextlib
import dataclasses
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]

# When one process has failed, the others get this long to notice.
_GRACE_SECONDS = 10.0
_LAUNCHERS = ('SLURM_', 'OMPI_', 'PMIX_', 'JAX_PROCESS', 'JAX_COORDINATOR')


@dataclasses.dataclass(frozen=True)
class Output:
  """What one process left: its exit status and what it printed."""

  returncode: int
  stdout: str
  stderr: str


def free_port() -> int:
  """Returns a TCP port that is free now."""
  with socket.socket() as probe:
    probe.bind(('127.0.0.1', 0))
    return probe.getsockname()[1]


def process_environment(
    *, devices_per_process: int, extra: Mapping[str, str] | None = None
) -> dict[str, str]:
  """Returns this environment, cleaned of launchers, for CPU devices."""
  environment = {
      name: value
      for name, value in os.environ.items()
      if not name.startswith(_LAUNCHERS)
  }
  environment.update(
      JAX_PLATFORMS='cpu',
      XLA_FLAGS=(
          f'--xla_force_host_platform_device_count={devices_per_process}'
      ),
      PYTHONPATH=os.pathsep.join(
          filter(None, [str(ROOT), environment.get('PYTHONPATH')])
      ),
  )
  environment.update(extra or {})
  return environment


def run_processes(
    script: str | Sequence[str],
    num_processes: int,
    devices_per_process: int = 1,
    timeout: float = 120,
    *,
    check: bool = True,
    env: Mapping[str, str] | None = None,
) -> list[Output]:
  """Runs `num_processes` Python processes to their end.

  Args:
    script: source text, or a list of arguments to the interpreter (a path and
      flags, `['-m', 't5wild.train', ...]`).
    num_processes: how many.
    devices_per_process: CPU devices of each.
    timeout: seconds for all of them together; then they are killed.
    check: whether a process that fails or is killed is an AssertionError that
      shows what all have printed.
    env: further environment variables.

  Returns:
    One output per process, by process index.
  """
  arguments = ['-c', script] if isinstance(script, str) else list(script)
  address = f'127.0.0.1:{free_port()}'
  with contextlib.ExitStack() as stack:
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    processes = []
    stack.callback(_kill, processes)
    for index in range(num_processes):
      environment = process_environment(
          devices_per_process=devices_per_process, extra=env
      )
      environment.update(
          JAX_COORDINATOR_ADDRESS=address,
          JAX_PROCESS_COUNT=str(num_processes),
          JAX_PROCESS_INDEX=str(index),
      )
      # Files, not pipes: a full pipe would stop a process.
      out = stack.enter_context((folder / f'{index}.out').open('wb'))
      err = stack.enter_context((folder / f'{index}.err').open('wb'))
      processes.append(
          subprocess.Popen(
              [sys.executable, *arguments],
              env=environment,
              stdout=out,
              stderr=err,
              start_new_session=True,
          )
      )
    _wait(processes, timeout)
    _kill(processes)
    outputs = [
        Output(
            returncode=process.wait(),
            stdout=(folder / f'{i}.out').read_text(errors='replace'),
            stderr=(folder / f'{i}.err').read_text(errors='replace'),
        )
        for i, process in enumerate(processes)
    ]
  if check and any(output.returncode for output in outputs):
    raise AssertionError(_report(outputs, timeout))
  return outputs


def _wait(processes: Sequence[subprocess.Popen], timeout: float) -> None:
  """Returns when all have ended, or the time is up."""
  deadline = time.monotonic() + timeout
  failed = False
  while time.monotonic() < deadline:
    codes = [process.poll() for process in processes]
    if None not in codes:
      return
    if any(codes) and not failed:
      failed = True
      deadline = min(deadline, time.monotonic() + _GRACE_SECONDS)
    time.sleep(0.05)


def _kill(processes: Sequence[subprocess.Popen]) -> None:
  """Kills what still runs, with the children it started."""
  for process in processes:
    if process.poll() is None:
      with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _report(outputs: Sequence[Output], timeout: float) -> str:
  parts = [
      f'Of {len(outputs)} processes some failed (-9: killed, {timeout} s were '
      'up or another one had failed):'
  ]
  for i, output in enumerate(outputs):
    parts.append(
        f'--- process {i}: exit status {output.returncode}\n'
        f'{output.stdout[-3000:]}\n{output.stderr[-3000:]}'
    )
  return '\n'.join(parts)
