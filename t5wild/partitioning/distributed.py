# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Several processes: the one start of jax.distributed, barriers, broadcast.

Every wait has a name and a bound, and says who is missing when it ends.
"""

from collections.abc import Mapping
import dataclasses
import errno
import glob
import json
import os
import socket
import threading
import time
from typing import Any

from absl import logging
import jax

# The public API has no bounded barrier; this is the client that Orbax and
# multihost_utils wait with too.
from jax._src import distributed as jax_distributed
from jax.experimental import multihost_utils

from t5wild.partitioning import environments

DEFAULT_START_SECONDS = 300
DEFAULT_BARRIER_SECONDS = 600

# How much later than ours JAX's own bound lies, which ends the process.
_ABORT_SECONDS = 60

_PREFIX = 't5wild/meeting'
_uses: dict[str, int] = {}
_lock = threading.Lock()


class BarrierTimeoutError(TimeoutError):
  """Some processes did not come to a barrier in time."""


def start(
    *,
    multiprocess_gpu: bool = False,
    coordinator_address: str | None = None,
    process_count: int | None = None,
    process_index: int | None = None,
    timeout_seconds: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> environments.Processes | None:
  """Starts jax.distributed where this run has several processes.

  Call it before anything that asks JAX for devices. A second call does
  nothing. T5X's flags win over the environment's variables field by field.

  Args:
    multiprocess_gpu: T5X's flag; true makes it an error when nothing says
      which processes there are.
    coordinator_address: `host:port` of process 0.
    process_count: number of processes.
    process_index: index of this process.
    timeout_seconds: how long to wait for all processes; None is 300.
    environment: variables; None takes those of this process.

  Returns:
    What was started from, or None for a run of one process.

  Raises:
    ValueError: flags or variables that contradict each other or lack a part.
    RuntimeError: the port is taken, or the others did not come in time.
  """
  if jax.distributed.is_initialized():
    return None
  environment = os.environ if environment is None else environment
  processes = _processes(
      environment,
      coordinator_address=coordinator_address,
      process_count=process_count,
      process_index=process_index,
  )
  if processes is None and multiprocess_gpu:
    raise ValueError(
        f'--multiprocess_gpu is {multiprocess_gpu}, but neither flags '
        f'(coordinator_address {coordinator_address!r}, process_count '
        f'{process_count!r}, process_index {process_index!r}) nor the '
        'environment say which processes there are.\n'
        'Expected --coordinator_address, --process_count and --process_index, '
        'or the variables of srun, mpirun, a JobSet or '
        'JAX_COORDINATOR_ADDRESS, JAX_PROCESS_COUNT, JAX_PROCESS_INDEX.\n'
        'Start the job by `srun` (see tools/cluster/train.sbatch) or pass the '
        'three flags.'
    )
  if processes is None or processes.process_count == 1:
    logging.info('one process (%s)', processes or 'no launcher found')
    return None
  _check(processes)
  _check_port(processes)
  _initialize(
      processes,
      environment,
      DEFAULT_START_SECONDS if timeout_seconds is None else timeout_seconds,
  )
  return processes


def _processes(
    environment: Mapping[str, str], **flags: Any
) -> environments.Processes | None:
  """What the environment says, each field overridden by its flag."""
  given = {name: value for name, value in flags.items() if value is not None}
  if not given:
    return environments.detect(environment)
  if len(given) == len(flags):
    # All is said: a launcher's variables may be of another job around us.
    return environments.Processes(source='flags', **given)
  found = environments.detect(environment)
  if found is None:
    return environments.Processes(source='flags', **given)
  return dataclasses.replace(found, source=f'flags and {found.source}', **given)


def _check(processes: environments.Processes) -> None:
  missing = processes.missing()
  if missing:
    raise ValueError(
        f'{processes.source} gives no {", ".join(missing)} for a run of '
        f'several processes: {processes}.\n'
        'Expected all of coordinator_address, process_count, process_index.\n'
        'Pass '
        + ' '.join(f'--{name}=...' for name in missing)
        + ', or set the variables JAX_COORDINATOR_ADDRESS, JAX_PROCESS_COUNT, '
        'JAX_PROCESS_INDEX.'
    )
  count, index = processes.process_count, processes.process_index
  if not 0 <= index < count:
    raise ValueError(
        f'process_index = {index} with process_count = {count} (from '
        f'{processes.source}).\n'
        f'Expected an index in [0, {count}).\n'
        'Number the processes from 0.'
    )


def _initialize(processes, environment, timeout_seconds: float) -> None:
  logging.info('starting %s', processes)
  # Without it, several CPU processes cannot compute together.
  jax.config.update('jax_cpu_collectives_implementation', 'gloo')
  begin = time.monotonic()
  failure = []

  def join() -> None:
    try:
      jax.distributed.initialize(
          coordinator_address=processes.coordinator_address,
          num_processes=processes.process_count,
          process_id=processes.process_index,
          local_device_ids=_local_device_ids(processes, environment),
          cluster_detection_method='deactivate',
          initialization_timeout=int(timeout_seconds) + _ABORT_SECONDS,
      )
    except Exception as error:  # noqa: BLE001  (raised again below)
      failure.append(error)

  # When its own time is up, JAX aborts the process without a word on what to
  # do; a thread lets this one speak first.
  thread = threading.Thread(target=join, name='join', daemon=True)
  thread.start()
  thread.join(timeout_seconds)
  if thread.is_alive() or failure:
    # At exit JAX would wait for the others once more.
    jax_distributed.global_state.client = None
    cause = failure[0] if failure else None
    raise RuntimeError(
        _join_message(processes, timeout_seconds, cause)
    ) from cause
  logging.info(
      'process %d of %d joined after %.1f s',
      processes.process_index,
      processes.process_count,
      time.monotonic() - begin,
  )


def _check_port(processes: environments.Processes) -> None:
  """Refuses a port that another program listens on; only process 0 needs it.

  JAX itself ends there without a word that a person could use.
  """
  number = processes.coordinator_address.rsplit(':', 1)[-1]
  if processes.process_index != 0 or not number.isdigit():
    return
  port = int(number)
  with socket.socket(socket.AF_INET) as probe:
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
      probe.bind(('', port))
    except OSError as error:
      if error.errno != errno.EADDRINUSE:
        return  # Left to JAX: what cannot be probed may work.
      raise RuntimeError(
          f'Address already in use: port {port} of {processes.source} is taken '
          'by another program on this host.\n'
          'Expected a free port for process 0, where the others find it.\n'
          'Choose another one in the coordinator address, or end that program '
          f'(ss -ltnp | grep {port}).'
      ) from error


def _join_message(processes, timeout_seconds: float, cause) -> str:
  address = processes.coordinator_address
  if cause is not None:
    reason = str(cause).splitlines()[0]
  elif _answers(address):
    reason = f'process 0 answers at {address}, but not all the others came'
  else:
    reason = f'nobody answers at {address}'
  return (
      f'Process {processes.process_index} of {processes.process_count} could '
      f'not join the run within {timeout_seconds:.0f} s: {reason} (address and '
      f'numbers from {processes.source}).\n'
      'Expected all processes to start within that time, before any of them '
      'used JAX, and process 0 to be reachable from all nodes.\n'
      'Look at the logs of the other processes; check that the port is free '
      'and open; raise --initialization_timeout when nodes start slowly.'
  )


def _answers(address: str) -> bool:
  host, port = address.rsplit(':', 1)
  try:
    with socket.create_connection((host.strip('[]'), int(port)), timeout=2):
      return True
  except OSError:
    return False


def _local_device_ids(processes, environment) -> list[int] | None:
  if environment.get('JAX_LOCAL_DEVICE_IDS'):
    return None  # JAX reads it.
  visible = environment.get('CUDA_VISIBLE_DEVICES')
  return environments.local_device_ids(
      processes,
      visible=None if visible is None else visible.split(','),
      num_devices=len(glob.glob('/dev/nvidia[0-9]*')),
  )


def process_index() -> int:
  """Returns this process's index, without starting a backend."""
  return jax_distributed.global_state.process_id


def all_leave(seconds: float) -> bool:
  """Whether every process of the run ends, too, within so many seconds.

  For one that fails: at its exit JAX waits for the others, five minutes, and
  they for it in the next collective.
  """
  if jax_distributed.global_state.client is None:
    return True
  thread = threading.Thread(
      target=jax_distributed.global_state.shutdown, name='leave', daemon=True
  )
  thread.start()
  thread.join(seconds)
  return not thread.is_alive()


def process_count() -> int:
  """Returns the number of processes, without starting a backend."""
  return jax_distributed.global_state.num_processes


def barrier(
    name: str, timeout_seconds: float = DEFAULT_BARRIER_SECONDS
) -> None:
  """Waits until all processes have come to the barrier of this name.

  Every process must pass the barriers of one name equally often. Works before
  any backend is started; one process passes at once.

  Args:
    name: what is waited for, as it should read in an error.
    timeout_seconds: how long to wait for the slowest.

  Raises:
    BarrierTimeoutError: somebody did not come; names who is missing.
  """
  meet(name, value=None, timeout_seconds=timeout_seconds)


def meet(
    name: str,
    *,
    value: Any,
    timeout_seconds: float = DEFAULT_BARRIER_SECONDS,
) -> list[Any]:
  """Waits for all processes and returns the value each of them brought.

  Args:
    name: what is waited for, as in `barrier`.
    value: anything JSON can hold; small, it goes through process 0.
    timeout_seconds: how long to wait for the slowest.

  Returns:
    The values, in order of process index.

  Raises:
    BarrierTimeoutError: somebody did not come; names who is missing.
  """
  client = jax_distributed.global_state.client
  if client is None:
    return [json.loads(json.dumps(value))]
  with _lock:
    _uses[name] = _uses.get(name, 0) + 1
    place = f'{_PREFIX}/{name}/{_uses[name]}'
  mine = f'{place}/{process_index()}'
  client.key_value_set(mine, json.dumps(value))
  begin = time.monotonic()
  try:
    client.wait_at_barrier(place, int(timeout_seconds * 1000))
  except jax.errors.JaxRuntimeError as error:
    waited = time.monotonic() - begin
    raise _timeout_error(client, name, place, waited, error) from error
  values = _brought(client, place)
  # Nobody deletes before everybody has read.
  client.wait_at_barrier(f'{place}/read', int(timeout_seconds * 1000))
  client.key_value_delete(mine)
  return [values[i] for i in range(process_count())]


def _brought(client, place: str) -> dict[int, Any]:
  return {
      int(key.rsplit('/', 1)[1]): json.loads(value)
      for key, value in client.key_value_dir_get(f'{place}/')
  }


def _timeout_error(client, name, place, seconds, error) -> Exception:
  try:
    here = set(_brought(client, place))
  except jax.errors.JaxRuntimeError:
    here = None  # The coordinator, process 0, is gone.
  if here is None:
    missing = 'process 0, which holds the meeting place, cannot be reached'
  else:
    absent = sorted(set(range(process_count())) - here)
    missing = f'missing: processes {absent} of {process_count()}'
  reason = str(error).splitlines()[0]
  return BarrierTimeoutError(
      f'The barrier {name!r} was given up on process {process_index()} after '
      f'{seconds:.1f} s; {missing}. ({reason})\n'
      'Expected every process to come to it within that time.\n'
      'Look at the logs of the missing processes: they are stuck, dead or '
      'slower than this; raise the timeout if they are only slow.'
  )


def broadcast_one_to_all(tree: Any, is_source: bool | None = None) -> Any:
  """Returns the arrays of process 0 (or of the source) on every process.

  Args:
    tree: of numpy or jax arrays, of equal structure and shapes everywhere.
    is_source: True on the one process whose values are sent; None is process
      0. Starts the backend: for small values before that, see `meet`.
  """
  if process_count() == 1:
    return tree
  barrier('broadcast')
  return multihost_utils.broadcast_one_to_all(tree, is_source=is_source)
