# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A run's configuration: what was set and what is a default."""

from __future__ import annotations

import dataclasses

from t5wild.vitals import gin_statements


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
  """One value of the operative configuration.

  Attributes:
    name: `module.function.argument`, with its scope, or a macro.
    value: as gin writes it, on one line.
    is_set: whether the recipe or a flag set it; otherwise it is the default.
  """

  name: str
  value: str
  is_set: bool


def settings(operative: str, given: str | None) -> list[Setting]:
  """The operative configuration, each value with whether it was set.

  Args:
    operative: operative_config.gin.
    given: config.gin, which has no defaults; None = not there: then all that
      differs cannot be told, and all count as set.
  """
  # A scope inherits what is bound without it.
  bound = None if given is None else dict(gin_statements.statements(given))

  def is_set(name: str) -> bool:
    return bound is None or name in bound or name.rsplit('/', 1)[-1] in bound

  return [
      Setting(name=name, value=value, is_set=is_set(name))
      for name, value in gin_statements.statements(operative)
  ]
