# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of docs/concepts.md: where 8 devices hold an array.

  python tools/draw_docs.py docs/pictures

What is drawn is asked of the partitioner, on 8 devices of the CPU.
"""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=8'
os.environ['JAX_PLATFORMS'] = 'cpu'

from jax.sharding import NamedSharding
import matplotlib

matplotlib.use('Agg')
from matplotlib import pyplot

from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.partitioning import rules as rules_lib

ARRAYS = {  # title -> logical axes and shape
    'activations: batch x embed': (('batch', 'embed'), (16, 8)),
    'kernel wi: embed x mlp': (('embed', 'mlp'), (8, 16)),
    'kernel wo: mlp x embed': (('mlp', 'embed'), (16, 8)),
}
# File -> title, num_partitions, parameter_partitioning_dims.
PICTURES = {
    'data_parallel': ('data = 8', 1, 1),
    'fully_sharded': ('data = 8, parameter_partitioning_dims = 2', 1, 2),
    'tensor_parallel': ('data = 4, model = 2', 2, 1),
    'two_ways': ('data = 4, model = 2, parameter_partitioning_dims = 2', 2, 2),
}


def blocks_of(axes, shape, *, num_partitions, parameter_dims):
  """Maps each part (row and column bounds) to the devices that hold it."""
  partitioner = partitioner_lib.PjitPartitioner(
      num_partitions=num_partitions,
      logical_axis_rules=rules_lib.standard_logical_axis_rules(
          parameter_partitioning_dims=parameter_dims
      ),
  )
  spec = rules_lib.spec_of_axes(
      axes, rules=partitioner.logical_axis_rules, name='drawn'
  )
  sharding = NamedSharding(partitioner.mesh, spec)
  held = {}
  for device, index in sharding.devices_indices_map(shape).items():
    part = tuple(i.indices(n)[:2] for i, n in zip(index, shape, strict=True))
    held.setdefault(part, []).append(device.id)
  return held


def _draw_array(axes, title, shape, held):
  rows, columns = shape
  for ((top, bottom), (left, right)), devices in held.items():
    color = pyplot.colormaps['viridis'](0.15 + 0.8 * min(devices) / 8)
    axes.add_patch(pyplot.Rectangle(
        (left, top), right - left, bottom - top, facecolor=color,
        edgecolor='white', linewidth=1.5,
    ))
    said = 'all 8' if len(devices) == 8 else ' '.join(map(str, devices))
    axes.text(
        (left + right) / 2, (top + bottom) / 2, said, ha='center',
        va='center', fontsize=8, color='black' if min(devices) > 4 else 'white',
    )
  axes.set(xlim=(0, columns), ylim=(rows, 0), aspect='equal', xticks=[],
           yticks=[])
  axes.set_title(title, fontsize=9)


def draw(folder: pathlib.Path) -> None:
  """Writes one PNG for each kind of parallelism."""
  folder.mkdir(parents=True, exist_ok=True)
  for name, (title, num_partitions, parameter_dims) in PICTURES.items():
    figure, row = pyplot.subplots(1, len(ARRAYS), figsize=(8, 3))
    for axes, (label, (logical, shape)) in zip(
        row, ARRAYS.items(), strict=True
    ):
      held = blocks_of(logical, shape, num_partitions=num_partitions,
                       parameter_dims=parameter_dims)
      _draw_array(axes, label, shape, held)
    figure.suptitle(title, fontsize=10)
    figure.tight_layout()
    figure.savefig(folder / f'{name}.png', dpi=110)
    pyplot.close(figure)


if __name__ == '__main__':
  draw(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else 'docs/pictures'))
