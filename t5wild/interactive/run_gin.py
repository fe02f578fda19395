# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A run's own configuration, in force while its model is used."""

from collections.abc import Sequence
import contextlib
import sys
from typing import Any

import gin

from t5wild import run_config

_ABSENT = object()
# gin has one configuration for all: whose is it?
_IN_FORCE: list['RunGin'] = []


class RunGin:
  """Gives gin the configuration of one run, whenever that is needed.

  Functions that gin made (decoders, schedules) read their arguments when they
  are called, so of two runs at hand each must have its own.
  """

  def __init__(self, run: str, *, bindings: Sequence[str]):
    """Finds the configuration.

    Args:
      run: MODEL_DIR.
      bindings: `NAME = value` each; they override it.

    Raises:
      ValueError: The directory is no run's.
    """
    self._config = run_config.find_config(run)
    self._bindings = tuple(bindings)

  def use(self) -> None:
    """Puts the configuration into force; gin's own until then is lost."""
    if [self] != _IN_FORCE:
      self.read()

  def read(self) -> run_config.RunConfig:
    """Does the same, and returns what it binds."""
    gin.clear_config()
    with _own_names_kept():
      bound = run_config.RunConfig.read(
          self._config, gin_bindings=self._bindings
      )
    _IN_FORCE[:] = [self]
    return bound


@contextlib.contextmanager
def _own_names_kept():
  """Keeps a notebook's own variable `train`: recipes want one of theirs."""
  names: dict[str, Any] = vars(sys.modules['__main__'])
  before = names.get('train', _ABSENT)
  try:
    yield
  finally:
    if before is _ABSENT:
      names.pop('train', None)
    else:
      names['train'] = before
