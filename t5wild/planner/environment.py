# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The process in which a compiler for absent devices runs: plugins, variables.

No JAX: the caller sets all this for a process that it is going to start.
"""

from collections.abc import Mapping
import importlib.metadata

from t5wild.planner import topologies

# Packages that bring the compiler of a platform, and the pip line.
_PLUGINS = {
    'gpu': (
        ('jax-cuda13-plugin', 'jax-cuda13-pjrt'),
        "pip install --no-deps 'jax-cuda13-plugin=={jax}' "
        "'jax-cuda13-pjrt=={jax}' nvidia-cuda-nvcc nvidia-nvvm "
        'nvidia-cudnn-cu13',
    ),
    'tpu': (('libtpu',), "pip install '{libtpu}'"),
    'cpu': ((), ''),
}
# Each is needed where no such device is there.
_VARIABLES = {
    'gpu': {
        # The plugin's versions of CUDA's libraries are not asked of a driver.
        'JAX_SKIP_CUDA_CONSTRAINTS_CHECK': '1',
        # No GPU to try kernels on.
        'XLA_FLAGS': (
            '--xla_gpu_autotune_level=0 '
            # Asks the devices for peer access, and ends the process.
            '--xla_gpu_unsupported_use_all_reduce_one_shot_kernel=false'
        ),
    },
    'tpu': {
        'TPU_WORKER_HOSTNAMES': 'localhost',
        'TPU_SKIP_MDS_QUERY': '1',  # there is no metadata server to wait for
        'ALLOW_MULTIPLE_LIBTPU_LOAD': '1',
    },
    'cpu': {},
}


class MissingPluginError(ValueError):
  """The compiler of a platform is not installed."""


def check_plugin(platform: str) -> None:
  """Raises MissingPluginError, with the pip line, where a compiler is missing.

  Args:
    platform: 'gpu', 'tpu' or 'cpu'.
  """
  packages, line = _PLUGINS[platform]
  missing = [name for name in packages if version_of(name) is None]
  if not missing:
    return
  line = line.format(jax=version_of('jax'), libtpu=_libtpu_requirement())
  raise MissingPluginError(
      f'The compiler for {platform.upper()}s is not installed: {missing}.\n'
      f'Expected {list(packages)}, of the versions that go with jax '
      f'{version_of("jax")}; they compile on a machine without such devices.\n'
      f'Run: {line}\n'
      f'(or, as an extra: pip install "t5wild[aot-{platform}]")'
  )


def version_of(package: str) -> str | None:
  """The version of an installed package; None when it is not."""
  try:
    return importlib.metadata.version(package)
  except importlib.metadata.PackageNotFoundError:
    return None


def _libtpu_requirement() -> str:
  """What this jax's extra `tpu` asks for."""
  for each in importlib.metadata.requires('jax') or ():
    if each.startswith('libtpu'):
      return each.partition(';')[0].strip()
  return 'libtpu'


def variables(
    topology: topologies.Topology, inherited: Mapping[str, str]
) -> dict[str, str]:
  """The environment of the compiling process.

  Args:
    topology: what is compiled for.
    inherited: of the calling process; its XLA_FLAGS come first, ours after.
  """
  own = dict(_VARIABLES[topology.platform])
  if topology.platform == 'cpu':
    own['XLA_FLAGS'] = (
        f'--xla_force_host_platform_device_count={topology.num_devices}'
    )
  flags = f'{inherited.get("XLA_FLAGS", "")} {own.get("XLA_FLAGS", "")}'.strip()
  return {
      **inherited,
      **own,
      'XLA_FLAGS': flags,
      'JAX_PLATFORMS': 'cpu',
      # A program for devices that are not here cannot be loaded again.
      'JAX_ENABLE_COMPILATION_CACHE': 'false',
      'T5WILD_COMPILATION_CACHE': 'off',
      'TF_CPP_MIN_LOG_LEVEL': '2',
  }
