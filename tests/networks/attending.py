# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What kernels of attention are compared by: averages and gradients."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from t5wild.networks import sight as sight_lib
from tests.networks import decoders


def value_and_gradients(
    attend: Callable[..., jax.Array],
    sight: sight_lib.Sight,
    arrays: Sequence[jax.Array],
) -> tuple[Sequence[jax.Array], jax.Array]:
  """Gradients of a sum over queries that see something, and their averages.

  Args:
    attend: the queries, keys, values and maybe bias -> averages.
    sight: which pairs are seen; queries without one (padding) do not count.
    arrays: what `attend` takes.
  """
  real = sight.pairs().any(-1)[..., None]
  target = jnp.cos(jnp.arange(arrays[0].size)).reshape(arrays[0].shape) * real

  def total(arrays):
    averaged = attend(*arrays)
    return jnp.sum(averaged * target), averaged * real

  return jax.jit(
      jax.grad(total, has_aux=True), compiler_options=decoders.QUICK
  )(arrays)
