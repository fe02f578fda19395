# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""gin's registry, which outlives a test."""

import gin
from gin import selector_map
import pytest


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
  """gin as in a new process: what gin files registered before is forgotten."""
  gin.clear_config()
  registry = selector_map.SelectorMap()
  by_object = {}
  for selector, found in gin.config._REGISTRY.items():
    if found.import_source is None:
      registry[selector] = found
      by_object[found.wrapped] = found
  monkeypatch.setattr(gin.config, '_REGISTRY', registry)
  monkeypatch.setattr(gin.config, '_INVERSE_REGISTRY', by_object)
