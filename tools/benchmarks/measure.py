# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Times functions side by side and prints figures as JSON lines."""

from collections.abc import Callable, Mapping
import dataclasses
import json
import statistics
import sys
import time

STEPS_IN_A_ROW = 3


@dataclasses.dataclass
class Times:
  """Seconds of each timed run of one function, in order."""

  cpu: list[float] = dataclasses.field(default_factory=list)
  wall: list[float] = dataclasses.field(default_factory=list)


def interleave(
    functions: Mapping[str, Callable[[], object]],
    *,
    runs: int,
    warmup: int = 1,
    in_a_row: int = 1,
) -> dict[str, Times]:
  """Runs the functions in turns, so that a busy machine is busy for all.

  Each round runs every function once; every other round in reverse, since the
  one that goes first finds other caches. A function must return only when its
  work is done.

  Args:
    functions: by name.
    runs: timed runs of each.
    warmup: untimed rounds before.
    in_a_row: how often a function runs in its turn, as a loop runs steps; the
      mean is taken. Where more than once, it first runs untimed, so that it
      does not pay for the memory that another left cold.
  """
  if runs < 1:
    raise ValueError(
        f'runs = {runs}; expected at least 1; pass --runs=7 or more.'
    )
  times = {name: Times() for name in functions}
  for index in range(-warmup, runs):
    names = list(functions)
    for name in names if index % 2 == 0 else reversed(names):
      if in_a_row > 1:
        functions[name]()
      cpu, wall = time.process_time(), time.perf_counter()
      for _ in range(in_a_row):
        functions[name]()
      cpu = (time.process_time() - cpu) / in_a_row
      wall = (time.perf_counter() - wall) / in_a_row
      if index >= 0:
        times[name].cpu.append(cpu)
        times[name].wall.append(wall)
        sys.stderr.write(f'  {name}: {cpu:.3f} CPU s, {wall:.3f} s\n')
  return times


def ratio(numerator: list[float], denominator: list[float]) -> float:
  """Median of the ratios of the runs of each round."""
  return statistics.median(
      a / b for a, b in zip(numerator, denominator, strict=True)
  )


def emit(name: str, value: float, unit: str, **more: object) -> None:
  """Prints one figure as a line of JSON."""
  figure = {'name': name, 'value': _short(value), 'unit': unit}
  figure |= {key: _short(item) for key, item in more.items()}
  sys.stdout.write(json.dumps(figure) + '\n')
  sys.stdout.flush()


def emit_times(name: str, times: Times, **more: object) -> None:
  """Prints median and range of the CPU seconds, and the median wall time."""
  emit(
      f'{name}_cpu_seconds',
      statistics.median(times.cpu),
      'seconds',
      lowest=min(times.cpu),
      highest=max(times.cpu),
      wall_seconds=statistics.median(times.wall),
      runs=len(times.cpu),
      **more,
  )


def emit_ratio(
    name: str, numerator: Times, denominator: Times, *, goal: float
) -> None:
  """Prints the median ratio of CPU seconds beside its goal."""
  value = ratio(numerator.cpu, denominator.cpu)
  rounds = [
      _short(a / b)
      for a, b in zip(numerator.cpu, denominator.cpu, strict=True)
  ]
  emit(name, value, 'ratio', goal=goal, met=value <= goal, rounds=rounds)


def _short(value):
  return float(f'{value:.5g}') if isinstance(value, float) else value
