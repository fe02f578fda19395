# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Small sharded states, and how to compare them."""

from flax import traverse_util
import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec
import numpy as np

# Mesh shape -> how the tests shard a matrix on it.
MESH_SHAPES = ((8, 1), (4, 2), (1, 8))


def make_mesh(shape):
  devices = np.array(jax.devices()[:8]).reshape(shape)
  return jax.sharding.Mesh(devices, ('data', 'model'))


def make_numbers(seed=0):
  """A state dict of numpy arrays: parameters, their states, a step."""
  rng = np.random.default_rng(seed)
  kernel = rng.standard_normal((16, 8)).astype(np.float32)
  return {
      'target': {
          'encoder': {'kernel': kernel, 'scale': np.arange(8.0, dtype='f4')},
          'ids': np.arange(4, dtype=np.int32),
      },
      'state': {
          'step': np.int32(seed),
          'param_states': {'encoder': {'kernel': {'v': kernel**2}}},
      },
  }


def shardings_of(state, mesh):
  """Matrices over both axes, the rest on every device."""

  def sharding(leaf):
    is_matrix = len(leaf.shape) == 2
    spec = PartitionSpec('data', 'model') if is_matrix else PartitionSpec()
    return NamedSharding(mesh, spec)

  return jax.tree.map(sharding, state)


def abstract(state):
  return jax.tree.map(
      lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), state
  )


def place(numbers, mesh):
  return jax.tree.map(jax.device_put, numbers, shardings_of(numbers, mesh))


def assert_same_bits(actual, expected):
  actual = traverse_util.flatten_dict(actual, sep='/')
  expected = traverse_util.flatten_dict(expected, sep='/')
  assert sorted(actual) == sorted(expected)
  for key, value in expected.items():
    value = np.asarray(value)
    assert actual[key].dtype == value.dtype, key
    np.testing.assert_array_equal(np.asarray(actual[key]), value, key)
