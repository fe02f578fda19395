# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""One rank is slow: the others wait for it, and it is named."""

import signal
import socket
import sys

import pytest

from t5wild import exit_codes
from tests.faults import supervised

pytestmark = [pytest.mark.slow, pytest.mark.multiprocess]


def test_a_rank_whose_data_come_late_is_named_and_changes_no_loss(
    start, undisturbed, tmp_path
):
  wrapper = tmp_path / 'wrapper.sh'
  wrapper.write_text(
      'case "$*" in *--process_index=1*) export SLOW=0.3;; esac\n'
      f'shift; exec {sys.executable} -m t5wild.cli "$@"\n'
  )
  run = start(
      first=['bash', str(wrapper)],
      TRAIN_STEPS=1_000_000,
      train_script__train__train_dataset_cfg='@broken_data.SlowConfig()',
  )
  run.wait_for_event('vitals/straggler')
  run.process.send_signal(signal.SIGUSR1)
  assert run.wait() == exit_codes.PREEMPTED.code, run.log.read_text()
  told = [e.text for e in run.events() if e.name == 'vitals/straggler']
  assert f'process 1 on {socket.gethostname()} takes' in told[0]
  assert 'host seconds' in told[0]
  losses = supervised.losses(run.folder)
  both = losses.keys() & undisturbed.keys()
  assert all(losses[step] == undisturbed[step] for step in both)
  assert len(both) > 20
