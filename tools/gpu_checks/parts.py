# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The parts of the check by name, in the order of their worth.

What a part needs is imported when it runs: it starts JAX.
"""

import importlib
from typing import Any

# Name -> (module, what its function `check` gets).
_PARTS = {
    'device': ('device', {}),
    'attention': ('attention', {}),
    'low_precision': ('low_precision', {}),
    'base': ('speed', {'model': 'base'}),
    'large': ('speed', {'model': 'large'}),
    'xl': ('speed', {'model': 'xl'}),
    'decoder_8b_slice': ('speed', {'model': 'decoder_8b_slice'}),
    'large_fp8': ('speed', {'model': 'large', 'quantization': 'fp8'}),
    'decoder_8b_slice_fp8': (
        'speed', {'model': 'decoder_8b_slice', 'quantization': 'fp8'}
    ),
    'large_xla_attention': (
        'speed', {'model': 'large', 'attention_implementation': 'xla'}
    ),
}  # fmt: skip
NAMES = tuple(_PARTS)


def run(name: str, *, small: bool) -> dict[str, Any]:
  """Runs a part in this process; returns what it found.

  Args:
    name: one of `NAMES`.
    small: tiny sizes.
  """
  module, arguments = part(name)
  module = importlib.import_module(f'gpu_checks.{module}')
  return module.check(small=small, **arguments)


def part(name: str) -> tuple[str, dict[str, Any]]:
  """The module of a part, and what its function `check` gets."""
  return _PARTS[name]


def is_well(found: dict[str, Any]) -> bool:
  """Whether a part ran and all it checked was right; skipped is well."""
  checks = found.get('checks', ())
  return 'failed' not in found and all(each['ok'] for each in checks)


def summary(found: dict[str, Any]) -> str:
  """What a part found, in a line."""
  if 'skipped' in found:
    return f'skipped, {found["skipped"]}'
  if 'failed' in found:
    return f'FAILED, {found["failed"]}'
  if 'checks' in found:
    wrong = [each['name'] for each in found['checks'] if not each['ok']]
    told = f'{len(found["checks"])} checks'
    return f'{told}, WRONG: {wrong}' if wrong else f'{told}, all right'
  return ', '.join(
      f'{key} {value:.4g}' if isinstance(value, float) else f'{key} {value}'
      for key, value in found.items()
      if isinstance(value, (str, int, float))
  )
