# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Laws of who holds which rows, for many hosts that are not here."""

import jax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P
import numpy as np
import pytest

from t5wild.partitioning import layout
from t5wild.partitioning import mesh as mesh_lib
from tests.partitioning import fake_devices


def make_mesh(devices, **shape):
  sizes = mesh_lib.mesh_sizes(len(devices), mesh_shape=shape)
  return Mesh(
      mesh_lib.arrange_devices(devices, sizes=sizes), mesh_lib.MESH_AXES
  )


@pytest.mark.parametrize(
    'shape, spec, num_shards',
    [
        ({}, P('data'), 4),
        ({'model': 4}, P('data'), 4),
        ({'model': 16}, P('data'), 2),
        ({'model': 32}, P('data'), 1),
        ({'replica': 4}, P(('replica', 'data')), 4),
        ({'replica': 4}, P('data'), 1),
        ({'expert': 8}, P(('data', 'expert')), 4),
        ({'sequence': 8}, P('data'), 4),
    ],
)
def test_hosts_read_every_row_once_or_the_same_rows(shape, spec, num_shards):
  mesh = make_mesh(fake_devices.gpus(4, 8), **shape)
  layouts = [
      layout.data_layout(mesh, spec, batch_size=64, process_index=p)
      for p in range(4)
  ]
  rows = [
      layout.host_rows(mesh, spec, batch_size=64, process_index=p)
      for p in range(4)
  ]
  assert {found.num_shards for found in layouts} == {num_shards}
  per_shard = 64 // num_shards
  for found, held in zip(layouts, rows, strict=True):
    start = found.shard_id * per_shard
    np.testing.assert_array_equal(held, np.arange(start, start + per_shard))
  firsts = [found for found in layouts if found.is_first_host_in_replica_set]
  assert [found.shard_id for found in firsts] == list(range(num_shards))


def test_hosts_interleaved_on_a_torus_still_hold_every_row_once():
  mesh = make_mesh(fake_devices.tpus(4, 4, 1))
  rows = [
      layout.host_rows(mesh, P('data'), batch_size=32, process_index=p)
      for p in range(4)
  ]
  assert sorted(np.concatenate(rows).tolist()) == list(range(32))


def test_hosts_that_share_only_some_rows_are_refused():
  mesh = make_mesh(fake_devices.gpus(2, 3), model=2)
  with pytest.raises(ValueError, match='unevenly'):
    layout.data_layout(mesh, P('data'), batch_size=6, process_index=0)


@pytest.mark.parametrize('batch_size', [1, 12, 7])
def test_a_batch_that_does_not_divide_is_refused_with_the_next_sizes(
    batch_size
):
  mesh = make_mesh(fake_devices.gpus(1, 8))
  with pytest.raises(ValueError) as caught:
    layout.data_layout(mesh, P('data'), batch_size=batch_size, process_index=0)
  message = str(caught.value)
  assert str(batch_size) in message and 'multiple of 8' in message
  assert 'Set BATCH_SIZE to 8' in message and len(message.splitlines()) == 3


def test_a_host_without_devices_is_refused():
  mesh = make_mesh(fake_devices.gpus(2, 4))
  with pytest.raises(ValueError, match='Process 5'):
    layout.data_layout(mesh, P('data'), process_index=5)


def test_a_local_batch_becomes_the_global_one():
  mesh = make_mesh(jax.devices(), model=2)
  batch = {'x': np.arange(16).reshape(8, 2), 'w': np.ones(8, np.float32)}
  found = layout.global_batch(batch, mesh=mesh, spec=P('data'))
  for name, array in batch.items():
    np.testing.assert_array_equal(found[name], array)
    assert found[name].sharding.spec == P('data')


@pytest.mark.parametrize(
    'batch',
    [
        {'x': np.ones((8, 2)), 'y': np.ones(4)},
        {'x': np.ones((6, 2))},
        {'x': np.float32(1)},
        {'x': np.ones((0, 2))},
    ],
)
def test_a_local_batch_of_wrong_rows_is_refused(batch):
  mesh = make_mesh(jax.devices(), model=2)
  with pytest.raises(ValueError, match='multiple of 4') as caught:
    layout.global_batch(batch, mesh=mesh, spec=P('data'))
  assert "'x'" in str(caught.value)


def test_a_chunk_of_an_array_is_what_this_host_holds():
  mesh = make_mesh(fake_devices.gpus(2, 4), model=2)
  found = layout.local_chunk(mesh, P('data', 'model'), (8, 6))
  assert found == layout.LocalChunkInfo((slice(0, 4), slice(0, 6)), 0)
  found = layout.local_chunk(mesh, P(None, 'model'), (8, 6))
  assert found == layout.LocalChunkInfo((slice(0, 8), slice(0, 6)), 0)
