# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`tools/cluster/train.sbatch` under a real SLURM of one node, two tasks."""

import shlex
import sys

import pytest

from tests import multiprocess
from tests.partitioning import slurm_cluster

SBATCH = multiprocess.ROOT / 'tools' / 'cluster' / 'train.sbatch'

_SCRIPT = """
import sys
from t5wild.partitioning import distributed
processes = distributed.start(timeout_seconds=120)
import jax
import numpy as np
from t5wild import partitioning
partitioner = partitioning.PjitPartitioner()
rows = partitioner.host_rows(4)
batch = partitioner.global_batch({'x': np.arange(4.0)[rows]})
total = partitioner.partition(
    lambda batch: batch['x'].sum(), (partitioner.data_partition_spec,), None
)(batch)
distributed.barrier('end', 60)
print(f'{processes.source}: {processes.process_index} of '
      f'{jax.process_count()}, sum {float(total)}, {sys.argv[1:]}', flush=True)
"""


@pytest.fixture(scope='module')
def slurm():
  missing = slurm_cluster.missing_programs()
  if missing:
    pytest.skip(
        f'no SLURM here, {missing} not found: apt-get install slurm-wlm munge'
    )
  with slurm_cluster.one_node() as cluster:
    yield cluster


@pytest.mark.slow
@pytest.mark.multiprocess
def test_two_tasks_of_train_sbatch_are_one_run(slurm, tmp_path):
  script = tmp_path / 'script.py'
  script.write_text(_SCRIPT)
  command = shlex.join([sys.executable, str(script)])
  status, log = slurm.run(
      ['--ntasks-per-node=2', str(SBATCH), '--gin.A=1', 'two words'],
      env={'T5WILD_COMMAND': command},
  )
  assert status == 0, log
  for index in range(2):
    assert f'SLURM: {index} of 2, sum 6.0' in log, log
  assert log.count("['--gin.A=1', 'two words']") == 2


@pytest.mark.slow
@pytest.mark.multiprocess
def test_a_failing_task_fails_the_job_at_once(slurm):
  status, log = slurm.run(
      ['--ntasks-per-node=2', str(SBATCH)],
      env={
          'T5WILD_SETUP': '[ $SLURM_PROCID = 0 ] && sleep 300; exit 3',
      },
      timeout=60,
  )
  assert status != 0 and 'task 1: Exited with exit code 3' in log, log


@pytest.mark.slow
@pytest.mark.multiprocess
def test_a_preempted_run_is_queued_again_and_goes_on(slurm, tmp_path):
  # The second task is still saving when the first has left.
  script = tmp_path / 'script.sh'
  script.write_text(
      'seen=$0.$SLURM_PROCID\n'
      '[ -e $seen ] && exec echo resumed\n'
      'touch $seen; sleep $SLURM_PROCID; echo saved; exit 75\n'
  )
  status, log = slurm.run(
      ['--ntasks-per-node=2', str(SBATCH)],
      env={'T5WILD_COMMAND': f'bash {script}'},
      timeout=400,
  )
  assert status == 0, log
  assert log.count('saved\n') == log.count('resumed\n') == 2, log
