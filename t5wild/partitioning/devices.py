# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which devices a run is for: those that JAX finds, or described ones."""

from collections.abc import Iterator, Sequence
import contextlib
import contextvars
from typing import Any

import jax

# Devices that only a compiler knows, in place of those that are here.
_DESCRIBED: contextvars.ContextVar[tuple[Any, ...]] = contextvars.ContextVar(
    'described_devices', default=()
)
_PLATFORM_OF_NAME = {
    'cpu': 'cpu',
    'gpu': 'gpu',
    'cuda': 'gpu',
    'rocm': 'gpu',
    'tpu': 'tpu',
}


@contextlib.contextmanager
def described(devices: Sequence[Any]) -> Iterator[None]:
  """Lets `select_devices` give these, which need not be here.

  What is partitioned inside can be lowered and compiled, and not run.
  """
  token = _DESCRIBED.set(tuple(devices))
  try:
    yield
  finally:
    _DESCRIBED.reset(token)


def select_devices(
    backend: str | None = None, *, platform: str | None = None
) -> list[jax.Device]:
  """Returns all devices of all processes, of the platform asked for.

  Args:
    backend: name given to `jax.devices`; None takes JAX's default.
    platform: `'cpu'`, `'gpu'` or `'tpu'` makes it an error to get another
      one; None takes what JAX finds.

  Raises:
    ValueError: unknown platform name, or the platform asked for is not there.
      JAX would fall back to the CPU with a warning, and a run would crawl for
      hours unnoticed.
  """
  if platform is not None and platform not in _PLATFORM_OF_NAME:
    raise ValueError(
        f'Unknown platform {platform!r}.\n'
        f'Expected one of {sorted(set(_PLATFORM_OF_NAME.values()))} or None.\n'
        'Set PjitPartitioner.platform to one of these.'
    )
  try:
    devices = list(_DESCRIBED.get()) or jax.devices(backend)
  except RuntimeError as error:
    raise ValueError(
        f'JAX has no devices of backend {backend!r}: {error}\n'
        'Expected an installed and visible backend.\n'
        'Run `t5wild doctor` to see what JAX finds and what is missing, or '
        'leave out `backend` to take what is here.'
    ) from error
  found = devices[0].platform
  wanted = _PLATFORM_OF_NAME.get(platform, found)
  if found != wanted:
    raise ValueError(
        f'This run asks for {platform!r} and JAX found {len(devices)} '
        f'{found!r} device(s): {devices[0].device_kind}.\n'
        f'Expected devices of platform {wanted!r}.\n'
        'Run `t5wild doctor` to see why; install the matching extra (cuda12, '
        'cuda13 or tpu), unset JAX_PLATFORMS, or set '
        'PjitPartitioner.platform = None to accept any device.'
    )
  return devices
