# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Every file of gin/topologies makes the mesh its head speaks of."""

import dataclasses

import gin
import jax
from jax.sharding import PartitionSpec as P
import pytest

from t5wild import partitioning
from t5wild.partitioning import fast_domains
from t5wild.partitioning import mesh as mesh_lib
from t5wild.partitioning import startup_flags
from tests import multiprocess
from tests.partitioning import fake_devices

FOLDER = multiprocess.ROOT / 'gin' / 'topologies'

_CPUS = [
    dataclasses.replace(gpu, platform='cpu') for gpu in fake_devices.gpus(1, 8)
]
_V5E = fake_devices.tpus(16, 16, 1, kind='TPU v5 lite')
# name -> devices, sizes that are not 1, spec of an (embed, mlp) kernel
TOPOLOGIES = {
    'cpu': (_CPUS, {'data': 8}, P(None, 'model')),
    'one_gpu': (fake_devices.gpus(1, 1), {}, P(None, 'model')),
    'h100_8': (fake_devices.gpus(1, 8), {'data': 8}, P('data', 'model')),
    'h100_pod': (
        fake_devices.gpus(4, 8, slices=True),
        {'replica': 4, 'data': 8},
        P('data', 'model'),
    ),
    'h100_pod_tensor_parallel': (
        fake_devices.gpus(4, 8, slices=True),
        {'data': 8, 'model': 4},
        P('data', 'model'),
    ),
    'h100_64': (fake_devices.gpus(8, 8), {'data': 64}, P('data', 'model')),
    'h100_256': (
        fake_devices.gpus(32, 8),
        {'replica': 4, 'data': 64},
        P('data', 'model'),
    ),
    'v6e_64': (
        fake_devices.tpus(8, 8, 1, kind='TPU v6 lite'),
        {'data': 64},
        P('data', 'model'),
    ),
    'v5e_256': (_V5E, {'data': 256}, P('data', 'model')),
    'v5p_128': (
        fake_devices.tpus(4, 4, 4, kind='TPU v5p'),
        {'data': 16, 'model': 4},
        P('data', 'model'),
    ),
}


def test_every_topology_is_listed():
  assert {path.stem for path in FOLDER.glob('*.gin')} == set(TOPOLOGIES)


@pytest.fixture
def run_config():
  gin.clear_config()
  yield lambda name: gin.parse_config([
      'from __gin__ import dynamic_registration',
      'from t5wild import partitioning',
      f"include '{FOLDER / name}.gin'",
      # As gin/runs/pretrain.gin has it.
      'partitioning.PjitPartitioner.logical_axis_rules = '
      '@partitioning.standard_logical_axis_rules()',
  ])
  gin.clear_config()


@pytest.mark.parametrize('name', TOPOLOGIES)
def test_a_topology_makes_the_mesh_it_speaks_of(name, run_config, monkeypatch):
  devices, sizes, kernel = TOPOLOGIES[name]
  run_config(name)
  # This process has started its devices already.
  monkeypatch.setattr(startup_flags, 'use', lambda *_, **__: None)
  partitioner = gin.get_configurable(partitioning.PjitPartitioner)()
  monkeypatch.setattr(jax, 'devices', lambda *_: devices)
  shape = {axis: n for axis, n in partitioner.mesh.shape.items() if n > 1}
  assert shape == sizes
  rules = dict(partitioner.logical_axis_rules)
  assert P(rules['embed'], rules['mlp']) == kernel


@pytest.mark.parametrize('name', TOPOLOGIES)
def test_no_fast_axis_of_a_topology_leaves_its_host_or_slice(name):
  devices, sizes, _ = TOPOLOGIES[name]
  axes = partitioning.MESH_AXES
  array = mesh_lib.arrange_devices(
      devices, sizes={axis: sizes.get(axis, 1) for axis in axes}
  )
  assert fast_domains.warn_of_crossings(array, axes=axes) == []
