# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A recipe trains under a real SLURM, two tasks, as it does in one process."""

import shlex
import sys

import pytest

from tests import multiprocess
from tests.end_to_end import runs
from tests.partitioning import slurm_cluster

_SBATCH = multiprocess.ROOT / 'tools' / 'cluster' / 'train.sbatch'


@pytest.mark.slow
@pytest.mark.multiprocess
def test_two_slurm_tasks_train_with_the_losses_of_one_process(tmp_path):
  missing = slurm_cluster.missing_programs()
  if missing:
    pytest.skip(
        f'no SLURM here, {missing} not found: apt-get install slurm-wlm munge'
    )
  alone = tmp_path / 'alone'
  assert runs.train(alone, num_devices=2) == 0
  folder = tmp_path / 'run'
  module, *flags = runs.arguments(folder)[1:]
  with slurm_cluster.one_node() as cluster:
    status, log = cluster.run(
        ['--ntasks-per-node=2', str(_SBATCH), *flags],
        env={
            'T5WILD_COMMAND': shlex.join([sys.executable, '-m', module]),
            'JAX_PLATFORMS': 'cpu',
            'XLA_FLAGS': '',
            'PYTHONPATH': str(multiprocess.ROOT),
        },
        timeout=runs.TIMEOUT_SECONDS,
    )
  assert status == 0, log
  assert runs.losses(folder) == pytest.approx(runs.losses(alone), rel=1e-5)
