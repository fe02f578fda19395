# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which runs a sweep makes: a grid, random draws, or fewer and longer ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import dataclasses
import itertools
import math
import random
from typing import Any, Protocol

from t5wild.experiments import points as points_lib

BadExperimentError = points_lib.BadExperimentError
Point = points_lib.Point

_RANGES = ('uniform', 'log_uniform', 'integers')
_TRIES = 100  # draws for one new run
_MOST_RUNS = 10_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rung:
  """Runs of the same length, of which some go on.

  Attributes:
    steps: at which they end; None = as the recipe says.
    num_runs: that reach it.
  """

  steps: int | None
  num_runs: int


def _check_count(name: str, count: Any) -> None:
  if not isinstance(count, int) or count < 1:
    raise BadExperimentError(
        f'{name} is {count!r}\n  expected: 1 or more.\n  do: {name} = 16'
    )


class Design(Protocol):
  """Chooses the runs of a sweep."""

  def points(self, values: Mapping[str, Any]) -> list[Point]:
    """All runs of the first rung, each once."""

  def rungs(self, num_points: int) -> list[Rung]:
    """The rungs, the shortest first."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Grid:
  """Every combination of the values."""

  def points(self, values: Mapping[str, Any]) -> list[Point]:
    """The combinations, the last name changing fastest."""
    for name, given in values.items():
      if isinstance(given, Mapping):
        raise BadExperimentError(
            f'{name} has the range {dict(given)!r} in a grid\n'
            '  expected: a list of values.\n'
            '  do: list them, or set method = @designs.Random()'
        )
    _check_lists(values)
    num_runs = math.prod(map(len, values.values()))
    if num_runs > _MOST_RUNS:
      raise BadExperimentError(
          f'The grid has {num_runs:,} runs\n'
          f'  expected: at most {_MOST_RUNS:,}.\n'
          '  do: fewer values, or method = @designs.Random()'
      )
    return [
        Point(bindings=dict(zip(values, chosen, strict=True)))
        for chosen in itertools.product(*values.values())
    ]

  def rungs(self, num_points: int) -> list[Rung]:
    """One, as long as the recipe says."""
    return [Rung(steps=None, num_runs=num_points)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Random:
  """Runs drawn at random: of a list one of its values, or from a range.

  A range is {'uniform': [low, high]}, {'log_uniform': [low, high]} or
  {'integers': [low, high]}, which holds both ends. With more runs the first
  ones stay as they were.

  Attributes:
    num_runs: all different.
    seed: of the draws.
  """

  num_runs: int = 16
  seed: int = 0

  def __post_init__(self):
    """Refuses to draw nothing."""
    _check_count('Random.num_runs', self.num_runs)

  def points(self, values: Mapping[str, Any]) -> list[Point]:
    """The draws."""
    _check_lists({n: v for n, v in values.items() if isinstance(v, list)})
    for name, given in values.items():
      _check_range(name, given)
    generator = random.Random(self.seed)
    found: dict[str, Point] = {}
    while len(found) < self.num_runs:
      for _ in range(_TRIES):
        point = Point(bindings={
            name: _drawn(given, generator) for name, given in values.items()
        })
        if point.key not in found:
          break
      else:
        raise BadExperimentError(
            f'{self.num_runs} different runs are asked for, and only '
            f'{len(found)} were found in {_TRIES} draws\n'
            '  expected: values that allow as many.\n'
            '  do: lower Random.num_runs, or give more values or wider ranges'
        )
      found[point.key] = point
    return list(found.values())

  def rungs(self, num_points: int) -> list[Rung]:
    """One, as long as the recipe says."""
    return [Rung(steps=None, num_runs=num_points)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SuccessiveHalving:
  """Many short runs; the best of them go on, and of those the best again.

  Jamieson and Talwalkar, arXiv:1502.07943. A run that goes on is resumed from
  its own checkpoint with more TRAIN_STEPS, so no part of the recipe's schedule
  may follow from TRAIN_STEPS.

  Attributes:
    first: chooses the runs of the first rung: a `Grid` or a `Random`.
    first_steps: how long those are.
    factor: of each rung one in so many goes on, and is so many times as long.
    last_steps: no run is longer.
  """

  first: Any = Random()
  first_steps: int
  factor: int = 3
  last_steps: int

  def __post_init__(self):
    """Refuses rungs that do not rise."""
    _check_count('SuccessiveHalving.first_steps', self.first_steps)
    if not self.factor > 1:
      raise BadExperimentError(
          f'SuccessiveHalving.factor is {self.factor!r}\n'
          '  expected: 2 or more.\n'
          '  do: factor = 3'
      )
    if self.last_steps < self.first_steps:
      raise BadExperimentError(
          f'SuccessiveHalving.last_steps is {self.last_steps}\n'
          f'  expected: first_steps = {self.first_steps}, or more.\n'
          '  do: raise last_steps'
      )

  def points(self, values: Mapping[str, Any]) -> list[Point]:
    """Those of the first rung."""
    return self.first.points(values)

  def rungs(self, num_points: int) -> list[Rung]:
    """Fewer and longer, until one is left or the longest is reached."""
    rungs = []
    steps, num_runs = self.first_steps, num_points
    while True:
      rungs.append(Rung(steps=steps, num_runs=num_runs))
      if num_runs == 1 or steps == self.last_steps:
        return rungs
      num_runs = max(1, num_runs // self.factor)
      steps = min(self.last_steps, steps * self.factor)


def described(design: Design) -> dict[str, Any]:
  """A design as JSON, to be held against another."""
  return {'method': type(design).__name__} | {
      field.name: (
          described(value) if dataclasses.is_dataclass(value) else value
      )
      for field in dataclasses.fields(design)
      for value in [getattr(design, field.name)]
  }


def check_all_differ(points: Sequence[Point]) -> None:
  """Refuses two points that are one run.

  Raises:
    BadExperimentError: see there.
  """
  found: dict[str, Point] = {}
  for point in points:
    other = found.setdefault(point.key, point)
    if other is not point:
      raise BadExperimentError(
          'Two runs of the sweep are the same\n'
          f'    {dict(other.bindings)}\n    {dict(point.bindings)}\n'
          '  expected: each once.\n'
          '  do: take out the value that stands twice'
      )


def _check_lists(values: Mapping[str, Any]) -> None:
  for name, given in values.items():
    if not isinstance(given, (list, tuple)) or not given:
      raise BadExperimentError(
          f'{name} is to take {given!r}\n'
          '  expected: a list of one value or more.\n'
          f"  do: '{name}': [0.1, 0.2]"
      )


def _check_range(name: str, given: Any) -> None:
  if isinstance(given, (list, tuple)):
    return
  kind = next(iter(given)) if isinstance(given, Mapping) and given else None
  ends = given[kind] if kind in _RANGES and len(given) == 1 else None
  if (
      not isinstance(ends, (list, tuple))
      or len(ends) != 2
      or not all(isinstance(e, (int, float)) for e in ends)
      or not ends[0] < ends[1]
      or (kind == 'log_uniform' and ends[0] <= 0)
      or (kind == 'integers' and not all(isinstance(e, int) for e in ends))
  ):
    raise BadExperimentError(
        f'{name} is to be drawn from {given!r}\n'
        "  expected: a list of values, or {'uniform': [low, high]}, "
        "{'log_uniform': [low, high]} with low above 0, or {'integers': [low, "
        "high]}.\n"
        f"  do: '{name}': {{'log_uniform': [1e-4, 1e-2]}}"
    )


def _drawn(given: Any, generator: random.Random) -> Any:
  if isinstance(given, (list, tuple)):
    return generator.choice(given)
  ((kind, (low, high)),) = given.items()
  if kind == 'integers':
    return generator.randint(low, high)
  if kind == 'uniform':
    return _rounded(generator.uniform(low, high))
  return _rounded(
      math.exp(generator.uniform(math.log(low), math.log(high)))
  )


def _rounded(value: float) -> float:
  """Four digits are as good, and can be read."""
  return float(f'{value:.4g}')
