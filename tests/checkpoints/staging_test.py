# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Copies that a save reads while the next step overwrites the state."""

import gc

import jax
import numpy as np
import pytest

from t5wild.checkpoints import staging
from t5wild.checkpoints import transforms
from tests.checkpoints import checkpoint_states as states


def _state(seed, mesh):
  return transforms.flatten(states.place(states.make_numbers(seed), mesh))


def _pointers(arrays):
  return {
      key: [shard.data.unsafe_buffer_pointer() for shard in
            array.addressable_shards]
      for key, array in arrays.items()
  }  # fmt: skip


@pytest.mark.parametrize('shape', [(4, 2), (1, 8)])
def test_copies_share_no_memory_with_the_state(shape):
  state = _state(0, states.make_mesh(shape))
  copies = staging.HostStaging().copy(state)
  ours, theirs = _pointers(copies), _pointers(state)
  for key in state:
    assert not set(ours[key]) & set(theirs[key])
    assert copies[key].sharding == state[key].sharding
    np.testing.assert_array_equal(copies[key], state[key])


def test_memory_is_kept_from_copy_to_copy():
  mesh = states.make_mesh((4, 2))
  stage = staging.HostStaging()
  copies = stage.copy(_state(1, mesh))
  first = _pointers(copies)
  jax.tree.map(np.asarray, copies)  # As a save reads them.
  del copies
  gc.collect()
  numbers = transforms.flatten(states.make_numbers(2))
  copies = stage.copy(_state(2, mesh))
  assert _pointers(copies) == first
  for key, value in numbers.items():
    np.testing.assert_array_equal(copies[key], value)


def test_copies_being_read_are_never_overwritten():
  mesh = states.make_mesh((4, 2))
  stage = staging.HostStaging()
  copies = stage.copy(_state(1, mesh))
  read = {key: np.asarray(array) for key, array in copies.items()}
  stage.copy(_state(2, mesh))
  for key, value in transforms.flatten(states.make_numbers(1)).items():
    np.testing.assert_array_equal(read[key], value)


def test_state_of_another_shape_gets_other_copies():
  stage = staging.HostStaging()
  stage.copy({'a': jax.numpy.zeros(3)})
  assert stage.copy({'a': jax.numpy.ones(4)})['a'].shape == (4,)
  assert stage.copy({'b': jax.numpy.ones(4)})['b'].shape == (4,)


def test_other_leaves_are_passed_on():
  assert staging.HostStaging().copy({'a': 3, 'b': 'x'}) == {'a': 3, 'b': 'x'}
