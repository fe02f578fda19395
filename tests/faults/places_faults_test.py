# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A host that is lost for good, and a device that computes wrongly."""

import sys

import numpy as np
import pytest

from t5wild import exit_codes
from t5wild.launch import places
from tests.faults import parameter_address
from tests.faults import supervised

pytestmark = [pytest.mark.slow, pytest.mark.multiprocess]


def _wrapper(tmp_path) -> list[str]:
  """Comes before the command: place 1 cannot be used once a file is there."""
  path = tmp_path / 'wrapper.sh'
  path.write_text(
      f'test "${places.VARIABLE}" = 1 -a -e {tmp_path}/lost && kill -9 $$\n'
      f'shift; exec {sys.executable} -m t5wild.cli "$@"\n'
  )
  return ['bash', str(path)]


@pytest.mark.parametrize('spares', [0, 1])
def test_a_host_lost_for_good_is_replaced_or_its_part_done_by_the_others(
    spares, start, undisturbed, tmp_path, capsys
):
  run = start(
      first=_wrapper(tmp_path),
      flags=[f'--spares={spares}', '--leave_out_after=2'],
  )
  run.wait_for_step()
  (tmp_path / 'lost').touch()
  fault = run.send(1, 9)
  assert run.wait() == 0, run.log.read_text()
  assert run.exits() == ['killed', 'killed', 'done']
  losses = supervised.losses(run.folder)
  assert list(losses) == list(undisturbed)
  if spares:
    assert losses == undisturbed
    name = 'a host lost for good, a spare takes over'
  else:
    # On fewer processes sums are rounded in another order.
    np.testing.assert_allclose(
        list(losses.values()), list(undisturbed.values()), rtol=1e-5
    )
    told = run.log.read_text()
    assert '1 of 2 places go on' in told and '2 times the microbatches' in told
    name = 'a host lost for good, without spares'
  supervised.tell(capsys, name, run, fault, of_attempt=2)


def _harmed(start, tmp_path, **arguments):
  """A run of which a bit is flipped after step 25; returns it, and when."""
  run = start(recipe='corruption.gin', FOLDER=tmp_path, **arguments)
  return run, parameter_address.flip_bit(tmp_path)


def test_a_flipped_bit_in_one_of_two_replicas_is_found_and_undone(
    start, undisturbed, tmp_path, capsys
):
  run, fault = _harmed(start, tmp_path)
  assert run.wait() == 0, run.log.read_text()
  assert run.exits() == ['device', 'done']
  told = run.log.read_text()
  assert 'SILENT CORRUPTION after step' in told
  assert 'no majority tells which' in told
  # The one saved between the flip and the check that saw it.
  assert 'checkpoints [30] are in quarantine' in told
  assert supervised.losses(run.folder) == undisturbed
  supervised.tell(capsys, 'a flipped bit in one of two replicas', run, fault)


def test_of_four_replicas_the_device_is_named_and_left_out(
    start, undisturbed, tmp_path, capsys
):
  run, fault = _harmed(
      start, tmp_path, processes=1, extra={
          'XLA_FLAGS': '--xla_force_host_platform_device_count=4',
          'JAX_PLATFORMS': 'cpu',
      },
  )  # fmt: skip
  assert run.wait() == 0, run.log.read_text()
  assert run.exits() == ['device', 'done']
  (end,) = [e for e in run.events() if e.name == 'supervisor/exit/device']
  assert end.value == exit_codes.BAD_HARDWARE.code
  assert 'differ on device 0 of process 0' in end.text
  (left_out,) = [e for e in run.events() if e.name == 'supervisor/left_out']
  assert 'place 0 is left out' in left_out.text
  assert '2 of 4 places go on' in left_out.text
  losses = supervised.losses(run.folder)
  assert list(losses) == list(undisturbed)
  np.testing.assert_allclose(
      list(losses.values()), list(undisturbed.values()), rtol=1e-5
  )
  supervised.tell(capsys, 'a flipped bit in one of four replicas', run, fault)


def test_with_the_check_off_a_flipped_bit_is_a_silent_wrong_result(
    start, undisturbed, tmp_path
):
  run, _ = _harmed(start, tmp_path, train_script__train__corruption_cls=None)
  assert run.wait() == 0, run.log.read_text()
  assert run.exits() == ['done']
  losses = supervised.losses(run.folder)
  assert losses[25] == undisturbed[25] and losses != undisturbed
