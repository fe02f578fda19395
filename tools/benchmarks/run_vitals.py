# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What watching a run costs a step, on the host and inside the compiled step.
"""

import contextlib
import statistics
import tempfile
import time
from unittest import mock

import jax
import numpy as np

from benchmarks import measure
from benchmarks import workload as workload_lib
from t5wild import metrics as metrics_lib
from t5wild import run_dir as run_dir_lib
from t5wild.models import base_metrics
from t5wild.trainer import step_watch
from t5wild.trainer import update_guard
from t5wild.trainer import vital_signs
from t5wild.vitals import answers
from t5wild.vitals import goodput
from t5wild.vitals import watchdog as watchdog_lib

_GOAL_SECONDS = 2e-4
_STEP_SECONDS = 1e-3
_GOAL_FLOPS = 0.01


def _step_metrics(step: int) -> dict[str, object]:
  """New arrays on the device, as each step gives; no two losses alike."""
  value = jax.device_put(np.float32(3 + np.sin(step) / 50))
  return {
      'loss': metrics_lib.AveragePerStep(total=value),
      'weight_gradient_norm': metrics_lib.AveragePerStep(total=value),
      'updates_skipped': metrics_lib.Sum(total=value * 0),
  }


def _watched(folder: str, steps: int) -> None:
  ledger = goodput.Ledger()
  watchdog = watchdog_lib.Watchdog(run_dir_lib.RunDir(folder), ledger=ledger)
  watch = step_watch.StepWatch(
      answers.Answers(), guard=update_guard.UpdateGuard()
  )
  with watchdog:
    for step in range(1, steps + 1):
      metrics = _step_metrics(step)
      with ledger.span('data_wait'):
        pass
      with ledger.span('step'):
        time.sleep(_STEP_SECONDS)
      with ledger.span('step'):
        pass
      with ledger.span('log'):
        pass
      watchdog.beat(step)
      watch.after_step(step, metrics)
      watch.limit_at(step + 1)


def _bare(steps: int) -> None:
  for step in range(1, steps + 1):
    _step_metrics(step)
    for _ in range(4):
      with contextlib.nullcontext():
        pass
    time.sleep(_STEP_SECONDS)


def _measure_host(options) -> None:
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


def _flops(trainer) -> float:
  costs = trainer._compiled_train_step.cost_analysis()
  return (costs[0] if isinstance(costs, list) else costs)['flops']


def _measure_step(options) -> None:
  """Operations of the compiled step, and its time, with and without."""
  workload = workload_lib.of(options)
  with (
      mock.patch.object(vital_signs, 'of_update', lambda *_: {}),
      mock.patch.object(base_metrics, 'compute_logit_metrics', lambda *_: {}),
  ):
    bare = workload_lib.make_trainer(workload)
  full = workload_lib.make_trainer(workload)
  share = _flops(full) / _flops(bare) - 1
  measure.emit(
      'vitals_flops_share', share, 'share', goal=_GOAL_FLOPS,
      met=share <= _GOAL_FLOPS, flops=_flops(full),
  )  # fmt: skip
  batch = workload_lib.make_batch(workload)
  times = measure.interleave(
      {
          name: lambda trainer=trainer: workload_lib.run_step(trainer, batch)
          for name, trainer in (('bare', bare), ('full', full))
      },
      runs=options.runs,
      in_a_row=measure.STEPS_IN_A_ROW,
  )
  measure.emit_ratio(
      'vitals_step_to_bare', times['full'], times['bare'], goal=1 + _GOAL_FLOPS
  )


def run(options) -> None:
  """Prints CPU a step of a loop that sleeps, and what a compiled step adds."""
  _measure_host(options)
  _measure_step(options)
