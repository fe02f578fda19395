# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which layer a parameter belongs to, by its path."""

import re

_LAYER = re.compile(r'.*?(?:layers?|blocks?)_?\d+')


def group_of(path: str) -> str:
  """The layer that a parameter belongs to, or the module at the top.

  A stack of layers in one array (`scan_layers`) is one group.
  """
  match = _LAYER.match(path)
  if match:
    return match.group(0)
  parts = path.split('/')
  return '/'.join(parts[:2]) if len(parts) > 2 else parts[0]
