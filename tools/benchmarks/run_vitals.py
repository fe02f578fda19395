# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""CPU that watchdog, signs of life and time ledger cost a step."""

import contextlib
import statistics
import tempfile
import time

from benchmarks import measure
from t5wild import run_dir as run_dir_lib
from t5wild.vitals import goodput
from t5wild.vitals import watchdog as watchdog_lib

_GOAL_SECONDS = 2e-4
_STEP_SECONDS = 1e-3


def _watched(folder: str, steps: int) -> None:
  ledger = goodput.Ledger()
  watchdog = watchdog_lib.Watchdog(run_dir_lib.RunDir(folder), ledger=ledger)
  with watchdog:
    for step in range(1, steps + 1):
      with ledger.span('data_wait'):
        pass
      with ledger.span('step'):
        time.sleep(_STEP_SECONDS)
      with ledger.span('step'):
        pass
      with ledger.span('log'):
        pass
      watchdog.beat(step)


def _bare(steps: int) -> None:
  for _ in range(steps):
    for _ in range(4):
      with contextlib.nullcontext():
        pass
    time.sleep(_STEP_SECONDS)


def run(options) -> None:
  """Prints microseconds of CPU a step, of a loop whose steps only sleep."""
  steps = 1_000 if options.small else 10_000
  with tempfile.TemporaryDirectory(dir=options.folder) as folder:
    times = measure.interleave(
        {
            'bare': lambda: _bare(steps),
            'watched': lambda: _watched(folder, steps),
        },
        runs=options.runs,
    )
  extra = [
      (watched - bare) / steps
      for watched, bare in zip(
          times['watched'].cpu, times['bare'].cpu, strict=True
      )
  ]
  seconds = statistics.median(extra)
  measure.emit(
      'vitals_cpu_per_step',
      seconds * 1e6,
      'microseconds',
      goal=_GOAL_SECONDS * 1e6,
      met=seconds <= _GOAL_SECONDS,
      steps=steps,
  )
