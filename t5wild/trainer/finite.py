# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether numbers are finite, and from which step on they were not."""

from collections.abc import Collection, Mapping
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from t5wild.trainer import metric_values


@jax.jit
def _all_finite(leaves: list[jax.Array]) -> jax.Array:
  return jnp.all(jnp.stack([jnp.isfinite(leaf).all() for leaf in leaves]))


def all_finite(tree: Any) -> bool:
  """Returns whether all floats of a tree of arrays are; waits for them.

  All processes call it together and get the same answer.
  """
  leaves = [
      leaf
      for leaf in jax.tree.leaves(tree)
      if jnp.issubdtype(leaf.dtype, jnp.inexact)
  ]
  if not leaves:
    return True
  return bool(np.asarray(_all_finite(leaves).addressable_data(0)))


class NotFiniteError(Exception):
  """A run whose numbers are not finite any more; a restart would repeat it."""

  def __init__(self, what: str, *, after_step: int, kept: int | None):
    """Says what is wrong, and what is left.

    Args:
      what: Names the metric or parameters, and the step.
      after_step: Step after which the run stops.
      kept: Step of the newest checkpoint; None without any.
    """
    left = (
        'no checkpoint was saved before'
        if kept is None
        else f'checkpoint_{kept} is the newest with finite parameters, and is '
        'kept'
    )
    super().__init__(
        f'{what}: stopped after step {after_step}; {left}. Expected finite '
        'numbers. Lower the learning rate or warm it up longer, clip '
        'gradients, or look at the data of that step; the same command alone '
        'would come to the same step again.'
    )


class NotFiniteWatch:
  """Remembers metrics of the steps that are not known to be good yet."""

  def __init__(self, names: Collection[str]):
    """Takes the names of the metrics; those a step lacks are left out."""
    self._names = frozenset(names)
    self._steps: list[tuple[int, dict[str, Any]]] = []
    self._found: str | None = None

  def add(self, step: int, metrics: Mapping[str, Any]) -> None:
    """Keeps what is watched of a step's metrics, on the device."""
    kept = {n: m for n, m in metrics.items() if n in self._names}
    self._steps.append((step, kept))

  def judge(self, last_step: int, values: Mapping[str, float]) -> None:
    """Takes the values of the interval that ends with `last_step`."""
    watched = self._names & values.keys()
    if all(math.isfinite(values[name]) for name in watched):
      self._found = None
    else:
      self._found = self.first()
    self._steps = [one for one in self._steps if one[0] > last_step]

  def first(self) -> str | None:
    """Returns the first step that is not finite, as a text; waits for it."""
    if self._found is not None:
      return self._found
    found = (_not_finite(*one) for one in self._steps)
    return next(filter(None, found), None)


def _not_finite(step: int, metrics: Mapping[str, Any]) -> str | None:
  values = metric_values.compute_values(
      jax.device_get(dict(metrics)), duration_seconds=1.0, num_steps=1
  )
  for name, value in values.items():
    if not math.isfinite(value):
      return f'train/{name} is {value} at step {step}'
  return None
