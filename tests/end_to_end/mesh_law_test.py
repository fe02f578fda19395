# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Parallelism is a number: no mesh has a loss curve of its own.

Real text, packing and dropout on. The tolerance is the issue's: float32 sums
are taken in another order on another mesh, nothing else may differ.
"""

import numpy as np
import pytest

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
def test_losses_still_agree_after_two_hundred_steps(start_run, packed_batches):
  batches = packed_batches * (200 // len(packed_batches))
  runs = [
      start_run(**mesh).losses(batches)
      for mesh in (_UNDIVIDED, *MESHES.values())
  ]
  for losses in runs[1:]:
    np.testing.assert_allclose(losses, runs[0], rtol=1e-3)
