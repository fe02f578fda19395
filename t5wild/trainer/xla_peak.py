# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The matrix product that steps are made of, at its fastest here."""

import functools

import jax
import jax.numpy as jnp

from t5wild import hardware


@functools.cache
def measure_matmul_flops_per_second(size: int = 1024) -> float:
  """Fastest float32 product of two [size, size] matrices by XLA, in FLOP/s.

  On the first device, measured once per process, in about 0.3 s. On CPUs XLA
  can be twice as fast as NumPy, which may not use the widest registers; what a
  step is held against must be what it could reach.
  """
  matrix = jax.device_put(
      jnp.full((size, size), 0.5, jnp.float32), jax.local_devices()[0]
  )
  product = jax.jit(lambda x: x @ x).lower(matrix).compile()
  seconds = hardware.fastest_seconds(
      lambda: product(matrix).block_until_ready()
  )
  return 2.0 * size**3 / seconds
