# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Rotary positions: pairs of features are turned by where they stand."""

import dataclasses

from jax import Array
import jax.numpy as jnp
from jaxtyping import Float, Int
import numpy as np


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rotary:
  """How fast pairs of features turn.

  Pair i of n turns by `position / wavelength**(i / n)` radians (Su et al. 2021,
  arXiv:2104.09864). A model trained on short texts goes on with long ones if
  its slow pairs turn `factor` times as slowly: all of them (Chen et al. 2023,
  arXiv:2306.15595), or those that do not come round within the short texts, as
  in Llama 3.1 (arXiv:2407.21783).

  Attributes:
    wavelength: base of the speeds; 10,000 in the paper.
    factor: how many times as slow; 1 = as they are.
    original_length: length of the short texts; None = all pairs are slowed.
    turns: pairs that turn round less often than the first number within
      `original_length` are slowed, those that do more often than the second are
      not, those between are slowed in part.
  """

  wavelength: float = 10_000.0
  factor: float = 1.0
  original_length: int | None = None
  turns: tuple[float, float] = (1.0, 4.0)

  def frequencies(self, num_pairs: int) -> np.ndarray:
    """Radians that each pair turns by in one position, float32 [pairs]."""
    frequency = self.wavelength ** -(
        np.arange(num_pairs, dtype=np.float32) / num_pairs
    )
    if self.factor == 1.0:
      return frequency
    if self.original_length is None:
      return frequency / np.float32(self.factor)
    least, most = self.turns
    turns = frequency * np.float32(self.original_length / (2 * np.pi))
    kept = np.clip((turns - least) / (most - least), 0.0, 1.0)
    return (frequency * (kept + (1.0 - kept) / self.factor)).astype(np.float32)


def rotate(
    x: Float[Array, 'batch heads length kv'],
    positions: Int[Array, '#batch length'],
    frequencies: Float[Array, ' pairs'] | np.ndarray,
) -> Float[Array, 'batch heads length kv']:
  """Turns pairs of features by angles that grow with the position.

  The product of a turned query and a turned key depends on the distance between
  them alone. Pair i of n is made of the features i and n + i. Computed in
  float32.

  Args:
    x: queries or keys; their last axis is even.
    positions: position of each in its row.
    frequencies: see `Rotary.frequencies`.
  """
  angle = positions[:, None, :, None].astype(jnp.float32) * frequencies
  sine, cosine = jnp.sin(angle), jnp.cos(angle)
  first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
  rotated = (
      first * cosine - second * sine,
      second * cosine + first * sine,
  )
  return jnp.concatenate(rotated, axis=-1).astype(x.dtype)
