# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's functions on meshes, on the devices of this process."""

import types

import jax
from jax.sharding import PartitionSpec
import numpy as np

from t5wild.partitioning import t5x_names


def test_the_default_mesh_is_that_of_a_partitioner():
  mesh = t5x_names.default_mesh(2)
  assert mesh.shape['model'] == 2
  assert mesh.size == jax.device_count()


def test_one_host_holds_all_chunks():
  chunker = t5x_names.LocalChunker(t5x_names.default_mesh(2))
  assert set(chunker.num_chunks.values()) == {1}
  info = chunker.get_local_chunk_info((8, 4), ['data', None])
  assert info.slice == (slice(0, 8), slice(None))
  assert info.replica_id == 0


def test_a_tpu_has_coordinates_and_other_devices_their_number():
  tpu = types.SimpleNamespace(coords=(1, 0, 2), core_on_chip=1)
  assert t5x_names.get_coords(tpu) == (1, 0, 2, 1)
  assert t5x_names.bounds_from_last_device(tpu) == (2, 1, 3, 2)
  cpu = jax.devices()[-1]
  assert t5x_names.get_coords(cpu) == (0, jax.device_count() - 1)


def test_a_mesh_is_defined_within_its_context_only():
  assert not t5x_names.global_mesh_defined()
  mesh = t5x_names.default_mesh(1)
  with mesh:
    assert t5x_names.global_mesh_defined()
  array = t5x_names.host_local_array_to_global_array(
      np.arange(16), mesh, PartitionSpec('data')
  )
  assert array.shape == (16,)
