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
_GIT_SECONDS = 5


def describe(*, devices: Sequence[str], num_processes: int) -> dict[str, Any]:
  """Names and values, as JSON has them.

  Args:
    devices: the kind of each device of the run, as JAX names it.
    num_processes: of the run.
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
  }


def write(
    run_dir: run_dir_lib.RunDir, *, devices: Sequence[str], num_processes: int
) -> None:
  """Writes environment.json, a bucket's too; goes on where it cannot."""
  from etils import epath  # bucket paths as well as folders

  text = json.dumps(
      describe(devices=devices, num_processes=num_processes), indent=2
  )
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
