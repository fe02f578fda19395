# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays made of others: every part read is that part of the whole."""

import itertools

import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec
import numpy as np
import pytest

from t5wild.checkpoints import stored
from tests.checkpoints import checkpoint_states as states


def _array(shape, seed=0):
  value = np.random.default_rng(seed).standard_normal(shape).astype('f4')
  return stored.InMemory(value, key='a')


def _cases():
  a, b = _array((6, 4, 8)), _array((24, 8), seed=1)
  return {
      'layer': (stored.Layer(a, axis=1, number=2), a.value[:, 2]),
      'stack': (
          stored.Stack([b, _array((24, 8), seed=2)], axis=1),
          np.stack([b.value, _array((24, 8), seed=2).value], 1),
      ),
      'joined': (stored.reshape(a, (6, 32)), a.value.reshape(6, 32)),
      'joined first': (stored.reshape(a, (24, 8)), a.value.reshape(24, 8)),
      'all joined': (stored.reshape(a, (192,)), a.value.reshape(192)),
      'split': (stored.reshape(b, (6, 4, 8)), b.value.reshape(6, 4, 8)),
      'split twice': (
          stored.reshape(b, (2, 3, 4, 8)),
          b.value.reshape(2, 3, 4, 8),
      ),
      'mean': (
          stored.Mean(a, over=(0, 2), factor=3.0),
          (3 * a.value.astype('f8').mean((0, 2))).astype('f4'),
      ),
      'cast': (stored.Cast(a, np.float16), a.value.astype(np.float16)),
  }


@pytest.mark.parametrize('name', _cases())
def test_every_part_is_that_part_of_the_whole(name):
  array, whole = _cases()[name]
  assert array.shape == whole.shape
  np.testing.assert_array_equal(np.asarray(array), whole)
  ends = [sorted({0, 1, n // 2, n - 1, n}) for n in whole.shape]
  parts = [list(itertools.combinations(e, 2)) for e in ends]
  for index in itertools.product(*parts):
    index = tuple(slice(*part) for part in index)
    np.testing.assert_array_equal(array.read(index), whole[index], str(index))


def test_dimensions_that_cannot_be_joined_are_told():
  assert stored.reshape(_array((6, 4)), (8, 3)) is None
  assert stored.reshape(_array((6, 4)), (6, 5)) is None
  assert stored.joined_dims((32, 64), (32, 4, 16)) == [(0,), (1, 2)]


def _place(shape, spec):
  """A matrix on a mesh, and the parts of it that were read."""
  array = _array((16, 8))
  indices = []

  class Watched(stored.InMemory):
    def read(self, index):
      indices.append([(part.start, part.stop) for part in index])
      return super().read(index)

  sharding = NamedSharding(states.make_mesh(shape), PartitionSpec(*spec))
  placed = stored.place(
      Watched(array.value, key='a'),
      jax.ShapeDtypeStruct((16, 8), np.float32, sharding=sharding),
  )
  np.testing.assert_array_equal(placed, array.value)
  assert placed.sharding == sharding
  return indices


@pytest.mark.parametrize('shape', states.MESH_SHAPES)
@pytest.mark.parametrize('spec', [('data', 'model'), ('data', None), ()])
def test_shards_of_a_process_are_read_at_once(shape, spec):
  assert _place(shape, spec) == [[(0, 16), (0, 8)]]


@pytest.mark.parametrize('shape', states.MESH_SHAPES)
def test_large_array_is_read_shard_by_shard_each_once(shape, monkeypatch):
  monkeypatch.setattr(stored, '_MOST_BLOCK_BYTES', 16 * 8 * 4 - 1)
  size = 16 // shape[0]
  assert sorted(_place(shape, ('data', None))) == [
      [(start, start + size), (0, 8)] for start in range(0, 16, size)
  ]
