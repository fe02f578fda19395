# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A jitted function that carries its mesh and rules into every trace."""

from collections.abc import Callable
import contextlib
from typing import Any

from flax.linen import partitioning as flax_partitioning
import jax
from jax.sharding import Mesh

from t5wild.partitioning import compile_errors
from t5wild.partitioning import rules as rules_lib


class PartitionedFunction:
  """A jitted function that is always traced under its mesh and rules."""

  def __init__(
      self,
      jitted: Callable[..., Any],
      *,
      mesh: Mesh,
      logical_axis_rules: rules_lib.LogicalAxisRules = (),
  ):
    """Keeps what tracing needs."""
    self._jitted = jitted
    self._mesh = mesh
    # On one device every constraint is void; without rules flax adds none.
    self._rules = tuple(logical_axis_rules) if mesh.size > 1 else ()

  @contextlib.contextmanager
  def _context(self):
    with jax.set_mesh(self._mesh), flax_partitioning.axis_rules(self._rules):
      yield

  def __call__(self, *args, **kwargs):
    """Runs the function, compiled on the first call of each shape."""
    with compile_errors.told_with_their_mend(), self._context():
      return self._jitted(*args, **kwargs)

  def trace(self, *args, **kwargs):
    """Returns `jax.stages.Traced`; arguments may be ShapeDtypeStructs."""
    with self._context():
      return self._jitted.trace(*args, **kwargs)

  def lower(self, *args, **kwargs):
    """Returns `jax.stages.Lowered`; arguments may be ShapeDtypeStructs."""
    with self._context():
      return self._jitted.lower(*args, **kwargs)
