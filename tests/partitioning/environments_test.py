# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Laws of reading launchers' variables; SLURM's are from a real srun."""

import pytest

from t5wild.partitioning import environments

# Of task 1 of `srun` in a batch job of two tasks, SLURM 22.05.
SLURM_TASK = {
    'SLURM_JOB_ID': '7',
    'SLURM_JOB_NODELIST': 'vm',
    'SLURM_LAUNCH_NODE_IPADDR': '127.0.0.1',
    'SLURM_LOCALID': '1',
    'SLURM_NODEID': '0',
    'SLURM_NTASKS': '2',
    'SLURM_PROCID': '1',
    'SLURM_STEP_ID': '0',
    'SLURM_STEP_NODELIST': 'vm',
    'SLURM_STEP_NUM_TASKS': '2',
    'SLURM_STEP_TASKS_PER_NODE': '2',
}


def test_no_launcher_is_one_process():
  assert environments.detect({'PATH': '/bin', 'HOME': '/root'}) is None


def test_a_slurm_task_is_read():
  found = environments.detect(SLURM_TASK)
  assert (found.process_count, found.process_index) == (2, 1)
  assert (found.local_count, found.local_index) == (2, 1)
  host, port = found.coordinator_address.split(':')
  assert host == 'vm' and 61440 <= int(port) < 65536
  assert not found.missing()


def test_tasks_of_one_job_agree_on_the_port_and_other_steps_differ():
  def address(**changed):
    return environments.detect(SLURM_TASK | changed).coordinator_address

  assert address(SLURM_PROCID='0') == address(SLURM_PROCID='1')
  assert address(SLURM_STEP_ID='1') != address()
  assert address(SLURM_JOB_ID='8') != address()
  assert address(JAX_COORDINATOR_PORT='1234') == 'vm:1234'


def test_a_slurm_batch_script_without_srun_is_one_process():
  batch = {
      name: value
      for name, value in SLURM_TASK.items()
      if 'STEP' not in name
  } | {'SLURM_PROCID': '0'}
  assert environments.detect(batch) is None


@pytest.mark.parametrize(
    'node_list, first',
    [
        ('node1', 'node1'),
        ('node001,host2', 'node001'),
        ('node[001-015],host2', 'node001'),
        ('node[003,007-015]', 'node003'),
        ('gpu-a[1-4]-ib', 'gpu-a1-ib'),
        ('a.b.c,d[1-2]', 'a.b.c'),
    ],
)
def test_the_first_node_of_a_slurm_list_is_found(node_list, first):
  assert environments.first_node(node_list) == first


def test_tasks_per_node_may_differ_by_node():
  found = environments.detect(
      SLURM_TASK
      | {'SLURM_STEP_TASKS_PER_NODE': '4(x2),1', 'SLURM_NODEID': '2'}
  )
  assert found.local_count == 1


def test_a_jobset_pod_is_read():
  found = environments.detect({
      'JOB_COMPLETION_INDEX': '3',
      'JAX_PROCESS_COUNT': '8',
      'JOBSET_NAME': 'run',
      'REPLICATED_JOB_NAME': 'workers',
      'JOB_INDEX': '1',
      'PODS_PER_JOB': '4',
  })
  assert found.process_index == 7 and found.process_count == 8
  assert found.coordinator_address == 'run-workers-0-0.run:8476'


def test_an_indexed_job_is_read_with_an_address():
  found = environments.detect({
      'JOB_COMPLETION_INDEX': '3',
      'JAX_PROCESS_COUNT': '4',
      'JAX_COORDINATOR_ADDRESS': 'run-0.pods',
      'JAX_COORDINATOR_PORT': '99',
  })
  assert found.process_index == 3
  assert found.coordinator_address == 'run-0.pods:99'


def test_pods_of_an_array_job_are_single_processes():
  assert environments.detect({'JOB_COMPLETION_INDEX': '3'}) is None


def test_several_replicated_jobs_need_their_number_of_pods():
  found = environments.detect({
      'JOB_COMPLETION_INDEX': '0',
      'JAX_PROCESS_COUNT': '8',
      'JAX_COORDINATOR_ADDRESS': 'a:1',
      'JOB_INDEX': '1',
  })
  assert found.missing() == ['process_index']


@pytest.mark.parametrize(
    'uri, address',
    [
        ('1531576320.0;tcp://10.96.0.1,10.148.0.1:34911', '10.96.0.1'),
        ('1531576320.0;tcp://10.96.0.1:34911', '10.96.0.1'),
        ('13145.0;tcp6://[fe80::b9b:ac,2620::2]:43370', '[fe80::b9b:ac]'),
    ],
)
def test_an_open_mpi_4_rank_is_read(uri, address):
  found = environments.detect({
      'OMPI_MCA_orte_hnp_uri': uri,
      'OMPI_COMM_WORLD_SIZE': '4',
      'OMPI_COMM_WORLD_RANK': '2',
      'OMPI_COMM_WORLD_LOCAL_RANK': '0',
      'OMPI_COMM_WORLD_LOCAL_SIZE': '2',
  })
  assert (found.process_count, found.process_index) == (4, 2)
  assert found.coordinator_address.rsplit(':', 1)[0] == address


def test_an_open_mpi_5_rank_on_one_node_is_read():
  found = environments.detect({
      'PMIX_NAMESPACE': 'prterun-vm-123@1',
      'OMPI_COMM_WORLD_SIZE': '2',
      'OMPI_COMM_WORLD_RANK': '1',
      'OMPI_COMM_WORLD_LOCAL_RANK': '1',
      'OMPI_COMM_WORLD_LOCAL_SIZE': '2',
  })
  assert found.coordinator_address.startswith('127.0.0.1:')


def test_open_mpi_5_over_nodes_needs_an_address():
  ranks = {
      'OMPI_COMM_WORLD_SIZE': '4',
      'OMPI_COMM_WORLD_RANK': '1',
      'OMPI_COMM_WORLD_LOCAL_SIZE': '2',
  }
  assert environments.detect(ranks).missing() == ['coordinator_address']
  found = environments.detect(ranks | {'JAX_COORDINATOR_ADDRESS': 'n0:77'})
  assert found.coordinator_address == 'n0:77'


def test_hosts_of_tpu_slices_are_numbered_slice_by_slice():
  found = environments.detect({
      'TPU_WORKER_HOSTNAMES': 'h0,h1',
      'TPU_WORKER_ID': '1',
      'MEGASCALE_NUM_SLICES': '2',
      'MEGASCALE_SLICE_ID': '1',
      'MEGASCALE_COORDINATOR_ADDRESS': 'set-0-0.svc:8080',
  })
  assert (found.process_count, found.process_index) == (4, 3)
  assert found.coordinator_address == 'set-0-0.svc:8476'
  assert environments.detect(
      {'TPU_WORKER_HOSTNAMES': 'localhost', 'TPU_WORKER_ID': '0'}
  ) is None


def test_jaxs_own_variables_win():
  found = environments.detect(SLURM_TASK | {
      'JAX_COORDINATOR_ADDRESS': 'x:1',
      'JAX_PROCESS_COUNT': '9',
      'JAX_PROCESS_INDEX': '8',
  })
  assert (found.process_count, found.process_index) == (9, 8)


def test_a_variable_that_is_no_number_is_named():
  with pytest.raises(ValueError, match="SLURM_PROCID is 'one'"):
    environments.detect(SLURM_TASK | {'SLURM_PROCID': 'one'})


@pytest.mark.parametrize(
    'local, visible, num_devices, expected',
    [
        ((0, 1), None, 8, None),  # one process takes all
        ((1, 2), None, 8, [4, 5, 6, 7]),
        ((3, 8), ['0', '1', '2', '3', '4', '5', '6', '7'], 8, [3]),
        ((1, 2), ['1'], 8, None),  # the launcher has shown its own only
        ((1, 2), None, 0, None),  # no accelerators
        ((None, None), None, 8, None),
    ],
)
def test_processes_of_one_node_share_its_devices(
    local, visible, num_devices, expected
):
  processes = environments.Processes(
      source='test', local_index=local[0], local_count=local[1]
  )
  found = environments.local_device_ids(
      processes, visible=visible, num_devices=num_devices
  )
  assert found == expected
