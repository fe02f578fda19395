# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a ladder is, as gin says it: sizes, tokens, the run to be foretold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import json
import os
from typing import Any

from t5wild.experiments import folder as folder_lib
from t5wild.experiments import points as points_lib
from t5wild.experiments import recipes
from t5wild.experiments import results as results_lib
from t5wild.experiments import runner as runner_lib
from t5wild.experiments import scaling_fit

BadExperimentError = points_lib.BadExperimentError
TARGET = 'target'
_COSTS = 'costs.json'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
  """The run to be foretold.

  Attributes:
    size: gin name -> value, as one of the sizes.
    tokens: that it is to be trained on.
  """

  size: Mapping[str, Any]
  tokens: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ladder:
  """Small runs of one recipe, of several sizes and lengths, and a larger one.

  A token is a position of inputs or targets; see docs/experiments.md.

  Attributes:
    recipe: a gin file that `t5wild train` takes, or several.
    sizes: name of a size -> its bindings.
    tokens: that each size is trained on, smallest first.
    target: the run to be foretold, `@ladder.Target()`.
    metric: the loss that the law is of: its last value; it is to be recorded
      at the end of each run.
    bindings: gin name -> value, of all runs, over the recipe's own.
    steps_names: what is bound to the number of steps of each run.
    trains_target: whether to train the target too, to see how it was foretold.
    num_parallel: runs at a time.
    environments: variables of each of those; see `sweep.Sweep`.
    search_paths: folders of gin files, beside the working directory.
    seed: of the draws that tell how sure the law is.
  """

  recipe: str | Sequence[str]
  sizes: Mapping[str, Mapping[str, Any]]
  tokens: Sequence[float]
  target: Any
  metric: str
  bindings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  steps_names: Sequence[str] = ('TRAIN_STEPS', 'train_script.train.eval_period')
  trains_target: bool = False
  num_parallel: int = 1
  environments: Sequence[Mapping[str, str]] = ()
  search_paths: Sequence[str] = ()
  seed: int = 0

  def __post_init__(self):
    """Refuses what no law can be fitted to.

    Raises:
      BadExperimentError: see there.
    """
    if not isinstance(self.target, Target):
      raise BadExperimentError(
          f'target is {self.target!r}\n  expected: @ladder.Target().\n'
          '  do: target = @ladder.Target(), with ladder.Target.size and .tokens'
      )
    num_runs = len(self.sizes) * len(self.tokens)
    least = scaling_fit.LEAST_RUNS
    if len(self.sizes) < 2 or len(self.tokens) < 2 or num_runs < least:
      raise BadExperimentError(
          f'There are {len(self.sizes)} sizes and {len(self.tokens)} numbers '
          f'of tokens\n  expected: two of each, and {least} runs or more.\n'
          '  do: four sizes and three numbers of tokens tell something'
      )
    bad = [t for t in (*self.tokens, self.target.tokens) if not t > 0]
    if bad or len(set(self.tokens)) < len(self.tokens):
      raise BadExperimentError(
          f'tokens are {list(self.tokens)}, and {self.target.tokens} of the '
          'target\n  expected: different numbers above 0.\n'
          '  do: tokens = [1e6, 3e6, 1e7]'
      )
    reserved = {*self.steps_names, *self.bindings}
    for name, size in (*self.sizes.items(), (TARGET, self.target.size)):
      _check_size(name, size, reserved=reserved)
    points_lib.check_names([*self.bindings, *self.steps_names])
    for name, value in self.bindings.items():
      points_lib.check_value(name, value)

  def made_recipe(self) -> recipes.Recipe:
    """What its runs have in common."""
    files = [self.recipe] if isinstance(self.recipe, str) else self.recipe
    return recipes.Recipe(
        gin_files=files, bindings=self.bindings, search_paths=self.search_paths
    )

  def described(self, texts: str) -> dict[str, Any]:
    """What old and new runs in a folder must have in common, as JSON."""
    return {
        'kind': 'ladder',
        'recipe': self.made_recipe().described(),
        'files': texts,
        'steps_names': list(self.steps_names),
    }

  def bindings_of(
      self, size: Mapping[str, Any], *, num_steps: int = 1
  ) -> dict[str, Any]:
    """What a run of a size binds beside what all do."""
    return {**size, **dict.fromkeys(self.steps_names, num_steps)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rung:
  """One run of a ladder.

  Attributes:
    size: its name; `TARGET`: the one to be foretold.
    num_parameters: of its model.
    num_steps: of its training.
    tokens: that it is trained on: whole steps of them.
    flops: model operations of its whole training.
    point: what it binds.
    result: what it came to; None: not to be trained.
  """

  size: str
  num_parameters: int
  num_steps: int
  tokens: float
  flops: float
  point: points_lib.Point
  result: results_lib.Result | None = None


def plan(
    ladder: Ladder, folder: folder_lib.Folder, say: Callable[[str], None]
) -> list[Rung]:
  """Asks what each size costs; the target comes last.

  Raises:
    BadExperimentError: the recipe refuses a size, or two runs are the same.
  """
  rungs = []
  for name, size in ladder.sizes.items():
    costs = _costs(ladder, folder, name, size, say)
    rungs += [_rung(ladder, name, size, costs, t) for t in ladder.tokens]
  target = ladder.target
  costs = _costs(ladder, folder, TARGET, target.size, say)
  rungs.append(_rung(ladder, TARGET, target.size, costs, target.tokens))
  seen: dict[str, Rung] = {}
  for rung in rungs:
    other = seen.setdefault(rung.point.key, rung)
    if other is not rung:
      raise BadExperimentError(
          f'{other.size!r} and {rung.size!r} are the same run of '
          f'{rung.num_steps:,} steps\n  expected: each once.\n'
          '  do: other sizes, or numbers of tokens that differ by a step'
      )
  return rungs


def train(
    ladder: Ladder,
    folder: folder_lib.Folder,
    rungs: Sequence[Rung],
    *,
    say: Callable[[str], None],
    program: Sequence[str] | None = None,
) -> None:
  """Trains what is missing, the cheapest first."""
  runner = runner_lib.Runner(
      ladder.made_recipe(),
      folder,
      num_parallel=ladder.num_parallel,
      environments=ladder.environments,
      program=program,
      say=say,
  )
  jobs = [
      runner_lib.Job(point=rung.point)
      for rung in sorted(rungs, key=lambda rung: rung.flops)
      if rung.size != TARGET or ladder.trains_target
  ]
  runner.run(jobs, when_done=lambda job: _value(ladder, folder, job.point))


def with_results(
    ladder: Ladder, folder: folder_lib.Folder, rungs: Sequence[Rung]
) -> list[Rung]:
  """The rungs with what each came to.

  Raises:
    BadExperimentError: a run is done, and has no such metric.
  """
  return [
      dataclasses.replace(rung, result=_value(ladder, folder, rung.point))
      for rung in rungs
  ]


def _value(
    ladder: Ladder, folder: folder_lib.Folder, point: points_lib.Point
) -> results_lib.Result:
  return results_lib.result_of(
      folder.run(point),
      point,
      measure=results_lib.Measure(metric=ladder.metric),
      of='ladder.Ladder.metric',
  )


def _rung(
    ladder: Ladder,
    name: str,
    size: Mapping[str, Any],
    costs: Mapping[str, Any],
    tokens: float,
) -> Rung:
  num_steps = max(1, round(tokens / costs['tokens_per_step']))
  return Rung(
      size=name,
      num_parameters=costs['num_parameters'],
      num_steps=num_steps,
      tokens=float(num_steps * costs['tokens_per_step']),
      flops=num_steps * costs['flops_per_step'],
      point=points_lib.Point(
          bindings=ladder.bindings_of(size, num_steps=num_steps)
      ),
  )


def _costs(
    ladder: Ladder,
    folder: folder_lib.Folder,
    name: str,
    size: Mapping[str, Any],
    say: Callable[[str], None],
) -> dict[str, Any]:
  """Of a size; asked once, as that takes seconds."""
  path = folder.join(_COSTS)
  known = {}
  if os.path.exists(path):
    with open(path, encoding='utf-8') as file:
      known = json.load(file)
  key = points_lib.Point(bindings=size).key
  if key not in known:
    say(f'Reading the recipe with the size {name!r} ...')
    known[key] = recipes.costs(
        ladder.made_recipe(), ladder.bindings_of(size)
    )
    folder_lib.write_json(path, known)
  return known[key]


def _check_size(
    name: str, size: Mapping[str, Any], *, reserved: set[str]
) -> None:
  if not isinstance(size, Mapping) or not size:
    raise BadExperimentError(
        f'The size {name!r} is {size!r}\n'
        '  expected: gin names and their values.\n'
        f"  do: '{name}': {{'network.T5Config.emb_dim': 64}}"
    )
  points_lib.check_names(list(size))
  for key, value in size.items():
    points_lib.check_value(key, value)
    if key in reserved:
      raise BadExperimentError(
          f'The size {name!r} binds {key}, which all runs do\n'
          '  expected: each name in one place.\n  do: leave it out of the size'
      )
