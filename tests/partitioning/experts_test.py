# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Experts lie apart on their mesh axis, and compute what they do on one."""

from flax import linen as nn
from flax.linen import partitioning as flax_partitioning
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P
import numpy as np
import pytest

from t5wild.partitioning import experts
from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.trainer import initializer

_NUM_EXPERTS = 4
_SHAPES = {'inputs': (8, 6), 'experts': (8,)}


class _Experts(nn.Module):
  """Each row goes to the expert that it names."""

  @nn.compact
  def __call__(self, inputs, experts):
    weights = flax_partitioning.param_with_axes(
        'wi', nn.initializers.normal(1.0), (_NUM_EXPERTS, 6, 10),
        axes=('expert', 'embed', 'expert_mlp'),
    )  # fmt: skip
    inputs = flax_partitioning.with_sharding_constraint(
        inputs, ('batch', 'embed')
    )
    chosen = jax.nn.one_hot(experts, _NUM_EXPERTS)
    return jnp.einsum('be,bi,eio->bo', chosen, inputs, weights)


def _init(rng, input_shapes, input_types=None):
  del input_types
  return _Experts().init(
      rng,
      jnp.zeros(input_shapes['inputs']),
      jnp.zeros(input_shapes['experts'], int),
  )


def _outputs(partitioner):
  """The outputs of 8 rows, and the state that gave them."""
  states = initializer.TrainStateInitializer(
      optimizer_def=None,
      init_fn=_init,
      input_shapes=_SHAPES,
      partitioner=partitioner,
  )
  state = states.from_scratch(jax.random.PRNGKey(0))
  batch = {
      'inputs': np.arange(48, dtype=np.float32).reshape(8, 6) / 48,
      'experts': np.arange(8) % _NUM_EXPERTS,
  }
  apply = partitioner.partition(
      lambda state, batch: _Experts().apply({'params': state.params}, **batch),
      in_axis_resources=(
          states.train_state_axes, partitioner.data_partition_spec
      ),
      out_axis_resources=None,
  )
  return np.asarray(apply(state, batch)), state


@pytest.mark.parametrize(
    ('at_most', 'num_partitions', 'sizes'),
    [
        (4, None, (2, 4, 1)),
        (6, None, (2, 4, 1)),
        (64, 1, (1, 8, 1)),
        (3, 2, (2, 2, 2)),
        (1, 4, (2, 1, 4)),
    ],
)
def test_the_expert_axis_is_the_largest_that_fits(
    at_most, num_partitions, sizes
):
  partitioner = experts.MoePjitPartitioner(at_most, num_partitions)
  shape = partitioner.mesh.shape
  assert tuple(shape[n] for n in ('data', 'expert', 'model')) == sizes
  assert partitioner.data_mesh_size == sizes[0] * sizes[1]
  assert partitioner.get_data_layout(16).batch_size == 16


def test_experts_apart_compute_what_they_do_together():
  apart, state = _outputs(experts.MoePjitPartitioner(_NUM_EXPERTS, 2))
  assert state.params['wi'].sharding.spec == P('expert', 'model', None)
  together, _ = _outputs(partitioner_lib.PjitPartitioner())
  # Sums of six products below 4, in another order: a few float32 roundings.
  np.testing.assert_allclose(apart, together, rtol=0, atol=4e-6)


@pytest.mark.parametrize('number', [0, -1, 2.0, None])
def test_a_number_of_parts_that_is_none_is_refused(number):
  with pytest.raises(ValueError, match='num_expert_partitions is'):
    experts.MoePjitPartitioner(number)
