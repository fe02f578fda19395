# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Fast axes stay inside hosts and slices; where they can't, that is told."""

import dataclasses
import random

import numpy as np
import pytest

from t5wild.partitioning import fast_domains
from t5wild.partitioning import mesh
from tests.partitioning import fake_devices


def _arrange(devices, **given):
  sizes = {axis: given.get(axis, 1) for axis in mesh.MESH_AXES}
  return mesh.arrange_devices(devices, sizes=sizes)


def _crossing(array):
  return fast_domains.crossing_axes(array, axes=mesh.MESH_AXES)


def _slices(count, kind='TPU v5e'):
  return [
      dataclasses.replace(tpu, slice_index=i, id=16 * i + tpu.id)
      for i in range(count)
      for tpu in fake_devices.tpus(4, 4, 1, kind=kind)
  ]


@pytest.mark.parametrize('knows_slices', [True, False])
@pytest.mark.parametrize(
    'sizes',
    [
        {'data': 32, 'model': 8},
        {'replica': 32, 'data': 8},
        {'replica': 4, 'data': 16, 'model': 4},
        {'data': 64, 'model': 2, 'sequence': 2},
        {'data': 32, 'model': 2, 'expert': 4},
    ],
)
def test_on_32_hosts_only_replica_and_data_leave_a_host(sizes, knows_slices):
  devices = fake_devices.gpus(32, 8, slices=knows_slices)
  random.Random(0).shuffle(devices)
  assert set(_crossing(_arrange(devices, **sizes))) <= {'replica', 'data'}


@pytest.mark.parametrize(
    'sizes',
    [
        {'replica': 2, 'data': 16},
        {'replica': 2, 'data': 4, 'model': 4},
        {'data': 8, 'model': 4},
        {'data': 2, 'model': 16},
    ],
)
def test_on_two_slices_the_outermost_axis_alone_leaves_a_slice(sizes):
  array = _arrange(_slices(2), **sizes)
  outermost = 'replica' if 'replica' in sizes else 'data'
  assert _crossing(array) == {outermost: 2}


def test_ids_that_interleave_hosts_do_not_tear_a_host_apart():
  # Process 0 has the even ids: by id alone, neighbours would be on two hosts.
  devices = [
      fake_devices.Gpu(id=i, process_index=i % 2) for i in range(16)
  ]
  assert _crossing(_arrange(devices, data=4, model=4)) == {'data': 2}


def test_an_axis_larger_than_a_host_is_warned_of_with_what_a_byte_costs():
  devices = fake_devices.gpus(32, 8)
  array = _arrange(devices, data=16, model=16)
  (message,) = fast_domains.warn_of_crossings(array, axes=mesh.MESH_AXES)
  assert 'model axis of size 16 spans 2 hosts' in message
  # Eight of its members in each host share eight ports of 50 GB/s.
  assert '400 GB/s in place of 450' in message
  assert '1.1 times as long' in message
  assert 'Make model smaller' in message


def test_a_mesh_inside_its_domains_is_not_warned_of():
  array = _arrange(fake_devices.gpus(32, 8), data=32, model=8)
  assert fast_domains.warn_of_crossings(array, axes=mesh.MESH_AXES) == []


def test_a_process_for_each_gpu_of_one_host_is_one_domain():
  devices = fake_devices.gpus(8, 1)
  assert _crossing(_arrange(devices, model=8)) == {}


def test_hosts_of_unequal_gpus_keep_the_order_of_ids():
  devices = fake_devices.gpus(2, 4)[:-2] + [
      fake_devices.Gpu(id=8, process_index=2),
      fake_devices.Gpu(id=9, process_index=2),
  ]
  array = _arrange(devices, data=8)
  np.testing.assert_array_equal(
      [d.id for d in array.reshape(-1)], [d.id for d in devices]
  )
