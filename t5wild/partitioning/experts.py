# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Partitions mixtures of experts as T5X's recipes ask for it.

The experts are the network's: what it names by the axis `expert` goes over the
mesh axis of that name, and a batch goes over it as well as over `data`.
"""

from collections.abc import Sequence
import functools

from jax.sharding import Mesh

from t5wild.partitioning import devices as devices_lib
from t5wild.partitioning import mesh as mesh_lib
from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.partitioning import rules as rules_lib


def standard_logical_axis_rules(
    activation_partitioning_dims: int = 2,
    parameter_partitioning_dims: int = 1,
    additional_rules: rules_lib.LogicalAxisRules | None = None,
) -> list[tuple[str, str | tuple[str, ...] | None]]:
  """T5X's rules for mixtures of experts: activations are split in two ways."""
  return rules_lib.standard_logical_axis_rules(
      activation_partitioning_dims,
      parameter_partitioning_dims,
      additional_rules,
  )


class MoePjitPartitioner(partitioner_lib.PjitPartitioner):
  """Splits what would be data parallel into experts and data."""

  def __init__(  # T5X's signature
      self,
      num_expert_partitions: int,
      num_partitions: int | None = None,
      model_parallel_submesh: Sequence[int] | None = None,
      params_on_devices: bool = True,
      logical_axis_rules: rules_lib.LogicalAxisRules | None = None,
  ):
    """Keeps the mesh's description and checks the rules.

    Args:
      num_expert_partitions: the most parts the experts are split into, at most
        their number; the largest divisor of the data parallel devices up to
        that is taken.
      num_partitions: see PjitPartitioner.
      model_parallel_submesh: see PjitPartitioner.
      params_on_devices: see PjitPartitioner.
      logical_axis_rules: see PjitPartitioner; None takes those of this file.

    Raises:
      ValueError: no number of parts, or no rules.
    """
    if not isinstance(num_expert_partitions, int) or num_expert_partitions < 1:
      raise ValueError(
          f'num_expert_partitions is {num_expert_partitions!r}: expected an '
          'integer of at least 1. Set NUM_EXPERT_PARTITIONS to the number of '
          'experts, or to fewer.'
      )
    if logical_axis_rules is None:
      logical_axis_rules = standard_logical_axis_rules()
    super().__init__(
        num_partitions,
        model_parallel_submesh,
        params_on_devices,
        logical_axis_rules=logical_axis_rules,
    )
    self._num_expert_partitions = num_expert_partitions

  @functools.cached_property
  def mesh(self) -> Mesh:
    """The mesh over all devices of all processes."""
    sizes = mesh_lib.mesh_sizes(
        len(devices_lib.select_devices(self._backend, platform=self._platform)),
        num_partitions=self._num_partitions,
        model_parallel_submesh=self._model_parallel_submesh,
    )
    expert = min(self._num_expert_partitions, sizes['data'])
    while sizes['data'] % expert:
      expert -= 1
    self._mesh_shape = {
        **sizes, 'data': sizes['data'] // expert, 'expert': expert
    }
    return partitioner_lib.PjitPartitioner.mesh.func(self)
