# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Laws of mesh sizes and of the order of devices."""

import ast
import dataclasses
import math
import re

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies
import jax
import numpy as np
import pytest

from t5wild.partitioning import devices
from t5wild.partitioning import mesh
from tests.partitioning import fake_devices


def sizes(**given_sizes):
  return {axis: given_sizes.get(axis, 1) for axis in mesh.MESH_AXES}


def processes(array):
  return np.vectorize(lambda d: d.process_index)(array)


def test_without_a_word_every_device_is_data_parallel():
  assert mesh.mesh_sizes(8) == sizes(data=8)


@pytest.mark.parametrize('num_partitions', [1, 2, 4, 8])
def test_num_partitions_is_the_model_axis_on_any_platform(num_partitions):
  expected = sizes(data=8 // num_partitions, model=num_partitions)
  assert mesh.mesh_sizes(8, num_partitions=num_partitions) == expected


@pytest.mark.parametrize('submesh', [(2, 1, 1, 2), (4, 1, 1, 1), (1, 4), [4]])
def test_a_submesh_off_tpu_counts_by_its_product(submesh):
  assert mesh.mesh_sizes(8, model_parallel_submesh=submesh) == sizes(
      data=2, model=4
  )


def test_a_submesh_wins_over_num_partitions_as_in_t5x():
  found = mesh.mesh_sizes(
      8, num_partitions=1, model_parallel_submesh=(2, 1, 1, 1)
  )
  assert found == sizes(data=4, model=2)


def test_a_missing_data_axis_takes_the_devices_that_are_left():
  assert mesh.mesh_sizes(
      8, mesh_shape={'replica': 2, 'model': 2}
  ) == sizes(replica=2, data=2, model=2)
  assert mesh.mesh_sizes(
      8, mesh_shape={'data': 2, 'expert': -1}
  ) == sizes(data=2, expert=4)


def test_ici_and_dcn_shapes_multiply():
  found = mesh.mesh_sizes(
      16, ici_mesh_shape=[1, 4, 2], dcn_mesh_shape=[2, 1, 1]
  )
  assert found == sizes(replica=2, data=4, model=2)
  assert mesh.mesh_sizes(8, ici_mesh_shape=[4, 2]) == sizes(data=4, model=2)


@pytest.mark.parametrize(
    'arguments, named',
    [
        ({'num_partitions': 3}, "{'model': 3}"),
        ({'num_partitions': 16}, '[1, 2, 4, 8]'),
        ({'mesh_shape': {'data': 3, 'model': 2}}, '8 device(s)'),
        ({'mesh_shape': {'data': 0}}, 'at least 1'),
        ({'mesh_shape': {'modle': 2}}, "['modle']"),
        ({'mesh_shape': {'data': -1, 'model': -1}}, "['data', 'model']"),
        ({'ici_mesh_shape': [1, 2, 3, 4]}, '4 sizes'),
    ],
)
def test_a_mesh_that_does_not_fit_is_refused_with_value_and_mend(
    arguments, named
):
  with pytest.raises(ValueError) as caught:
    mesh.mesh_sizes(8, **arguments)
  message = str(caught.value)
  assert named in message
  assert len(message.splitlines()) == 3 and 'Expected' in message


@pytest.mark.parametrize(
    'arguments',
    [
        {'num_partitions': 3},
        {'num_partitions': 12},
        {'model_parallel_submesh': [3, 1, 1, 1], 'num_partitions': 4},
        {'ici_mesh_shape': [3, 1]},
        {'mesh_shape': {'data': 4, 'model': 4}},
    ],
)
@pytest.mark.parametrize('num_devices', [1, 8])
def test_the_flag_that_a_misfit_is_answered_with_fits(arguments, num_devices):
  with pytest.raises(mesh.MisfitError) as caught:
    mesh.mesh_sizes(num_devices, **arguments)
  (flag,) = re.findall(
      r'"--gin.partitioning.PjitPartitioner.(\w+=[^"]+)"', str(caught.value)
  )
  name, value = flag.split('=', 1)
  mesh.mesh_sizes(
      num_devices, **arguments | {name: ast.literal_eval(value)}
  )


@settings(max_examples=60, deadline=None)
@given(strategies.data())
def test_any_mesh_holds_every_device_once(data):
  parts = data.draw(
      strategies.lists(
          strategies.sampled_from([1, 2, 3]), min_size=5, max_size=5
      )
  )
  wanted = dict(zip(mesh.MESH_AXES, parts, strict=True))
  count = math.prod(parts)
  hosts = data.draw(
      strategies.sampled_from([n for n in range(1, count + 1) if not count % n])
  )
  devices = fake_devices.gpus(hosts, count // hosts)
  shuffled = data.draw(strategies.permutations(devices))
  array = mesh.arrange_devices(shuffled, sizes=wanted)
  assert array.shape == tuple(parts)
  # C order of the mesh is the order of hosts: the last axes stay inside one.
  assert list(array.reshape(-1)) == devices


def test_the_model_axis_of_gpus_stays_on_one_host():
  array = mesh.arrange_devices(
      fake_devices.gpus(4, 8), sizes=sizes(data=8, model=4)
  )
  hosts = processes(array).reshape(8, 4)
  assert (hosts == hosts[:, :1]).all()


def test_gpus_follow_the_topology_ids_when_processes_are_dealt_round_robin():
  # One process per GPU, SLURM's cyclic distribution over two nodes: process
  # 0, 2, 4, 6 on node 0.
  devices = [
      dataclasses.replace(gpu, process_index=(gpu.id % 4) * 2 + gpu.id // 4)
      for gpu in fake_devices.gpus(2, 4)
  ]
  array = mesh.arrange_devices(devices, sizes=sizes(data=2, model=4))
  assert [d.id for d in array.reshape(-1)] == list(range(8))


def test_slices_are_crossed_by_the_outermost_axes():
  array = mesh.arrange_devices(
      fake_devices.gpus(4, 8, slices=True),
      sizes=sizes(replica=2, data=4, model=4),
  )
  hosts = processes(array).reshape(2, 4, 4)
  assert (hosts == hosts[..., :1]).all()
  assert set(hosts[0].flat).isdisjoint(hosts[1].flat)


def test_more_model_parts_than_a_host_has_span_neighbouring_hosts():
  array = mesh.arrange_devices(
      fake_devices.gpus(4, 8, slices=True), sizes=sizes(data=2, model=16)
  )
  hosts = processes(array).reshape(2, 16)
  assert [sorted(set(row)) for row in hosts.tolist()] == [[0, 1], [2, 3]]


@pytest.mark.parametrize('hosts', [1, 2, 4])
def test_a_dcn_shape_works_where_devices_know_no_slice(hosts):
  devices = fake_devices.gpus(hosts, 8 // hosts)
  array = mesh.arrange_devices(
      devices,
      sizes=sizes(replica=2, data=2, model=2),
      dcn_sizes=sizes(replica=2),
  )
  assert list(array.reshape(-1)) == devices


def test_slices_that_no_axis_can_cross_are_refused():
  with pytest.raises(ValueError, match='multiple of 3'):
    mesh.arrange_devices(
        fake_devices.gpus(3, 8, slices=True),
        sizes=sizes(data=4, model=6) | {'data': 8, 'model': 2, 'replica': 1},
    )


@pytest.mark.parametrize(
    'kind, cores', [('TPU v3', 2), ('TPU v4', 1), ('TPU v5p', 1)]
)
@pytest.mark.parametrize('model', [1, 2, 4, 8])
def test_a_torus_of_any_kind_takes_num_partitions(kind, cores, model):
  devices = fake_devices.tpus(4, 4, 2, cores=cores, kind=kind)
  array = mesh.arrange_devices(
      devices, sizes=sizes(data=len(devices) // model, model=model)
  )
  assert sorted(d.id for d in array.flat) == [d.id for d in devices]


def test_a_submesh_on_a_torus_is_a_tile_of_neighbours():
  # T5X's default mesh of 4 partitions on a TPU v3 4x4: (2, 1, 1, 2).
  devices = fake_devices.tpus(4, 4, 1, cores=2, kind='TPU v3')
  array = mesh.arrange_devices(
      devices,
      sizes=sizes(data=8, model=4),
      model_parallel_submesh=(2, 1, 1, 2),
  ).reshape(8, 4)
  for row in array:
    x, y, _ = zip(*(d.coords for d in row), strict=True)
    assert (max(x) - min(x), max(y) - min(y)) == (1, 0)
    assert {d.core_on_chip for d in row} == {0, 1}
    assert len({d.process_index for d in row}) == 1


def test_a_submesh_that_does_not_tile_the_torus_is_refused():
  devices = fake_devices.tpus(4, 4, 1)
  with pytest.raises(ValueError, match=r'\(4, 4, 1, 1\)'):
    mesh.arrange_devices(
        devices,
        sizes=sizes(data=2, model=8),
        model_parallel_submesh=(1, 1, 8, 1),
    )


def test_two_tpu_slices_are_split_over_data():
  devices = fake_devices.tpus(4, 4, 1)
  devices += [
      dataclasses.replace(d, slice_index=1, id=d.id + 16) for d in devices
  ]
  array = mesh.arrange_devices(devices, sizes=sizes(data=16, model=2))
  where = np.vectorize(lambda d: d.slice_index)(array).reshape(16, 2)
  assert (where[:8] == 0).all() and (where[8:] == 1).all()


def test_a_platform_asked_for_and_not_got_is_an_error():
  with pytest.raises(ValueError) as caught:
    devices.select_devices(platform='gpu')
  assert "'cpu'" in str(caught.value) and 't5wild doctor' in str(caught.value)
  with pytest.raises(ValueError, match="'gpus'"):
    devices.select_devices(platform='gpus')
  assert devices.select_devices(platform='cpu') == jax.devices()


def test_a_backend_that_is_not_installed_is_an_error_with_the_mend():
  with pytest.raises(ValueError, match='t5wild doctor'):
    devices.select_devices('tpu')
