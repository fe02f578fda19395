# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Under a real SLURM, a supervisor in each task: the same bits after a kill."""

import glob
import os
import shlex
import signal
import sys
import threading
import time

import pytest

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import heartbeats
from tests import multiprocess
from tests.faults import supervised
from tests.partitioning import slurm_cluster

_SBATCH = multiprocess.ROOT / 'tools' / 'cluster' / 'train.sbatch'


@pytest.mark.slow
@pytest.mark.multiprocess
def test_two_slurm_tasks_survive_the_kill_of_one(tmp_path, undisturbed):
  missing = slurm_cluster.missing_programs()
  if missing:
    pytest.skip(
        f'no SLURM here, {missing} not found: apt-get install slurm-wlm munge'
    )
  folder = tmp_path / 'run'
  command = [sys.executable, '-m', 't5wild.cli', 'supervise', '--',
             't5wild', 'train']  # fmt: skip
  ended = []

  def train(cluster):
    ended.append(
        cluster.run(
            [
                '--ntasks-per-node=2', str(_SBATCH),
                *supervised.train_command(folder, {})[2:],
            ],
            env={
                **supervised.environment(),
                'T5WILD_COMMAND': shlex.join(command),
                'XLA_FLAGS': '',
                'XDG_STATE_HOME': str(tmp_path / 'state'),
            },
            timeout=supervised.TIMEOUT_SECONDS,
        )
    )  # fmt: skip

  with slurm_cluster.one_node() as cluster:
    thread = threading.Thread(target=train, args=(cluster,))
    thread.start()
    while supervised.STEP not in supervised.losses(folder):
      assert thread.is_alive(), ended
      time.sleep(0.05)
    signs = heartbeats.read_all(run_dir_lib.RunDir(str(folder)))
    os.kill(signs[1].pid, signal.SIGKILL)
    thread.join()
  ((status, log),) = ended
  assert status == 0, log
  assert 'starting again' in log
  assert supervised.losses(folder) == undisturbed
  assert len(glob.glob(str(folder / 'supervisor.*.rank_*.lock'))) == 2
