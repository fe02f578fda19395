# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a run runs on and with, written down where the run lies."""

import collections
from collections.abc import Mapping, Sequence
import importlib.metadata
import json
import logging
import os
import pathlib
import platform
import re
import socket
import subprocess
from typing import Any

import t5wild
from t5wild import run_dir as run_dir_lib

_PACKAGES = (
    'jax', 'jaxlib', 'flax', 'optax', 'orbax-checkpoint', 'tensorstore',
    'numpy', 'gin-config', 'clu', 'seqio', 'tensorflow', 'sentencepiece',
    'pyarrow', 'libtpu', 'jax-cuda12-plugin', 'jax-cuda13-plugin',
    'nvidia-cudnn-cu12', 'nvidia-cudnn-cu13', 'nvidia-nccl-cu12',
    'nvidia-nccl-cu13', 'transformer-engine-jax', 'aqtp',
)  # fmt: skip
# Variables that change what is computed, or how fast.
_VARIABLES = re.compile(
    r'(XLA|JAX|LIBTPU|NCCL|CUDA|OMP|TPU|TF_XLA|TF_GPU)_[A-Z0-9_]+\Z'
)
_SECRET = re.compile(r'KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL')
# Of these variables: who and where a process is, and what it keeps there.
_OF_A_PLACE = re.compile(
    r'.*(_DIR|_PATH|_ADDRESS|_PORT|_IDS?|_INDEX|_HOSTNAMES|_DEVICES)\Z'
    r'|JAX_(COMPILATION_CACHE|PERSISTENT_CACHE)_|CUDA_(HOME|ROOT)\Z'
)
_DUMPS = re.compile(r'--xla_dump\S*\s*')
_GIT_SECONDS = 5


def describe(
    *,
    devices: Sequence[str],
    num_processes: int,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
  """Names and values, as JSON has them.

  Args:
    devices: the kind of each device of the run, as JAX names it.
    num_processes: of the run.
    settings: JAX's own that change numbers, whoever set them.
  """
  return {
      't5wild': t5wild.__version__,
      'code': _code_version(pathlib.Path(t5wild.__file__).resolve().parents[1]),
      'python': platform.python_version(),
      'system': platform.platform(),
      'host': socket.gethostname(),
      'cores': os.cpu_count(),
      'devices': dict(collections.Counter(devices)),
      'processes': num_processes,
      'packages': versions_of(_PACKAGES),
      'variables': _variables(os.environ),
      'settings': dict(settings or {}),
  }


def what_computes(described: Mapping[str, Any]) -> dict[str, str]:
  """Name to value of what may change a number, of a `describe`.

  Not the host's name and kind, nor variables that say where something lies.
  """
  names = ('t5wild', 'code', 'python', 'processes')
  found = {name: described[name] for name in names if name in described}
  for kind, count in _mapping(described, 'devices').items():
    found[f'devices.{kind}'] = count
  for name, version in _mapping(described, 'packages').items():
    found[f'packages.{name}'] = version
  for name, value in _mapping(described, 'variables').items():
    if not _OF_A_PLACE.match(name):
      found[f'variables.{name}'] = _DUMPS.sub('', str(value)).strip()
  for name, value in _mapping(described, 'settings').items():
    found[f'settings.{name}'] = value
  return {name: str(value) for name, value in found.items()}


def write(run_dir: run_dir_lib.RunDir, **described: Any) -> None:
  """Writes environment.json, a bucket's too; goes on where it cannot.

  Args:
    run_dir: the run's.
    **described: as `describe` takes them.
  """
  from etils import epath  # bucket paths as well as folders

  text = json.dumps(describe(**described), indent=2)
  try:
    epath.Path(run_dir.environment_json).write_text(text + '\n')
  except OSError as error:
    logging.warning(
        '%s cannot be written (%s); the run goes on without it.',
        run_dir.environment_json,
        error,
    )


def versions_of(packages: Sequence[str]) -> dict[str, str]:
  """Those of them that are installed, with their versions."""
  found = {}
  for name in packages:
    try:
      found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
      continue
  return found


def _mapping(described: Mapping[str, Any], name: str) -> Mapping[str, Any]:
  value = described.get(name)
  return value if isinstance(value, dict) else {}


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
  return {
      name: value
      for name, value in sorted(environ.items())
      if _VARIABLES.match(name) and not _SECRET.search(name)
  }


def _code_version(root: pathlib.Path) -> str:
  """The commit of a checkout, with a mark if files differ; else `installed`."""
  if not (root / '.git').exists():
    return 'installed'
  commit = _git(root, 'rev-parse', 'HEAD')
  if commit is None:
    return 'a checkout, its commit is not known'
  changed = _git(root, 'status', '--porcelain', '--untracked-files=no')
  return f'{commit} with changes' if changed else commit


def _git(root: pathlib.Path, *arguments: str) -> str | None:
  try:
    done = subprocess.run(
        ['git', '-C', str(root), *arguments],
        capture_output=True, text=True, check=True, timeout=_GIT_SECONDS,
    )  # fmt: skip
  except (OSError, subprocess.SubprocessError):
    return None
  return done.stdout.strip()
