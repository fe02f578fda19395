# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Spares first, then fewer places whose number divides the planned one."""

import pytest

from t5wild.launch import failures
from t5wild.launch import places as places_lib


def _failure(kind, line='', process=0):
  return failures.Failure(kind=kind, code=1, process=process, line=line)


def _blame(*ends, places=(0, 1), **arguments):
  return places_lib.to_blame(
      ends,
      seating=places_lib.Seating(places=places, fold=1),
      **{'is_one_process': False, 'in_a_row': 3, **arguments},
  )


def test_a_spare_takes_over_and_then_fewer_places_divide_the_planned():
  places = places_lib.Places(planned=4, spares=1)
  assert places.seating() == places_lib.Seating(places=(0, 1, 2, 3), fold=1)
  assert 'spare 4 takes it over' in places.leave_out(1)
  assert places.seating() == places_lib.Seating(places=(0, 2, 3, 4), fold=1)
  told = places.leave_out(0)
  assert '2 of 4 places go on' in told and '2 times as many' in told
  assert places.seating() == places_lib.Seating(places=(2, 3), fold=2)
  # A third one is free: it takes over, nothing else changes.
  assert 'spare 4 takes it over' in places.leave_out(3)
  assert places.leave_out(2) and places.seating().fold == 4
  assert places.leave_out(4) == ''
  assert places.seating().places == (4,)


@pytest.mark.parametrize('planned', [1, 2, 3, 6, 8, 12])
def test_batches_divide_as_planned_whoever_is_left(planned):
  places = places_lib.Places(planned=planned)
  for gone in range(planned - 1):
    places.leave_out(gone)
    seating = places.seating()
    assert len(seating.places) * seating.fold == planned
    assert not set(seating.places) & set(range(gone + 1))


def test_a_failing_device_is_left_out_at_once():
  line = 'SILENT CORRUPTION: x differ on device 0 of process 1 on h (cpu:1)'
  assert _blame(_failure(failures.DEVICE, line)) == 1
  assert _blame(_failure(failures.DEVICE, 'NVRM: Xid 79', process=1)) == 1


def test_suspects_without_a_majority_are_not_left_out():
  line = 'x differ on one of device 0 of process 0 and device 0 of process 1'
  assert _blame(_failure(failures.DEVICE, line)) is None


def test_one_kill_speaks_against_nobody_and_three_do():
  kill = _failure(failures.KILLED, process=1)
  assert _blame(kill) is None and _blame(kill, kill) is None
  assert _blame(kill, kill, kill) == 1
  other = _failure(failures.KILLED, process=0)
  assert _blame(kill, other, kill) is None
  assert _blame(kill, _failure(failures.UNKNOWN), kill) is None


def test_of_a_hang_the_one_who_lags_is_to_blame_and_not_who_tells():
  line = (
      "process 0 hangs in 'step' after step 3: nothing finished; process 1 on "
      'h (pid 7) gave no sign of life for 9 s'
  )
  hang = _failure(failures.HANG, line, process=0)
  assert _blame(hang, hang, hang) == 1


def test_of_one_process_its_devices_are_the_places():
  line = 'SILENT CORRUPTION: x differ on device 2 of process 0 (cpu:2)'
  places = (0, 1, 3, 4)
  failure = _failure(failures.DEVICE, line)
  assert _blame(failure, is_one_process=True, places=places) == 3
  kill = _failure(failures.KILLED)
  assert _blame(kill, kill, kill, is_one_process=True) is None


def test_processes_see_the_devices_of_their_place_alone():
  base = {'CUDA_VISIBLE_DEVICES': 'a,b,c,d,e,f'}
  devices = places_lib.devices_of(base)
  found = places_lib.environments(
      base, places_lib.Seating(places=(0, 2), fold=1), devices=devices,
      num_processes=2, total=3,
  )  # fmt: skip
  assert [one['CUDA_VISIBLE_DEVICES'] for one in found] == ['a,b', 'e,f']
  assert [one['T5WILD_PLACE'] for one in found] == ['0', '2']


def test_one_process_sees_all_devices_but_those_left_out():
  base = {'CUDA_VISIBLE_DEVICES': 'a,b,c,d'}
  places = places_lib.Places(planned=4)

  def seen():
    (one,) = places_lib.environments(
        base, places.seating(), devices=['a', 'b', 'c', 'd'],
        num_processes=1, total=4,
    )  # fmt: skip
    return one['CUDA_VISIBLE_DEVICES']

  assert seen() == 'a,b,c,d'
  places.leave_out(1)
  assert seen() == 'a,c'


def test_of_a_cpu_the_number_of_devices_changes():
  base = {
      'JAX_PLATFORMS': 'cpu',
      'XLA_FLAGS': '--a=1 --xla_force_host_platform_device_count=8 --b=2',
  }
  assert len(places_lib.devices_of(base)) == 8
  seen = places_lib.seeing_only(base, ['0', '1'])
  assert seen['XLA_FLAGS'] == (
      '--a=1 --xla_force_host_platform_device_count=2 --b=2'
  )


@pytest.mark.parametrize('left_out', [[3], [0, 1, 2]])
def test_places_that_are_not_there_or_all_of_them_are_refused(left_out):
  with pytest.raises(ValueError, match=r'--leave_out names .*expected'):
    places_lib.Places(planned=2, spares=1, left_out=left_out)
