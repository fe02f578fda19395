# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's and the TPUs' own compilers, on machines that have neither.

Skipped with the pip line where a compiler is not installed: extras aot-gpu and
aot-tpu.
"""

import json
import os
import subprocess
import sys

import pytest

from t5wild import exit_codes
from t5wild.planner import environment
from t5wild.planner import for_topology
from t5wild.planner import topologies
from tests.planner import tiny_recipe

_CROSSING = """
import json, sys
from t5wild.partitioning import fast_domains, mesh
from t5wild.planner import described, topologies
devices = described.devices_of(topologies.parse(sys.argv[1]))
for sizes in json.loads(sys.argv[2]):
  sizes = dict.fromkeys(mesh.MESH_AXES, 1) | sizes
  array = mesh.arrange_devices(devices, sizes=sizes)
  axes = list(mesh.MESH_AXES)
  print(json.dumps(fast_domains.crossing_axes(array, axes=axes)))
"""


@pytest.fixture(autouse=True)
def _flags():
  for_topology.define_flags()


def _skip_without(platform):
  try:
    environment.check_plugin(platform)
  except environment.MissingPluginError as error:
    pytest.skip(str(error))


# The least, and unequal, lengths that TPUs' fused attention serves.
_LONG = "--gin.TASK_FEATURE_LENGTHS={'inputs': 256, 'targets': 128}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ('topology', 'platform', 'more', 'kernel'),
    [
        ('h100:2x2', 'gpu', (), 'xla'),
        ('v5e:2x2:2', 'tpu', (_LONG,), 'tpu_custom_call'),
    ],
)
def test_a_tiny_encoder_decoder_compiles_with_the_real_compiler(
    topology, platform, more, kernel, tmp_path, capsys
):
  _skip_without(platform)
  code = tiny_recipe.compile_for(topology, tmp_path, *more)
  shown = capsys.readouterr()
  assert code == exit_codes.DONE.code, shown.err
  assert '\n  fits\n' in shown.out
  stem = topologies.parse(topology).file_stem
  found = json.loads((tmp_path / f'precompile/{stem}.json').read_text())
  train = found['programs']['train']
  assert 0 < train['peak_bytes'] < train['memory_bytes']
  assert any('model' in t['axes'] for t in train['collectives'])
  assert train['kernels']['attention_backward'].startswith(kernel)
  # Two hosts, or slices: `model` is inside of one, `data` crosses.
  assert found['recipe']['crossing_axes'] == {'data': 2}
  assert 'WARNING' not in shown.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ('topology', 'meshes', 'expected'),
    [
        (
            'h100:32x8',
            [
                {'replica': 4, 'data': 16, 'model': 4},
                {'data': 64, 'model': 2, 'sequence': 2},
                {'data': 16, 'model': 16},
            ],
            [{'replica': 4, 'data': 8}, {'data': 32}, {'data': 16, 'model': 2}],
        ),
        (
            'v5e:4x4:2',
            [{'replica': 2, 'data': 4, 'model': 4}, {'data': 8, 'model': 4}],
            [{'replica': 2}, {'data': 2}],
        ),
    ],
)
def test_on_described_machines_only_outer_axes_leave_a_host_or_slice(
    topology, meshes, expected
):
  described = topologies.parse(topology)
  _skip_without(described.platform)
  path = os.pathsep.join(filter(None, sys.path))
  done = subprocess.run(
      [sys.executable, '-c', _CROSSING, topology, json.dumps(meshes)],
      env=environment.variables(described, {**os.environ, 'PYTHONPATH': path}),
      capture_output=True, text=True, timeout=300, check=False,
  )  # fmt: skip
  assert done.returncode == 0, done.stderr
  assert [json.loads(line) for line in done.stdout.splitlines()] == expected
