# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""FP8 and int8 products and their gradients: error, and speed."""

import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from t5wild import hardware
from t5wild.networks import layers
from t5wild.networks import quantization
from t5wild.planner import hlo
from t5wild.planner import kernels

# Relative, of norms: half a step of three bits (e4m3) or two (e5m2) averaged
# over numbers and sums is 3 to 6 %; a wrong scale or a saturated sum is more.
_TOLERANCE = {'bfloat16': 0.01, 'fp8': 0.08, 'int8': 0.03}
_SHAPE = (8192, 4096, 8192)  # rows, features in, features out
_SMALL = (64, 128, 96)
_EIGHT_BITS = re.compile(r'= *(?:f8e4m3fn|f8e5m2|s8)\[')


def check(*, small: bool) -> dict[str, Any]:
  """Checks a dense layer's three products in each number format."""
  shape = _SMALL if small else _SHAPE
  checks = [
      _check_format(number_format, shape)
      for number_format in (None, *quantization.FORMATS)
  ]
  return {'shape': list(shape), 'checks': checks}


def _check_format(number_format, shape):
  rows, features_in, features_out = shape
  random = np.random.default_rng(0)

  def normal(*shape):
    return random.standard_normal(shape, np.float32)

  inputs, kernel = normal(rows, features_in), normal(features_in, features_out)
  target = normal(rows, features_out)
  arguments = [
      jnp.asarray(each, jnp.bfloat16) for each in (inputs, kernel, target)
  ]
  step = jax.jit(functools.partial(products, number_format=number_format))
  compiled = step.lower(*arguments).compile()
  exact = jax.jit(products)
  with jax.default_matmul_precision('highest'):
    wanted = exact(*(each.astype(jnp.float32) for each in arguments))
  errors = [
      float(jnp.linalg.norm(a.astype(jnp.float32) - b) / jnp.linalg.norm(b))
      for a, b in zip(compiled(*arguments), wanted, strict=True)
  ]
  name = number_format or 'bfloat16'
  seconds = hardware.fastest_seconds(
      lambda: jax.block_until_ready(compiled(*arguments))
  )
  text = compiled.as_text()
  has_eight_bits = bool(_EIGHT_BITS.search(text))
  return {
      'name': name,
      'ok': max(errors) <= _TOLERANCE[name]
      and has_eight_bits == (number_format is not None),
      'errors': dict(
          zip(('outputs', 'inputs', 'kernel'), errors, strict=True)
      ),
      'has_eight_bit_numbers': has_eight_bits,
      'kernels': dict(kernels.of_module(hlo.Module(text)).products),
      'teraflops_per_second': 6 * np.prod(shape) / seconds / 1e12,
  }


def products(
    inputs: jax.Array,
    kernel: jax.Array,
    target: jax.Array,
    *,
    number_format: str | None = None,
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """A dense layer's outputs, and the gradients for a gradient of them.

  Args:
    inputs: `[rows, features_in]`.
    kernel: `[features_in, features_out]`.
    target: `[rows, features_out]`, the gradient of the outputs.
    number_format: as in `layers.contract_last_axis`.
  """
  outputs, pull = jax.vjp(
      functools.partial(
          layers.contract_last_axis, number_format=number_format
      ),
      inputs,
      kernel,
  )
  return outputs, *pull(target)
