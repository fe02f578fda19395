# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Finds where a module lies, and imports nothing for it.

`importlib.util.find_spec('a.b')` imports `a`, so that looking for a file runs
code of whoever wrote it. Here each level is asked for by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import machinery
import os
import sys


def find(name: str) -> machinery.ModuleSpec | None:
  """The spec of module `name`, or None where there is none."""
  path = None
  spec = None
  parts = name.split('.')
  for end in range(1, len(parts) + 1):
    if end > 1:
      path = spec.submodule_search_locations
      if path is None:
        return None
    spec = _find('.'.join(parts[:end]), path)
    if spec is None:
      return None
  return spec


def folders(name: str) -> list[str]:
  """Folders of package `name`; none where it is no package or is absent."""
  spec = find(name)
  return list(spec.submodule_search_locations or []) if spec else []


def _find(
    name: str, path: Sequence[str] | None
) -> machinery.ModuleSpec | None:
  for finder in sys.meta_path:
    try:
      spec = finder.find_spec(name, path)
    # KeyError: a folder without __init__.py asks for its parent's module.
    except (AttributeError, ImportError, KeyError, ValueError):
      continue
    if spec is not None:
      return spec
  last = name.rpartition('.')[2]
  folders_of_it = [os.path.join(folder, last) for folder in path or ()]
  found = [folder for folder in folders_of_it if os.path.isdir(folder)]
  if not found:
    return None
  spec = machinery.ModuleSpec(name, None, is_package=True)
  spec.submodule_search_locations = found
  return spec
