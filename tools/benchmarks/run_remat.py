# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Time and temporary memory of the step under each remat policy.

The network is scanned: XLA's CPU scheduler is free to recompute everything of
an unrolled one at once, before the backward pass needs it. A body of a loop it
cannot pull forward.
"""

import dataclasses

from benchmarks import measure
from benchmarks import workload as workload_lib

# Policy -> (time, temporary memory) at most, as ratios to no remat.
GOALS = {'minimal': (1.08, 1.0), 'full': (1.25, 0.35)}


def run(options) -> None:
  """Prints ratios to the step that recomputes nothing."""
  workload = dataclasses.replace(workload_lib.of(options), scan_layers=True)
  batch = workload_lib.make_batch(workload)
  trainers = {
      policy: workload_lib.make_trainer(
          dataclasses.replace(workload, remat_policy=policy)
      )
      for policy in ('none', *GOALS)
  }
  times = measure.interleave(
      {
          policy: lambda trainer=trainer: workload_lib.run_step(trainer, batch)
          for policy, trainer in trainers.items()
      },
      runs=options.runs,
  )
  temporary = {
      policy: workload_lib.temporary_bytes(trainer, batch)
      for policy, trainer in trainers.items()
  }
  measure.emit('remat_none_temporary', temporary['none'], 'bytes')
  for policy, (most_time, most_memory) in GOALS.items():
    measure.emit_ratio(
        f'remat_{policy}_time', times[policy], times['none'], goal=most_time
    )
    memory = temporary[policy] / temporary['none']
    measure.emit(
        f'remat_{policy}_temporary_memory',
        memory,
        'ratio',
        goal=most_memory,
        met=memory <= most_memory,
    )
