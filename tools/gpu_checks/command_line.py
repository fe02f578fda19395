# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs each part in a process of its own, within the time there is.

A part that crashes, or takes all memory, takes nothing with it: what the others
found is in the file. This process never starts JAX, so that a part has the
device to itself.
"""

import argparse
from collections.abc import Callable, Sequence
import json
import os
import pathlib
import subprocess
import sys
import time
from typing import Any

from gpu_checks import parts

_SECONDS = 450  # of the 480 that are promised: the last part is ended late
_LEAST_SECONDS = 20  # to start a part with
_LAST_LINES = 15  # of what a failed part said

RunPart = Callable[[str, argparse.Namespace, float], dict[str, Any]]


def parse(arguments: Sequence[str]) -> argparse.Namespace:
  """Parses the command line."""
  parser = argparse.ArgumentParser(prog='gpu_check.py')
  parser.add_argument(
      '--output', default='gpu_check.json', help='the file that is written'
  )
  parser.add_argument(
      '--seconds', type=float, default=_SECONDS, help='for all parts together'
  )
  parser.add_argument('--small', action='store_true', help='tiny sizes')
  parser.add_argument(
      '--parts', default='', help='some of: ' + ' '.join(parts.NAMES)
  )
  parser.add_argument('--only_part', default='', help=argparse.SUPPRESS)
  options = parser.parse_args(arguments)
  options.parts = options.parts.replace(',', ' ').split() or list(parts.NAMES)
  unknown = [name for name in options.parts if name not in parts.NAMES]
  if unknown:
    parser.error(
        f'--parts has {unknown}; expected some of {list(parts.NAMES)}; leave '
        'it out for all'
    )
  return options


def main(arguments: Sequence[str]) -> int:
  """Runs the parts; returns the exit code."""
  options = parse(arguments)
  if options.only_part:
    found = parts.run(options.only_part, small=options.small)
    pathlib.Path(options.output).write_text(json.dumps(found))
    return 0
  return run_all(options, run_part=run_in_process)


def run_all(options: argparse.Namespace, *, run_part: RunPart) -> int:
  """Runs one part after the other, and writes what each found at once.

  Args:
    options: of the command line.
    run_part: runs one, within so many seconds.
  """
  end = time.monotonic() + options.seconds
  found: dict[str, Any] = {}
  for name in options.parts:
    left = end - time.monotonic()
    start = time.monotonic()
    if left < _LEAST_SECONDS:
      found[name] = {'skipped': f'{left:.0f} s were left for it'}
    else:
      found[name] = run_part(name, options, left)
      found[name]['seconds'] = round(time.monotonic() - start, 1)
    pathlib.Path(options.output).write_text(json.dumps(found, indent=1) + '\n')
    _say(f'{name}: {parts.summary(found[name])}')
  failed = [name for name, each in found.items() if not parts.is_well(each)]
  _say(f'{options.output}: ' + (f'FAILED: {failed}' if failed else 'all well'))
  return 1 if failed else 0


def run_in_process(
    name: str, options: argparse.Namespace, seconds: float
) -> dict[str, Any]:
  """Runs a part in a process of its own; what went wrong is in the answer."""
  path = pathlib.Path(f'{options.output}.part')
  path.unlink(missing_ok=True)
  command = [
      sys.executable, str(pathlib.Path(__file__).parents[1] / 'gpu_check.py'),
      f'--only_part={name}', f'--output={path}',
      *(['--small'] if options.small else []),
  ]  # fmt: skip
  # Its own share of the memory is the program's, not JAX's first guess.
  environment = {'XLA_PYTHON_CLIENT_MEM_FRACTION': '0.92', **os.environ}
  try:
    done = subprocess.run(
        command, env=environment, timeout=seconds, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
  except subprocess.TimeoutExpired:
    return {'failed': f'took longer than the {seconds:.0f} s that were left'}
  if done.returncode or not path.exists():
    lines = done.stderr.strip().splitlines()[-_LAST_LINES:]
    return {'failed': f'exit code {done.returncode}', 'stderr': lines}
  found = json.loads(path.read_text())
  path.unlink()
  return found


def _say(line: str) -> None:
  sys.stdout.write(line + '\n')
  sys.stdout.flush()
