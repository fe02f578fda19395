# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Products of 8-bit numbers in place of dense layers' own: FP8 or int8.

Scales are those of the numbers at hand ("current scaling"): one for each row of
the inputs and for each column of the kernel, so a product is an 8-bit one whose
result is multiplied once. Nothing is kept from step to step: a checkpoint is
the same with and without, and a row's outputs do not depend on the batch it is
in. Parameters and optimizer stay in float32.
"""

from collections.abc import Sequence
import dataclasses
import functools
import re
from typing import Any

import jax
from jax import Array
from jax import lax
import jax.numpy as jnp
from jaxtyping import Float, Num

FORMATS = ('fp8', 'int8')

# Micikevicius et al. 2022, "FP8 formats for deep learning" (arXiv:2209.05433):
# more precision for activations and weights, more range for gradients.
_FORWARD_TYPE = {'fp8': jnp.float8_e4m3fn, 'int8': jnp.int8}
_GRADIENT_TYPE = {'fp8': jnp.float8_e5m2, 'int8': jnp.int8}

Quantized = tuple[Num[Array, '...'], Float[Array, '...']]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Quantization:
  """Which dense layers multiply 8-bit numbers, and which ones.

  Attributes:
    number_format: one of `FORMATS`.
    layers: regular expression that is looked for in a layer's path, such as
      `encoder/layers_3/mlp/wi_0`.
  """

  number_format: str
  layers: str

  def covers(self, path: Sequence[str]) -> bool:
    """Tells whether the layer of this path is one of them."""
    return re.search(self.layers, '/'.join(path)) is not None


def check(config: Any) -> None:
  """Refuses what a network's configuration can not mean.

  Args:
    config: a `config.LayerConfig`.

  Raises:
    ValueError: an unknown format, or layers that there are not.
  """
  name = type(config).__name__
  if config.quantization not in (None, *FORMATS):
    raise ValueError(
        f'{name}.quantization is {config.quantization!r}, expected one of '
        f"{FORMATS} or None: 'fp8' is for H100 and newer, 'int8' for any "
        'accelerator, None for products of the activations\' own type'
    )
  layers = config.quantized_layers
  try:
    pattern = re.compile(layers)
  except (re.error, TypeError) as error:
    raise ValueError(
        f'{name}.quantized_layers is {layers!r}, expected a regular expression '
        f"({error}): 'attention|mlp' is all but the scores of tokens"
    ) from None
  if config.quantization is None:
    return
  paths = layer_paths(config)
  if not any(pattern.search(path) for path in paths):
    raise ValueError(
        f'{name}.quantized_layers is {layers!r}, which is in the path of none '
        f'of its {len(paths)} dense layers; expected one that is, in paths '
        f"such as {paths[0]!r} and {paths[-1]!r}: set it to 'attention|mlp', "
        'or quantization to None'
    )


def layer_paths(config: Any) -> list[str]:
  """The paths of a network's dense layers, in the order they are run in.

  Args:
    config: a `config.LayerConfig`.
  """
  if hasattr(config, 'num_layers'):
    stacks = {'decoder': (config.num_layers, ('self_attention',))}
  else:
    stacks = {
        'encoder': (config.num_encoder_layers, ('attention',)),
        'decoder': (
            config.num_decoder_layers,
            ('self_attention', 'encoder_decoder_attention'),
        ),
    }
  gates = [f'wi_{i}' for i in range(len(config.mlp_activations))]
  mlp = [*(gates if len(gates) > 1 else ['wi']), 'wo']
  paths = []
  for stack, (num_layers, blocks) in stacks.items():
    layers = [f'{stack}/layers_{index}' for index in range(num_layers)]
    for layer in [f'{stack}/{stack}'] if config.scan_layers else layers:
      for block in blocks:
        paths += [
            f'{layer}/{block}/{each}'
            for each in ('query', 'key', 'value', 'out')
        ]
      paths += [f'{layer}/mlp/{each}' for each in mlp]
  if not config.logits_via_embedding:
    paths.append('decoder/logits_dense')
  return paths


@functools.partial(jax.custom_vjp, nondiff_argnames=('number_format',))
def contract_last_axis(
    inputs: Float[Array, '*leading features_in'],
    kernel: Float[Array, 'features_in features_out'],
    number_format: str,
) -> Float[Array, '*leading features_out']:
  """Multiplies the last axis with a matrix, both as 8-bit numbers.

  The gradient is that of the rounded numbers, passed straight through the
  rounding. With 'fp8' its two products are of 8-bit numbers as well; with
  'int8' the inputs' is, and the kernel's is of the inputs' type, as the sum
  over all tokens keeps more of small numbers than 255 steps do.

  Args:
    inputs: what is multiplied.
    kernel: the matrix, of the same type.
    number_format: one of `FORMATS`.
  """
  return _multiply(inputs, kernel, number_format)[0]


def _multiply(inputs, kernel, number_format):
  dtype = _FORWARD_TYPE[number_format]
  rows = _quantize(inputs, axes=(-1,), dtype=dtype)
  columns = _quantize(kernel, axes=(0,), dtype=dtype)
  contracted = (((inputs.ndim - 1,), (0,)), ((), ()))
  product = _dot(rows[0], columns[0], contracted, dtype=inputs.dtype)
  outputs = product * rows[1] * columns[1][0]
  # The 8-bit inputs are what the backward pass needs: half the bytes to keep.
  return outputs.astype(inputs.dtype), (rows, columns)


def _multiply_backward(number_format, residuals, gradient):
  (rows, row_scale), (columns, column_scale) = residuals
  dtype = _GRADIENT_TYPE[number_format]
  leading = tuple(range(gradient.ndim - 1))
  over_rows = ((leading, leading), ((), ()))

  # A scale along an axis that is summed over goes into the other side, before
  # that is rounded.
  scaled, scale = _quantize(
      gradient * column_scale[0], axes=(-1,), dtype=dtype
  )
  inputs_gradient = scale * _dot(
      scaled,
      columns,
      (((gradient.ndim - 1,), (1,)), ((), ())),
      dtype=gradient.dtype,
      precision=lax.Precision.HIGHEST,
  )

  if number_format == 'int8':
    inputs = (rows * row_scale).astype(gradient.dtype)
    kernel_gradient = lax.dot_general(inputs, gradient, over_rows)
  else:
    scaled, scale = _quantize(gradient * row_scale, axes=leading, dtype=dtype)
    kernel_gradient = scale.reshape(1, -1) * _dot(
        rows,
        scaled,
        over_rows,
        dtype=gradient.dtype,
        precision=lax.Precision.HIGHEST,
    )
  return (
      inputs_gradient.astype(gradient.dtype),
      kernel_gradient.astype(gradient.dtype),
  )


contract_last_axis.defvjp(_multiply, _multiply_backward)


def _quantize(
    x: Float[Array, '...'], *, axes: Sequence[int], dtype: jnp.dtype
) -> Quantized:
  """Rounds to 8 bits; the largest number along the axes is the type's largest.

  What is not finite makes the scale so, and with it the product.
  """
  is_integer = jnp.issubdtype(dtype, jnp.integer)
  info = jnp.iinfo(dtype) if is_integer else jnp.finfo(dtype)
  limit = float(info.max)
  x = x.astype(jnp.float32)
  largest = jnp.max(jnp.abs(x), axis=axes, keepdims=True)
  scale = jnp.maximum(largest / limit, jnp.finfo(jnp.float32).tiny)
  scaled = jnp.clip(x / scale, -limit, limit)
  if is_integer:
    scaled = jnp.round(scaled)
  return scaled.astype(dtype), scale


def _dot(x, y, contracted, *, dtype, precision=None):
  """A product of 8-bit numbers; of integers it is exact.

  On NVIDIA GPUs 'HIGHEST' adds FP8 products up in full float32, the default in
  fewer bits and faster: enough forward, not for gradients.
  """
  if jnp.issubdtype(x.dtype, jnp.integer):
    dtype, precision = jnp.int32, None
  product = lax.dot_general(
      x, y, contracted, precision=precision, preferred_element_type=dtype
  )
  return product.astype(jnp.float32)
