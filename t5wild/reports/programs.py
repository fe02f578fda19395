# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which program a run compiled, and which samples it read, by what it left.

Both are read without JAX and without the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import hashlib
import json
from typing import Any

from t5wild import run_dir as run_dir_lib

# Of the data's position: where files lie is no difference of data.
_PLACES = ('path', 'directory', 'folder')
# It moves with each step.
_POSITION = ('step', 'kind')


def read_program(run: run_dir_lib.RunDir) -> dict[str, Any]:
  """`program.json` of a run; empty where there is none, or half of one."""
  try:
    with open(run.program_json, encoding='utf-8') as file:
      found = json.load(file)
  except (OSError, ValueError):
    return {}
  return found if isinstance(found, dict) and 'hash' in found else {}


def described_program(program: Mapping[str, Any]) -> dict[str, str]:
  """Name -> value, to be held against another run's."""
  if not program:
    return {}
  told = {
      'compiled program': program['hash'],
      'compiled program without constants': program.get(
          'hash_without_constants', ''
      ),
  }
  counts = program.get('operations', {})
  return told | {
      f'operations, {name}': f'{count:,}' for name, count in counts.items()
  }


def read_samples(run: run_dir_lib.RunDir) -> dict[str, str]:
  """What the ledger of samples says of the data at its beginning, flat.

  Two runs with the same read the same samples at the same steps: the order
  follows from it (docs/data.md). Empty where no ledger is kept.
  """
  try:
    with open(run.join('samples.jsonl'), encoding='utf-8') as lines:
      first = json.loads(next(lines))
  except (OSError, ValueError, StopIteration):
    return {}
  if not isinstance(first, dict):
    return {}
  return {
      f'samples.{name}': value
      for name, value in _flat(first, '')
      if name.rsplit('.', 1)[-1] not in _PLACES and name not in _POSITION
  }


def _flat(value: Any, name: str) -> Iterator[tuple[str, str]]:
  if isinstance(value, dict):
    for key, inner in value.items():
      yield from _flat(inner, f'{name}.{key}' if name else str(key))
  elif isinstance(value, list) and len(value) > 8:
    yield name, f'{len(value)} of them, {_hash(value)}'
  else:
    yield name, json.dumps(value)


def _hash(value: Any) -> str:
  return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:12]
