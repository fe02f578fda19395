# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""All processes must run the same thing: compared before anything compiles.

Two that differ would wait for each other in a collective, or worse, compute
something nobody asked for.
"""

from collections.abc import Mapping
import difflib
import hashlib
import importlib.metadata
import os
import pathlib
import platform
from typing import Any

import gin
import jax

from t5wild.partitioning import distributed

_PACKAGE = pathlib.Path(__file__).resolve().parents[1]
_VERSIONS_OF = ('jax', 'jaxlib', 'flax', 'optax', 'orbax-checkpoint', 'numpy')
# What changes numbers or programs; other variables may differ by host.
_VARIABLES = ('XLA_FLAGS', 'LIBTPU_INIT_ARGS')
_SETTINGS = (
    'jax_enable_x64', 'jax_default_matmul_precision', 'jax_default_prng_impl',
    'jax_threefry_partitionable', 'jax_numpy_dtype_promotion',
)  # fmt: skip
_MAX_LINES = 20


class DisagreementError(ValueError):
  """Processes of one run are not alike."""


def check() -> None:
  """Compares all processes; one alone agrees with itself.

  Raises:
    DisagreementError: on every process, with the difference.
  """
  if distributed.process_count() > 1:
    compare({
        'config': gin.config_str(),
        'code': _code(),
        'environment': _environment(),
    })


def settings() -> dict[str, Any]:
  """JAX's settings that change numbers or programs, as they are."""
  return {name: getattr(jax.config, name) for name in _SETTINGS}


def compare(facts: Mapping[str, str]) -> None:
  """Compares texts by their hashes; only texts that differ are sent.

  Args:
    facts: name to text; the same names everywhere.

  Raises:
    DisagreementError: on every process, with the difference.
  """
  hashes = {name: _hash(text) for name, text in facts.items()}
  found = distributed.meet('fingerprints of all processes', value=hashes)
  differing = {
      index: [name for name in facts if theirs[name] != found[0][name]]
      for index, theirs in enumerate(found)
      if theirs != found[0]
  }
  if not differing:
    return
  first = min(differing)
  shown = None
  if distributed.process_index() in (0, first):
    shown = {name: facts[name] for name in differing[first]}
  texts = distributed.meet('what differs', value=shown)
  raise DisagreementError(_message(differing, texts[0], texts[first], first))


def _message(
    differing: Mapping[int, list[str]],
    ours: Mapping[str, str],
    theirs: Mapping[str, str],
    first: int,
) -> str:
  names = sorted({name for found in differing.values() for name in found})
  lines = [
      f'Processes {list(differing)} differ from process 0 in '
      f'{" and ".join(names)}:'
  ]
  for name in differing[first]:
    difference = [
        line
        for line in difflib.unified_diff(
            ours[name].splitlines(), theirs[name].splitlines(),
            f'{name} of process 0', f'{name} of process {first}', '', '', 0, '',
        )
        if not line.startswith('@@')
    ]  # fmt: skip
    lines += [f'  {line}' for line in difference[:_MAX_LINES]]
    if len(difference) > _MAX_LINES:
      lines.append(f'  ... and {len(difference) - _MAX_LINES} lines more')
  lines.append(
      'Expected the same on all of them. Start all processes with the same '
      'flags and gin files, from the same checkout and environment.'
  )
  return '\n'.join(lines)


def _hash(text: str) -> str:
  return hashlib.sha256(text.encode()).hexdigest()[:16]


def _code() -> str:
  """A line for each of our files: name, hash of what it holds."""
  return '\n'.join(
      f'{path.relative_to(_PACKAGE)} {_hash(path.read_text("utf-8"))}'
      for path in sorted(_PACKAGE.rglob('*.py'))
  )


def _environment() -> str:
  """A line for each version and setting that changes what is computed."""
  rows: dict[str, Any] = {'python': platform.python_version()}
  for name in _VERSIONS_OF:
    rows[name] = importlib.metadata.version(name)
  for name in _VARIABLES:
    # Where a process writes its dumps is its own affair.
    rows[name] = ' '.join(
        flag
        for flag in os.environ.get(name, '').split()
        if not flag.startswith('--xla_dump')
    )
  rows |= settings()
  return '\n'.join(f'{name}: {value}' for name, value in rows.items())
