# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Process start to the first finished step, with the cache cold, then warm."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

from benchmarks import measure

_GOALS = {'cold': 40.0, 'warm': 15.0}
_HELP_GOAL_SECONDS = 0.5
_TOOLS = pathlib.Path(__file__).resolve().parents[1]
_FIRST_STEP = """
from benchmarks import workload
from t5wild import compilation_cache
compilation_cache.start()
w = workload.{name}
trainer = workload.make_trainer(w)
workload.run_step(trainer, workload.make_batch(w))
"""


def _environment(**more: str) -> dict[str, str]:
  path = os.pathsep.join([str(_TOOLS), str(_TOOLS.parent)])
  return os.environ | {'PYTHONPATH': path, 'JAX_PLATFORMS': 'cpu'} | more


def _seconds(command: list[str], environment: dict[str, str]) -> float:
  start = time.perf_counter()
  subprocess.run(
      command, env=environment, check=True, stdout=subprocess.DEVNULL
  )
  return time.perf_counter() - start


def run(options) -> None:
  """Prints the seconds of `t5wild --help` and of both kinds of start."""
  command = [sys.executable, '-m', 't5wild.cli', '--help']
  fastest = min(_seconds(command, _environment()) for _ in range(3))
  measure.emit(
      'start_help',
      fastest,
      'seconds',
      goal=_HELP_GOAL_SECONDS,
      met=fastest <= _HELP_GOAL_SECONDS,
  )
  code = _FIRST_STEP.format(name='SMALL' if options.small else 'W1')
  with tempfile.TemporaryDirectory(dir=options.folder) as cache:
    environment = _environment(T5WILD_COMPILATION_CACHE=cache)
    environment.pop('JAX_COMPILATION_CACHE_DIR', None)
    for kind, goal in _GOALS.items():
      seconds = _seconds([sys.executable, '-c', code], environment)
      measure.emit(
          f'start_to_first_step_{kind}',
          seconds,
          'seconds',
          goal=goal,
          met=seconds <= goal,
      )
