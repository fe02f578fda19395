# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Picks beams of each input: out of arrays, out of caches."""

from typing import Any

import jax
from jax import numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

from t5wild.decoding import state as state_lib

Chosen = Int[Array, 'batch chosen']


def take_beams(
    x: Shaped[Array, '...'], chosen: Chosen, *, offset: int = 0
) -> Shaped[Array, '...']:
  """Takes the chosen beams of each input.

  Args:
    x: array with the axes (batch, beams) after `offset` axes.
    chosen: numbers of the beams to take.
    offset: number of axes before the batch axis.
  """

  # Batched, the gather stays on the device that has the input.
  def take(beams, numbers):
    return jnp.take(beams, numbers, axis=0, mode='clip')

  batched = jax.vmap(take)
  for _ in range(offset):
    batched = jax.vmap(batched, in_axes=(0, None))
  return batched(x, chosen)


def best_beams(scores: Float[Array, 'batch beams'], number: int) -> Chosen:
  """Numbers of the beams with the highest scores, the best one last."""
  return jnp.flip(jax.lax.top_k(scores, number)[1], axis=1)


def gather_beams(
    nested: Any,
    beam_indices: Chosen,
    batch_size: int,
    old_beam_size: int,
    new_beam_size: int,
    one_hot: bool = True,
) -> Any:
  """Takes beams out of each array [batch, old beams, ...] of a tree.

  Args:
    nested: tree of arrays.
    beam_indices: numbers of the beams to take.
    batch_size: ignored, as is the rest: the arrays tell.
    old_beam_size: ignored.
    new_beam_size: ignored.
    one_hot: ignored.
  """
  del batch_size, old_beam_size, new_beam_size, one_hot
  return jax.tree.map(lambda x: take_beams(x, beam_indices), nested)


def cache_gather_beams(
    nested: state_lib.Cache,
    beam_indices: Chosen,
    batch_size: int,
    old_beam_size: int,
    new_beam_size: int,
    one_hot: bool = True,
    offset: int = 0,
) -> state_lib.Cache:
  """Takes beams out of the arrays of a cache that have a batch axis.

  Args:
    nested: cache of arrays [batch, old beams, ...] after `offset` axes.
    beam_indices: numbers of the beams to take.
    batch_size: ignored, as are the next three: the arrays tell.
    old_beam_size: ignored.
    new_beam_size: ignored.
    one_hot: ignored.
    offset: number of axes before the batch axis.
  """
  del batch_size, old_beam_size, new_beam_size, one_hot
  return state_lib.cache_map(
      lambda x: take_beams(x, beam_indices, offset=offset), nested
  )
