# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Registers functions with gin under T5's names, unless T5 does it itself."""

from collections.abc import Callable
import importlib.util
from typing import Any

import gin


def configurable(module: str) -> Callable[[Any], Any]:
  """Makes a decorator for what gin may configure, as part of `module`.

  With a `t5` installed those names are its own: ours then go by their place
  here, since gin refuses a name that is registered twice.

  Args:
    module: the module that has the function in T5.
  """
  return gin.configurable(module=None if _has_t5() else module)


def _has_t5() -> bool:
  spec = importlib.util.find_spec('t5')
  # The names that t5wild itself lends have no file.
  return spec is not None and spec.origin is not None
