# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Devices that only their compiler knows: JAX's topology descriptions."""

from typing import Any

import jax
from jax.experimental import topologies as jax_topologies

from t5wild.planner import gpu_facts
from t5wild.planner import topologies

# Both cores of these chips compute as one device.
_MEGACORE = ('v4', 'v5p')


def devices_of(topology: topologies.Topology) -> list[Any]:
  """Returns the devices; programs can be compiled for them, and not run.

  Raises:
    topologies.TopologyError: the compiler knows no such slice.
  """
  if topology.platform == 'cpu':
    return jax.devices('cpu')[: topology.num_devices]
  sizes = 'x'.join(map(str, topology.shape))
  try:
    if topology.platform == 'gpu':
      return jax_topologies.get_topology_desc(
          platform='cuda',
          topology_name=topology.kind,
          topology=f'1x{sizes}',
          target_config=gpu_facts.FACTS[topology.kind].target_config(),
      ).devices
    more = {}
    if topology.kind in _MEGACORE:
      more['chip_config_name'] = 'megacore'
    if topology.num_slices > 1:
      more['num_slices'] = topology.num_slices
    return jax_topologies.get_topology_desc(
        platform='tpu', topology_name=f'{topology.kind}:{sizes}', **more
    ).devices
  except jax.errors.JaxRuntimeError as error:
    raise topologies.TopologyError(
        f'The compiler refuses the topology {topology.name!r}: {error}\n'
        'Expected a machine that can be rented.\n'
        f'Write for example {topologies.example_of(topology.kind)}.'
    ) from None  # the compiler's words are told
