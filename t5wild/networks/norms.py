# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Norms of the last axis: root mean square (T5's), or mean and variance."""

from flax import linen as nn
from flax.linen import partitioning
from jax import Array
from jax import lax
import jax.numpy as jnp
from jaxtyping import Float

from t5wild.networks import layers


class RmsNorm(nn.Module):
  """T5's layer norm: root mean square, no mean subtracted and no bias.

  Zhang and Sennrich 2019 (arXiv:1910.07467): x / sqrt(mean(x^2) + epsilon),
  computed in float32, then times a scale in `dtype`.

  Attributes:
    epsilon: added to the mean square.
    dtype: type of the result.
    scale_from_one: the parameter is added to a scale of one (and decays to it),
      as in Gemma.
    axis_name: logical axis of the parameter.
  """

  epsilon: float = 1e-6
  dtype: layers.DType = jnp.float32
  scale_from_one: bool = False
  axis_name: str = 'embed'

  @nn.compact
  def __call__(
      self, inputs: Float[Array, '*leading embed']
  ) -> Float[Array, '*leading embed']:
    """Normalises the last axis."""
    init = nn.initializers.ones
    if self.scale_from_one:
      init = nn.initializers.zeros
    scale = _parameter('scale', init, inputs, self.axis_name)
    if self.scale_from_one:
      scale = 1.0 + scale
    x = inputs.astype(jnp.float32)
    mean_square = jnp.mean(lax.square(x), axis=-1, keepdims=True)
    x = (x * lax.rsqrt(mean_square + self.epsilon)).astype(self.dtype)
    return x * scale.astype(self.dtype)


class LayerNorm(nn.Module):
  """Layer norm: mean subtracted, divided by the standard deviation.

  Ba et al. 2016 (arXiv:1607.06450), computed in float32, then times a scale
  and plus a bias in `dtype`.

  Attributes:
    epsilon: added to the variance.
    dtype: type of the result.
    use_bias: whether there is a bias.
  """

  epsilon: float = 1e-6
  dtype: layers.DType = jnp.float32
  use_bias: bool = True

  @nn.compact
  def __call__(
      self, inputs: Float[Array, '*leading embed']
  ) -> Float[Array, '*leading embed']:
    """Normalises the last axis."""
    scale = _parameter('scale', nn.initializers.ones, inputs, 'embed')
    x = inputs.astype(jnp.float32)
    x = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(lax.square(x), axis=-1, keepdims=True)
    x = (x * lax.rsqrt(variance + self.epsilon)).astype(self.dtype)
    x = x * scale.astype(self.dtype)
    if not self.use_bias:
      return x
    bias = _parameter('bias', nn.initializers.zeros, inputs, 'embed')
    return x + bias.astype(self.dtype)


def _parameter(name, init, inputs, axis_name):
  """A float32 parameter with one number for each of the last axis."""
  return partitioning.param_with_axes(
      name, init, (inputs.shape[-1],), jnp.float32, axes=(axis_name,)
  )
