# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a launcher's environment variables say about the processes of a run.

Pure functions of a mapping of variables, so that every launcher can be tested
without one. No JAX is imported.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import re
import zlib

# Ports for the coordinator: above the range that Linux hands out by itself
# (32768 to 60999), one per job so that jobs on one node don't meet.
_FIRST_PORT, _NUM_PORTS = 61440, 4096
_KUBERNETES_PORT = 8476

_NODE_LIST_RE = re.compile(r'([^\[,]+)(?:\[([^\]]+)\])?([^,]*)')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Processes:
  """The processes of a run, as one of them sees them.

  Attributes:
    source: which variables (or flags) say so.
    coordinator_address: `host:port` of process 0; None is unknown.
    process_count: number of processes; None is unknown.
    process_index: index of this one; None is unknown.
    local_index: index of this process on its node; None is unknown.
    local_count: processes on this node; None is unknown.
  """

  source: str
  coordinator_address: str | None = None
  process_count: int | None = None
  process_index: int | None = None
  local_index: int | None = None
  local_count: int | None = None

  def missing(self) -> list[str]:
    """Returns the names of the fields that a start needs and are unknown."""
    return [
        name
        for name in ('coordinator_address', 'process_count', 'process_index')
        if getattr(self, name) is None
    ]


def detect(environment: Mapping[str, str]) -> Processes | None:
  """Returns what the launcher says, None where there is none.

  The first that applies: JAX's own variables, a SLURM step, Kubernetes, Open
  MPI, a TPU pod.
  """
  for read in (
      from_jax_variables,
      from_slurm,
      from_kubernetes,
      from_open_mpi,
      from_tpu_pod,
  ):
    processes = read(environment)
    if processes is not None:
      return processes
  return None


def from_jax_variables(environment: Mapping[str, str]) -> Processes | None:
  """Reads JAX_COORDINATOR_ADDRESS with JAX_PROCESS_COUNT and _INDEX.

  They stand alone when all three are set; fewer of them complete what
  another launcher says (see `from_kubernetes`).
  """
  count = _integer(environment, 'JAX_PROCESS_COUNT', 'JAX_NUM_PROCESSES')
  index = _integer(environment, 'JAX_PROCESS_INDEX', 'JAX_PROCESS_ID')
  address = environment.get('JAX_COORDINATOR_ADDRESS')
  if count is None or index is None or address is None:
    return None
  return Processes(
      source='JAX_COORDINATOR_ADDRESS, JAX_PROCESS_COUNT, JAX_PROCESS_INDEX',
      coordinator_address=_with_port(address, environment, _KUBERNETES_PORT),
      process_count=count,
      process_index=index,
  )


def from_slurm(environment: Mapping[str, str]) -> Processes | None:
  """Reads the variables of a task started by srun.

  A batch script or an interactive shell has SLURM_NTASKS too, but is no task:
  only `srun` sets SLURM_STEP_ID. Waiting for tasks that nobody starts would
  hang, so such a shell counts as one process.
  """
  if 'SLURM_STEP_ID' not in environment or 'SLURM_PROCID' not in environment:
    return None
  nodes = environment.get('SLURM_STEP_NODELIST') or environment.get(
      'SLURM_JOB_NODELIST', ''
  )
  job = _integer(environment, 'SLURM_JOB_ID', 'SLURM_JOBID') or 0
  step = _integer(environment, 'SLURM_STEP_ID') or 0
  address = environment.get('JAX_COORDINATOR_ADDRESS')
  if address is None and nodes:
    address = first_node(nodes)
  port = _FIRST_PORT + (job * 31 + step) % _NUM_PORTS
  per_node = environment.get('SLURM_STEP_TASKS_PER_NODE', '')
  return Processes(
      source='SLURM',
      coordinator_address=address and _with_port(address, environment, port),
      process_count=_integer(
          environment, 'SLURM_STEP_NUM_TASKS', 'SLURM_NTASKS'
      ),
      process_index=_integer(environment, 'SLURM_PROCID'),
      local_index=_integer(environment, 'SLURM_LOCALID'),
      local_count=_tasks_on_node(
          per_node, _integer(environment, 'SLURM_NODEID') or 0
      ),
  )


def from_kubernetes(environment: Mapping[str, str]) -> Processes | None:
  """Reads the variables of a pod of an indexed Job or a JobSet.

  Kubernetes itself sets JOB_COMPLETION_INDEX, and an array of independent
  jobs has it too, so the manifest says that the pods belong together by
  JAX_PROCESS_COUNT. From JobSet's labels (downward API) it passes JOBSET_NAME,
  REPLICATED_JOB_NAME and, with several replicated jobs, JOB_INDEX and
  PODS_PER_JOB; without a JobSet it passes JAX_COORDINATOR_ADDRESS.
  """
  count = _integer(environment, 'JAX_PROCESS_COUNT', 'JAX_NUM_PROCESSES')
  pod = _integer(environment, 'JOB_COMPLETION_INDEX')
  if pod is None or count is None:
    return None
  job = _integer(environment, 'JOB_INDEX') or 0
  pods_per_job = _integer(environment, 'PODS_PER_JOB')
  address = environment.get('JAX_COORDINATOR_ADDRESS')
  names = [environment.get(n) for n in ('JOBSET_NAME', 'REPLICATED_JOB_NAME')]
  if address is None and all(names):
    # JobSet gives every pod a host name under a service named as the set.
    address = f'{names[0]}-{names[1]}-0-0.{names[0]}'
  index = pod if job == 0 else pods_per_job and job * pods_per_job + pod
  return Processes(
      source='Kubernetes (JOB_COMPLETION_INDEX)',
      coordinator_address=(
          address and _with_port(address, environment, _KUBERNETES_PORT)
      ),
      process_count=count,
      process_index=index,
  )


def from_open_mpi(environment: Mapping[str, str]) -> Processes | None:
  """Reads the variables of a rank started by Open MPI's mpirun (4 or 5)."""
  count = _integer(environment, 'OMPI_COMM_WORLD_SIZE')
  if count is None:
    return None
  local_count = _integer(environment, 'OMPI_COMM_WORLD_LOCAL_SIZE')
  uri = environment.get('OMPI_MCA_orte_hnp_uri', '')
  job_name = uri.split('.')[0] or environment.get('PMIX_NAMESPACE', '')
  address = environment.get('JAX_COORDINATOR_ADDRESS')
  found = re.search(r'tcp6?://\[?([^\],]+?)(?:\]|,|:\d+(?:;|$))', uri)
  if address is None and local_count == count:
    address = '127.0.0.1'
  elif address is None and found:
    # The launcher's node, where mpirun also puts rank 0.
    host = found.group(1)
    address = f'[{host}]' if host.count(':') > 1 else host
  port = _FIRST_PORT + zlib.crc32(job_name.encode()) % _NUM_PORTS
  return Processes(
      source='Open MPI',
      coordinator_address=address and _with_port(address, environment, port),
      process_count=count,
      process_index=_integer(environment, 'OMPI_COMM_WORLD_RANK'),
      local_index=_integer(environment, 'OMPI_COMM_WORLD_LOCAL_RANK'),
      local_count=local_count,
  )


def from_tpu_pod(environment: Mapping[str, str]) -> Processes | None:
  """Reads the variables that GKE gives the hosts of a TPU slice."""
  hosts = [
      host
      for host in environment.get('TPU_WORKER_HOSTNAMES', '').split(',')
      if host
  ]
  num_slices = _integer(environment, 'MEGASCALE_NUM_SLICES') or 1
  worker = _integer(environment, 'TPU_WORKER_ID')
  if worker is None or len(hosts) * num_slices < 2:
    return None
  address = environment.get('JAX_COORDINATOR_ADDRESS') or environment.get(
      'MEGASCALE_COORDINATOR_ADDRESS', hosts[0]
  )
  slice_id = _integer(environment, 'MEGASCALE_SLICE_ID') or 0
  return Processes(
      source='TPU pod (TPU_WORKER_HOSTNAMES)',
      coordinator_address=_with_port(
          address.split(':')[0], environment, _KUBERNETES_PORT
      ),
      process_count=len(hosts) * num_slices,
      process_index=slice_id * len(hosts) + worker,
  )


def first_node(node_list: str) -> str:
  """Returns the first host of a SLURM node list such as `gpu[003-010],b1`."""
  match = _NODE_LIST_RE.match(node_list.strip())
  if match is None:
    raise ValueError(
        f'Cannot read the SLURM node list {node_list!r}.\n'
        "Expected something like 'node1', 'node[01-04,07]' or 'a1,b[2-3]'.\n"
        'Set JAX_COORDINATOR_ADDRESS to the first host by hand.'
    )
  prefix, numbers, suffix = match.groups()
  if numbers is None:
    return prefix
  return prefix + re.split(r'[,-]', numbers)[0] + suffix


def local_device_ids(
    processes: Processes, *, visible: Sequence[str] | None, num_devices: int
) -> list[int] | None:
  """Returns which accelerators of its node a process takes; None takes all.

  Several processes of one node must not all open the same GPUs, unless the
  launcher has shown each of them only its own.

  Args:
    processes: with the process's place on its node.
    visible: entries of CUDA_VISIBLE_DEVICES, None when it is not set.
    num_devices: accelerators of the node.
  """
  count, index = processes.local_count, processes.local_index
  if index is None or count is None or count < 2:
    return None
  here = num_devices if visible is None else len(visible)
  if here < count:
    return None
  each = here // count
  return list(range(index * each, (index + 1) * each))


def _integer(environment: Mapping[str, str], *names: str) -> int | None:
  for name in names:
    value = environment.get(name)
    if value is None or not value.strip():
      continue
    if not value.strip().isdigit():
      raise ValueError(
          f'The environment variable {name} is {value!r}.\n'
          'Expected a non-negative whole number.\n'
          f'Mend {name} in the job script, or unset it.'
      )
    return int(value)
  return None


def _with_port(
    address: str, environment: Mapping[str, str], default: int
) -> str:
  """Adds a port where there is none; JAX_COORDINATOR_PORT wins over ours."""
  if re.search(r'(^[^:]+|\]):\d+$', address):
    return address
  port = _integer(environment, 'JAX_COORDINATOR_PORT')
  return f'{address}:{default if port is None else port}'


def _tasks_on_node(per_node: str, node: int) -> int | None:
  """Reads `2(x3),1`: two tasks on each of three nodes, then one."""
  counts = []
  for part in filter(None, per_node.split(',')):
    match = re.fullmatch(r'(\d+)(?:\(x(\d+)\))?', part.strip())
    if match is None:
      return None
    counts += [int(match.group(1))] * int(match.group(2) or 1)
  return counts[node] if node < len(counts) else None
