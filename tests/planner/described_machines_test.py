# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Names of machines, what their compilers need, and what is refused."""

import jax
import pytest

from t5wild import command_line
from t5wild.planner import described
from t5wild.planner import environment
from t5wild.planner import gpu_facts
from t5wild.planner import topologies


@pytest.mark.parametrize(
    ('text', 'shape', 'devices', 'fast'),
    [
        ('h100:32x8', (32, 8), 256, 8),
        ('h200:64', (8, 8), 64, 8),
        ('a100:4', (1, 4), 4, 4),
        ('v5e:16x16', (16, 16), 256, 256),
        ('v5p:64', (4, 4, 4), 64, 64),
        ('v4:2x2x2', (2, 2, 2), 8, 8),
        ('v5e:4x4:2', (4, 4), 32, 16),
        ('cpu:256', (256,), 256, 256),
        (' V6E:8x8 ', (8, 8), 64, 64),
    ],
)
def test_a_name_says_devices_and_fast_domain(text, shape, devices, fast):
  found = topologies.parse(text)
  assert found.shape == shape
  assert found.num_devices == devices
  assert found.devices_of_fast_domain == fast


@pytest.mark.parametrize(
    ('text', 'told'),
    [
        ('h1000:8', "Did you mean 'h100'?"),
        ('tpu', 'of an unknown kind'),
        ('h100', 'how many devices'),
        ('h100:0x8', 'at least 1'),
        ('h100:12', 'a multiple of it'),
        ('h100:12', 'h100:2x6 for as many, or for example h100:2x8'),
        ('h100:2x2x2', 'HOSTSxGPUS'),
        ('v5e:3', 'v5e: and one of 2x2'),
        ('v5p:4x4', '3 sizes'),
        ('cpu:2x4', 'cpu:8'),
        ('h100:2x8:2', 'slices of TPUs only'),
        ('h100:8x-1', 'KIND:SIZES'),
    ],
)
def test_what_is_no_machine_is_told_with_the_mend(text, told):
  with pytest.raises(topologies.TopologyError) as error:
    topologies.parse(text)
  assert told in str(error.value)
  assert 'Expected' in str(error.value) and 'Write' in str(error.value)


@pytest.mark.parametrize('kind', topologies.KINDS)
def test_every_kind_of_accelerator_has_its_row_and_its_facts(kind):
  dimensions = topologies._TORUS_DIMENSIONS.get(kind)
  size = {2: '2x2', 3: '2x2x1'}.get(dimensions, '4')
  topology = topologies.parse(f'{kind}:{size}')
  if topology.platform == 'cpu':
    assert topology.chip is None
    return
  assert topology.chip.memory_bytes > 0
  if topology.platform == 'gpu':
    facts = gpu_facts.FACTS[kind]
    # CUDA tells a few percent more than the data sheet's round number.
    assert 1 <= facts.memory_bytes / topology.chip.memory_bytes < 1.08
    assert facts.memory_bytes_per_second == pytest.approx(
        topology.chip.memory_bytes_per_second, rel=0.01
    )
    assert f'core_count: {facts.multiprocessors}\n' in facts.target_config()


def test_a_machine_that_a_compiler_refuses_is_no_traceback(monkeypatch):
  def refuse(**described):
    raise jax.errors.JaxRuntimeError(f'{described} is not divisible by 2x2x1')

  monkeypatch.setattr(described.jax_topologies, 'get_topology_desc', refuse)
  with pytest.raises(topologies.TopologyError) as error:
    described.devices_of(topologies.parse('v5e:3x17'))
  told = command_line.complaint(error.value)
  assert 'Traceback' not in told
  assert "'v5e:3x17'" in told and 'is not divisible' in told
  assert 'Write for example v5e: and one of 2x2' in told


def test_a_missing_plugin_is_answered_with_the_pip_line(monkeypatch):
  monkeypatch.setattr(
      environment,
      'version_of',
      lambda name: '0.10.2' if name == 'jax' else None,
  )
  with pytest.raises(environment.MissingPluginError) as error:
    environment.check_plugin('gpu')
  assert "pip install --no-deps 'jax-cuda13-plugin==0.10.2'" in str(error.value)
  assert 'aot-gpu' in str(error.value)
  with pytest.raises(environment.MissingPluginError) as error:
    environment.check_plugin('tpu')
  assert "pip install 'libtpu" in str(error.value)
  environment.check_plugin('cpu')


def test_the_compiling_process_takes_cpus_and_keeps_the_users_flags():
  found = environment.variables(
      topologies.parse('h100:1x8'), {'XLA_FLAGS': '--xla_a=1', 'HOME': '/h'}
  )
  assert found['JAX_PLATFORMS'] == 'cpu'
  assert found['HOME'] == '/h'
  assert found['XLA_FLAGS'].startswith('--xla_a=1 --xla_gpu_autotune_level=0')
  cpus = environment.variables(topologies.parse('cpu:4'), {})
  assert cpus['XLA_FLAGS'] == '--xla_force_host_platform_device_count=4'
