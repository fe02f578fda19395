# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Peak memory of a process that trains W1."""

import resource

from benchmarks import measure
from benchmarks import workload as workload_lib

GOAL_BYTES = 2.0e9


def run(options) -> None:
  """Compiles, takes three steps, and prints the most memory ever held."""
  workload = workload_lib.of(options)
  before = _peak_bytes()
  batch = workload_lib.make_batch(workload)
  trainer = workload_lib.make_trainer(workload)
  compiled = _peak_bytes()
  for _ in range(3):
    workload_lib.run_step(trainer, batch)
  peak = _peak_bytes()
  measure.emit(
      'memory_peak',
      peak,
      'bytes',
      goal=GOAL_BYTES,
      met=peak <= GOAL_BYTES,
      after_imports=before,
      after_compiling=compiled,
  )
  measure.emit(
      'memory_step_temporary',
      workload_lib.temporary_bytes(trainer, batch),
      'bytes',
  )


def _peak_bytes() -> int:
  return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
