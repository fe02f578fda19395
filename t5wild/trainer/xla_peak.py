# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The matrix product that steps are made of, at its fastest here.

What else a machine does can only make a measurement too low, to a third and
less, and MFU too high by as much. So the highest that this kind of machine ever
reached is kept in the folder of the compilation cache, and runs and restarts
are held against one number.
"""

from collections.abc import Iterator, Mapping
import functools
import json
import math
import os
import pathlib
import platform
from typing import Any

from absl import logging
import jax
import jax.numpy as jnp

from t5wild import compilation_cache
from t5wild import hardware

FILE = 'cpu_peak.jsonl'
_NAME = 'matmul_flops_per_second'
_MOST_BYTES = 2**20  # A record is only added when it is the highest.
_OF_CPU = ('model name', 'CPU implementer', 'CPU part')  # x86, and Arm's two


@functools.cache
def measure_matmul_flops_per_second(size: int = 1024) -> float:
  """Fastest float32 product of two [size, size] matrices by XLA, in FLOP/s.

  On the first device, measured once per process, in about 0.3 s. On CPUs XLA
  can be twice as fast as NumPy, which may not use the widest registers; what a
  step is held against must be what it could reach.
  """
  matrix = jax.device_put(
      jnp.full((size, size), 0.5, jnp.float32), jax.local_devices()[0]
  )
  product = jax.jit(lambda x: x @ x).lower(matrix).compile()
  seconds = hardware.fastest_seconds(
      lambda: product(matrix).block_until_ready()
  )
  return 2.0 * size**3 / seconds


def highest_matmul_flops_per_second() -> float:
  """The highest of what is measured now and was at earlier starts here.

  Of the same CPU model, cores and jax version. A file that cannot be read or
  written changes nothing but that.
  """
  measured = measure_matmul_flops_per_second()
  folder = compilation_cache.folder()
  if folder is None or '://' in folder:  # A bucket is of many machines.
    return measured
  file = pathlib.Path(folder) / FILE
  machine = _machine()
  known = max(_known(file, machine), default=0.0)
  if measured > known:
    _add(file, {**machine, _NAME: measured})
  return max(measured, known)


def _machine() -> dict[str, Any]:
  """What a measurement depends on, but for what else goes on."""
  lines = _text('/proc/cpuinfo').splitlines()
  values = [
      line.partition(':')[2].strip()
      for line in lines
      if line.partition(':')[0].strip() in _OF_CPU
  ]
  cores = (
      len(os.sched_getaffinity(0))
      if hasattr(os, 'sched_getaffinity')
      else os.cpu_count()
  )
  return {
      'cpu': ' '.join(dict.fromkeys(values)) or platform.processor(),
      'cores': cores,
      # A container may have all cores, and a part of their time.
      'share': _text('/sys/fs/cgroup/cpu.max').strip(),
      'jax': jax.__version__,
  }


def _text(path: str | pathlib.Path) -> str:
  """The text of a small file; of one that cannot be read, none."""
  if not os.path.isfile(path):
    return ''
  try:
    with open(path, encoding='utf-8', errors='replace') as file:
      return file.read(_MOST_BYTES)
  except OSError:
    return ''


def _known(file: pathlib.Path, machine: Mapping[str, Any]) -> Iterator[float]:
  """Measurements of this kind of machine; lines that are none are left out."""
  for line in _text(file).splitlines():
    try:
      record = json.loads(line)
    except (ValueError, RecursionError):
      continue
    value = record.pop(_NAME, None) if isinstance(record, dict) else None
    is_speed = isinstance(value, float) and math.isfinite(value) and value > 0
    if is_speed and record == machine:
      yield value


def _add(file: pathlib.Path, record: Mapping[str, Any]) -> None:
  """Adds a line.

  In one write at the end, which no other process can part or undo: there is
  nothing to lock, and the highest stays whoever comes last. The line starts
  with a line's end, in case that the one before was cut off.
  """
  try:
    file.parent.mkdir(parents=True, exist_ok=True)
    at_end = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    descriptor = os.open(file, at_end, 0o666)
    try:
      os.write(descriptor, f'\n{json.dumps(record)}\n'.encode())
    finally:
      os.close(descriptor)
  except OSError as error:
    logging.info(
        '%s cannot be written (%s): MFU is of the peak measured at this start.',
        file, error,
    )
