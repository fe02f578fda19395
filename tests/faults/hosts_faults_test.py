# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Two hosts with a supervisor each; one is lost for good, supervisor and all.
"""

import os
import signal
import time

import numpy as np
import pytest

from tests.faults import supervised

pytestmark = [pytest.mark.slow, pytest.mark.multiprocess]


def test_the_host_that_is_left_goes_on_alone_with_the_same_losses(
    undisturbed, tmp_path, capsys
):
  folder = tmp_path / 'run'
  hosts = [
      supervised.SupervisedRun(
          folder,
          processes=1,
          flags=[
              '--hosts=2', f'--host_name=host{index}',
              '--host_address=127.0.0.1', '--host_silent_seconds=10',
              '--host_gather_seconds=10',
          ],
      )  # fmt: skip
      for index in (0, 1)
  ]
  try:
    hosts[0].wait_for_step()
    signs = [hosts[0].sign(process) for process in (0, 1)]
    # Whichever of the two came first has process 0.
    (other,) = [s for s in signs if s.supervisor == hosts[1].process.pid]
    hosts[1].process.kill()
    os.kill(other.pid, signal.SIGKILL)
    fault = time.time()
    assert hosts[0].wait() == 0, hosts[0].log.read_text()
  finally:
    for host in hosts:
      host.close()
  assert hosts[0].exits() == ['lost_host', 'done']
  told = hosts[0].log.read_text()
  assert '1 of 2 hosts go on (host0)' in told
  assert '2 times the microbatches' in told
  losses = supervised.losses(folder)
  assert list(losses) == list(undisturbed)
  # On fewer processes sums are rounded in another order.
  np.testing.assert_allclose(
      list(losses.values()), list(undisturbed.values()), rtol=1e-5
  )
  supervised.tell(
      capsys, 'a host with its supervisor lost for good', hosts[0], fault
  )
