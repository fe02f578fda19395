# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""gin's registry, which outlives a test."""

import gin
from gin import selector_map


def forget() -> None:
  """gin as in a new process: what gin files registered before is forgotten.

  For good, as gin files register again what they name; what modules register
  when they are imported stays, as they are imported once.
  """
  gin.clear_config()
  registry = selector_map.SelectorMap()
  by_object = {}
  for selector, found in gin.config._REGISTRY.items():
    if found.import_source is None:
      registry[selector] = found
      by_object[found.wrapped] = found
  gin.config._REGISTRY = registry
  gin.config._INVERSE_REGISTRY = by_object
