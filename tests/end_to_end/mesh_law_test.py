# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Parallelism is a number: no mesh has a loss curve of its own.

Real text, packing and dropout on. The tolerance is the issue's: float32 sums
are taken in another order on another mesh, nothing else may differ.
"""

import jax
import numpy as np
import pytest

from t5wild import optimizers
from tests.end_to_end import conftest

MESHES = {
    'data parallel': {'mesh_shape': {'data': 8}},
    'fully sharded': {
        'mesh_shape': {'data': 8}, 'parameter_partitioning_dims': 2,
    },
    'tensor parallel': {'mesh_shape': {'data': 2, 'model': 4}},
    'two-dimensional': {
        'mesh_shape': {'data': 4, 'model': 2},
        'activation_partitioning_dims': 2,
        'parameter_partitioning_dims': 2,
    },
    'replicas of a two-dimensional mesh': {
        'mesh_shape': {'replica': 2, 'data': 2, 'model': 2},
        'parameter_partitioning_dims': 2,
    },
}
# Every device computes all of it, as one device would.
_UNDIVIDED = {'is_divided': False}
_FIRST_STEPS = 20


@pytest.fixture(scope='module')
def undivided_losses(start_run, packed_batches):
  return start_run(**_UNDIVIDED).losses(
      packed_batches[:_FIRST_STEPS]
  )


@pytest.mark.parametrize('name', MESHES)
def test_the_first_losses_are_those_of_the_undivided_model(
    name, start_run, packed_batches, undivided_losses
):
  losses = start_run(**MESHES[name]).losses(packed_batches[:_FIRST_STEPS])
  assert losses[-1] < losses[0]
  np.testing.assert_allclose(losses, undivided_losses, rtol=1e-5)


@pytest.mark.parametrize('num_microbatches', [2, 4])
def test_global_semantics_give_the_same_losses_for_any_microbatches(
    num_microbatches, start_run, packed_batches, undivided_losses
):
  run = start_run(
      mesh_shape={'data': 4, 'model': 2}, num_microbatches=num_microbatches
  )
  losses = run.losses(packed_batches[:_FIRST_STEPS])
  np.testing.assert_allclose(losses, undivided_losses, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize('name', ['adamw', 'lion'])
def test_optax_steps_agree_and_their_moments_lie_like_parameters(
    name, start_run, packed_batches
):
  def run(**mesh):
    model = conftest.make_model()
    model.optimizer_def = getattr(optimizers, name)()
    started = start_run(model=model, **mesh)
    return started, started.losses(packed_batches[:5])

  _, expected = run(**_UNDIVIDED)
  divided, losses = run(**MESHES['two-dimensional'])
  np.testing.assert_allclose(losses, expected, rtol=1e-5)
  state = divided.trainer.train_state
  parameters = jax.tree_util.tree_leaves_with_path(state.params)
  moments = jax.tree_util.tree_leaves_with_path(state.param_states)
  for path, parameter in parameters:
    own = [x for where, x in moments if where[-len(path):] == path]
    assert own
    for moment in own:
      assert moment.shape == parameter.shape
      assert moment.sharding == parameter.sharding
  assert any(not x.sharding.is_fully_replicated for _, x in parameters)


@pytest.mark.slow
@pytest.mark.parametrize('name', ['fully sharded', 'two-dimensional'])
def test_bfloat16_losses_are_those_of_the_undivided_model(
    name, start_run, packed_batches
):
  def losses(**mesh):
    model = conftest.make_model(dtype='bfloat16')
    return start_run(model=model, **mesh).losses(packed_batches[:10])

  found = losses(**MESHES[name])
  assert found[-1] < found[0]
  # bfloat16 has 8 bits; what is rounded differs with the order of sums.
  np.testing.assert_allclose(found, losses(**_UNDIVIDED), rtol=5e-3)


@pytest.mark.slow
def test_losses_still_agree_after_two_hundred_steps(start_run, packed_batches):
  batches = packed_batches * (200 // len(packed_batches))
  runs = [
      start_run(**mesh).losses(batches)
      for mesh in (_UNDIVIDED, *MESHES.values())
  ]
  for losses in runs[1:]:
    np.testing.assert_allclose(losses, runs[0], rtol=1e-3)


@pytest.mark.slow
def test_accumulated_losses_still_agree_after_two_hundred_steps(
    start_run, packed_batches
):
  batches = packed_batches * (200 // len(packed_batches))
  whole = start_run(**_UNDIVIDED).losses(batches)
  accumulated = start_run(
      **MESHES['two-dimensional'], num_microbatches=2
  ).losses(batches)
  np.testing.assert_allclose(accumulated, whole, rtol=1e-3)
