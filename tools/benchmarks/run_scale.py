# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5 1.1 XXL, scanned and fully sharded, compiled for 256 virtual CPUs."""

import os
import resource
import time

from benchmarks import measure

_DEVICES = 256
_GOAL_SECONDS = 150.0
_GOAL_BYTES = 3e9


def run(options) -> None:
  """Prints the time and memory that lowering and compiling take."""
  os.environ['XLA_FLAGS'] = (
      os.environ.get('XLA_FLAGS', '')
      + f' --xla_force_host_platform_device_count={_DEVICES}'
  )
  start = time.perf_counter()
  # JAX reads the number of devices when it starts, so not before this.
  from benchmarks import scale

  compiled = scale.compile_step(small=options.small)
  seconds = time.perf_counter() - start
  peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
  measure.emit(
      'scale_compile',
      seconds,
      'seconds',
      goal=_GOAL_SECONDS,
      met=seconds <= _GOAL_SECONDS,
      devices=_DEVICES,
      **compiled,
  )
  measure.emit(
      'scale_peak_memory',
      peak,
      'bytes',
      goal=_GOAL_BYTES,
      met=peak <= _GOAL_BYTES,
  )
