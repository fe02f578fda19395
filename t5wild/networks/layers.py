# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Building blocks of a layer: dense, gated MLP, dropout.

Everything here is a Flax Linen module whose parameters carry T5X's names and
logical axes. Dense layers multiply two matrices, whatever the rank of their
input: the gradient of a product over several leading axes copies transposes
that a product of matrices does not (18 % of a step on a CPU).
"""

from collections.abc import Callable, Sequence
import functools
import math
import operator
from typing import Any

from flax import linen as nn
from flax.core import meta
from flax.linen import partitioning
import jax
from jax import Array
from jax import lax
import jax.numpy as jnp
from jaxtyping import Float, Int, Key, UInt

from t5wild.networks import quantization as quantization_lib

DType = Any
Initializer = Callable[..., Array]
DropoutKey = Key[Array, ''] | UInt[Array, '...']
DropoutRows = Int[Array, ' batch'] | None
Quantization = quantization_lib.Quantization | None

dense_init = nn.initializers.variance_scaling(
    1.0, 'fan_in', 'truncated_normal'
)


def count_shards(name: str, axes: tuple[str, ...]) -> int:
  """Into how many pieces the rules and mesh in force split an axis.

  Args:
    name: logical axis of the array in question, one of `axes`.
    axes: logical axes of that array.
  """
  rules = partitioning.get_axis_rules()
  mesh = meta.get_global_mesh()
  if not rules or mesh is None:
    return 1
  assigned = partitioning.logical_to_mesh_axes(axes, rules)[axes.index(name)]
  names = (assigned,) if isinstance(assigned, str) else assigned or ()
  return math.prod(mesh.shape[n] for n in names)


def is_axis_sharded(name: str) -> bool:
  """Tells whether the rules and mesh in force split this activation axis."""
  return count_shards(name, ('batch', 'length', 'embed')) > 1


def _transposed(x: Float[Array, 'rows features']) -> Array:
  # The barrier keeps XLA from folding the transpose into the product.
  return lax.optimization_barrier(x.T)


def _weight_gradient(
    inputs: Float[Array, 'rows features_in'],
    gradient: Float[Array, 'rows features_out'],
) -> Float[Array, 'features_in features_out']:
  """Multiplies the transposed inputs with the gradient of the outputs.

  XLA's fast CPU product wants its left side row by row: a copy of the narrower
  side's transpose makes it up to 1.7 times as fast. Where that is the gradient,
  the product comes out transposed. Accelerators transpose as they load.
  """

  def contract_rows(x, g):
    return lax.dot_general(x, g, (((0,), (0,)), ((), ())))

  def contract_columns(x, g):
    if x.shape[1] <= g.shape[1]:
      return lax.dot(_transposed(x), g)
    # This barrier keeps XLA from swapping the sides back.
    return lax.optimization_barrier(lax.dot(_transposed(g), x)).T

  return lax.platform_dependent(
      inputs, gradient, cpu=contract_columns, default=contract_rows
  )


@jax.custom_vjp
def multiply_matrices(
    inputs: Float[Array, 'rows features_in'],
    kernel: Float[Array, 'features_in features_out'],
) -> Float[Array, 'rows features_out']:
  """Multiplies two matrices, with a gradient that is quick on a CPU too."""
  return lax.dot(inputs, kernel)


def _multiply_forward(inputs, kernel):
  return lax.dot(inputs, kernel), (inputs, kernel)


def _multiply_backward(residuals, gradient):
  inputs, kernel = residuals
  inputs_gradient = lax.dot_general(
      gradient, kernel, (((1,), (1,)), ((), ()))
  )
  return inputs_gradient, _weight_gradient(inputs, gradient)


multiply_matrices.defvjp(_multiply_forward, _multiply_backward)


def contract_last_axis(
    inputs: Float[Array, '*leading features_in'],
    kernel: Float[Array, 'features_in features_out'],
    *,
    number_format: str | None = None,
) -> Float[Array, '*leading features_out']:
  """Multiplies the last axis with a matrix, as a product of two matrices.

  Where the length axis is split over devices the leading axes stay apart:
  merging a split axis into another would gather it first.

  Args:
    inputs: what is multiplied.
    kernel: the matrix.
    number_format: one of `quantization.FORMATS`; None = the inputs' own type.
  """
  if is_axis_sharded('length'):
    if number_format is not None:
      return quantization_lib.contract_last_axis(inputs, kernel, number_format)
    return lax.dot_general(
        inputs, kernel, (((inputs.ndim - 1,), (0,)), ((), ()))
    )
  rows = inputs.reshape(-1, inputs.shape[-1])
  if number_format is None:
    outputs = multiply_matrices(rows, kernel)
  else:
    outputs = quantization_lib.contract_last_axis(rows, kernel, number_format)
  return outputs.reshape(*inputs.shape[:-1], kernel.shape[-1])


class DenseGeneral(nn.Module):
  """A linear map from the last axes to new ones.

  Attributes:
    features: sizes of the output axes.
    kernel_axes: logical axes of the kernel. Two names: the kernel is one
      matrix, its inputs and outputs joined (T5X's plain layout). More: one
      axis for each input and output axis (T5X's scanned layout). The initial
      numbers are the same either way.
    num_input_axes: how many of the last axes are contracted.
    use_bias: add a bias, zero at the start; T5 has none.
    dtype: type of the computation; the kernel is float32.
    kernel_init: initialiser, called with the joined shape.
    quantization: which layers multiply 8-bit numbers; None = none.
  """

  features: int | Sequence[int]
  kernel_axes: tuple[str, ...]
  num_input_axes: int = 1
  use_bias: bool = False
  dtype: DType = jnp.float32
  kernel_init: Initializer = dense_init
  quantization: Quantization = None

  @nn.compact
  def __call__(
      self, inputs: Float[Array, '*leading']
  ) -> Float[Array, '*outputs']:
    """Maps `[..., *in]` to `[..., *features]`."""
    features = (
        (self.features,)
        if isinstance(self.features, int)
        else tuple(self.features)
    )
    leading = inputs.shape[: -self.num_input_axes]
    inner = inputs.shape[-self.num_input_axes :]
    joined = (math.prod(inner), math.prod(features))
    shape = joined if len(self.kernel_axes) == 2 else inner + features
    kernel = partitioning.param_with_axes(
        'kernel',
        lambda key: self.kernel_init(key, joined, jnp.float32).reshape(shape),
        axes=self.kernel_axes,
    )
    outputs = contract_last_axis(
        inputs.astype(self.dtype).reshape(*leading, joined[0]),
        kernel.astype(self.dtype).reshape(joined),
        number_format=self._number_format(),
    )
    if self.use_bias:
      outputs = outputs + self._bias(joined[1:], shape, len(inner))
    return outputs.reshape(*leading, *features)

  def _number_format(self) -> str | None:
    if self.quantization is None or not self.quantization.covers(self.path):
      return None
    return self.quantization.number_format

  def _bias(self, joined, kernel_shape, num_inputs) -> Float[Array, ' joined']:
    is_matrix = len(self.kernel_axes) == 2
    first = 1 if is_matrix else num_inputs
    bias = partitioning.param_with_axes(
        'bias',
        nn.initializers.zeros,
        kernel_shape[first:],
        jnp.float32,
        axes=self.kernel_axes[first:],
    )
    return bias.astype(self.dtype).reshape(joined)


def dropout_scale(
    key: DropoutKey,
    shape: Sequence[int],
    *,
    rate: float,
    rows: DropoutRows = None,
    dtype: DType = jnp.float32,
) -> Float[Array, 'batch ...']:
  """Draws what to multiply with: 1 / (1 - rate) to keep, 0 to drop.

  Args:
    key: the key of this dropout site.
    shape: shape of the scale, batch first.
    rate: probability to drop, below 1.
    rows: global number of each row of the batch; a row's scale then depends on
      the key and its number alone, not on the batch it is in. None draws the
      whole batch with one key, as T5X does.
    dtype: type of the scale.
  """
  keep_rate = 1.0 - rate
  if rows is None:
    keep = jax.random.bernoulli(key, keep_rate, shape)
  else:

    def draw_row(row):
      row_key = jax.random.fold_in(key, row)
      return jax.random.bernoulli(row_key, keep_rate, shape[1:])

    keep = jax.vmap(draw_row)(rows)
  return jnp.where(keep, 1.0 / keep_rate, 0.0).astype(dtype)


class Dropout(nn.Module):
  """Drops features at random, the same at every position.

  Named and called as Flax's own, so that it gets the keys T5X's sites get.

  Attributes:
    rate: probability to drop a feature.
    broadcast_dims: axes along which one draw is shared.
  """

  rate: float
  broadcast_dims: Sequence[int] = (-2,)

  @nn.compact
  def __call__(
      self,
      inputs: Float[Array, 'batch length features'],
      *,
      deterministic: bool,
      dropout_rows: DropoutRows = None,
  ) -> Float[Array, 'batch length features']:
    """Returns the inputs, scaled or dropped; untouched if deterministic."""
    if deterministic or self.rate == 0.0:
      return inputs
    shape = list(inputs.shape)
    for axis in self.broadcast_dims:
      shape[axis] = 1
    return inputs * dropout_scale(
        self.make_rng('dropout'),
        shape,
        rate=self.rate,
        rows=dropout_rows,
        dtype=inputs.dtype,
    )


def make_activation(name: str | Callable) -> Callable[[Array], Array]:
  """Finds an activation of flax.linen by name; 'linear' is the identity."""
  if callable(name):
    return name
  if name == 'linear':
    return lambda x: x
  found = getattr(nn, name, None) if isinstance(name, str) else None
  if not callable(found):
    raise ValueError(
        f'unknown activation {name!r} in mlp_activations; expected the name of '
        "a function in flax.linen ('relu', 'gelu', 'silu', ...), 'linear' or a "
        'function: correct T5Config.mlp_activations'
    )
  return found


class MlpBlock(nn.Module):
  """The feed-forward half of a layer: product of activations, then back.

  Attributes:
    intermediate_dim: size of the hidden axis.
    activations: one per input product; ('gelu', 'linear') is T5 1.1's gated
      GELU (Shazeer 2020, arXiv:2002.05202).
    intermediate_dropout_rate: dropout of the hidden axis.
    use_bias: add a bias to each product.
    dtype: type of the computation.
    quantization: see `DenseGeneral`.
  """

  intermediate_dim: int
  activations: Sequence[str | Callable] = ('relu',)
  intermediate_dropout_rate: float = 0.1
  use_bias: bool = False
  dtype: DType = jnp.float32
  quantization: Quantization = None

  @nn.compact
  def __call__(
      self,
      inputs: Float[Array, 'batch length embed'],
      *,
      deterministic: bool,
      dropout_rows: DropoutRows = None,
  ) -> Float[Array, 'batch length embed']:
    """Maps each position by itself."""
    hidden = [
        DenseGeneral(
            self.intermediate_dim,
            kernel_axes=('embed', 'mlp'),
            use_bias=self.use_bias,
            dtype=self.dtype,
            quantization=self.quantization,
            name='wi' if len(self.activations) == 1 else f'wi_{index}',
        )(inputs)
        for index in range(len(self.activations))
    ]
    x = self._activate(*hidden)
    x = Dropout(self.intermediate_dropout_rate)(
        x, deterministic=deterministic, dropout_rows=dropout_rows
    )
    x = partitioning.with_sharding_constraint(x, ('batch', 'length', 'mlp'))
    return DenseGeneral(
        inputs.shape[-1],
        kernel_axes=('mlp', 'embed'),
        use_bias=self.use_bias,
        dtype=self.dtype,
        quantization=self.quantization,
        name='wo',
    )(x)

  def _activate(self, *hidden: Array) -> Array:
    """Multiplies the activations; the backward pass computes them anew."""

    def product(*hidden):
      activated = [
          make_activation(activation)(x)
          for activation, x in zip(self.activations, hidden, strict=True)
      ]
      return functools.reduce(operator.mul, activated)

    # Saved, the activations' intermediate results would take more time to
    # write and read than to compute again, and twice the memory.
    return jax.checkpoint(product)(*hidden)
