# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""t5wild's bare training step against the reference's, in turns."""

import statistics

import jax

from benchmarks import measure
from benchmarks import reference_step
from benchmarks import workload as workload_lib
from t5wild.trainer import xla_peak

GOAL = 1.05


def run(options) -> None:
  """Prints the seconds of both and their ratio."""
  workload = workload_lib.of(options)
  batch = workload_lib.make_batch(workload)
  trainer = workload_lib.make_trainer(workload)
  reference = reference_step.Runner(
      trainer.train_state.params,
      batch,
      sizes=workload.reference_sizes,
      learning_rate=workload_lib.LEARNING_RATE,
      key=jax.random.PRNGKey(1),
  )
  times = measure.interleave(
      {
          'reference': lambda: reference(batch),
          't5wild': lambda: workload_lib.run_step(trainer, batch),
      },
      runs=options.runs,
      in_a_row=measure.STEPS_IN_A_ROW,
  )
  for name, one in times.items():
    measure.emit_times(f'step_{name}', one)
  measure.emit_ratio(
      'step_t5wild_to_reference', times['t5wild'], times['reference'], goal=GOAL
  )
  seconds = statistics.median(times['t5wild'].cpu)
  peak = xla_peak.measure_matmul_flops_per_second()
  measure.emit(
      'step_t5wild_mfu',
      workload.flops_per_step / seconds / peak,
      'of a measured matmul peak',
      peak_flops_per_second=peak,
      flops_per_step=workload.flops_per_step,
  )
