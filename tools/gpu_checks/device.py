# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What device and which libraries the other parts run on."""

import os
import platform
from typing import Any

import jax

from t5wild import hardware
from t5wild.vitals import environment

_PACKAGES = (
    'jax', 'jaxlib', 'flax', 'jax-cuda12-plugin', 'jax-cuda13-plugin',
    'nvidia-cudnn-cu12', 'nvidia-cudnn-cu13', 'libtpu',
)  # fmt: skip


def check(*, small: bool) -> dict[str, Any]:
  """Describes the first device."""
  device = jax.devices()[0]
  chip = hardware.chip_of(device.device_kind)
  return {
      'device_kind': device.device_kind,
      'platform': device.platform,
      'row_of_hardware': chip.name if chip else None,
      'compute_capability': getattr(device, 'compute_capability', None),
      'memory_bytes': memory_bytes(),
      'python': platform.python_version(),
      'xla_flags': os.environ.get('XLA_FLAGS', ''),
      'versions': environment.versions_of(_PACKAGES),
      'small': small,
  }


def memory_bytes() -> int | None:
  """Memory of the first device that JAX may take; None: it does not tell."""
  return (jax.devices()[0].memory_stats() or {}).get('bytes_limit')


def peak_bytes() -> int | None:
  """The most of it that was in use in this process; None: likewise."""
  return (jax.devices()[0].memory_stats() or {}).get('peak_bytes_in_use')
