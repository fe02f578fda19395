# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a sweep is, as gin says it, and which of its runs are to be trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
import dataclasses
from typing import Any

from t5wild.experiments import designs
from t5wild.experiments import folder as folder_lib
from t5wild.experiments import points as points_lib
from t5wild.experiments import recipes
from t5wild.experiments import results as results_lib
from t5wild.experiments import runner as runner_lib

BadExperimentError = points_lib.BadExperimentError
# A run that was begun and may yet come to a result.
_OPEN = ('missing', 'killed', 'running')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sweep:
  """Runs of one recipe that differ in some bindings.

  Attributes:
    recipe: a gin file that `t5wild train` takes, or several.
    values: gin name -> list of values, or a range; see `method`.
    metric: the record that runs are judged by: its last value.
    goal: 'min' or 'max'.
    bindings: gin name -> value, of all runs, over the recipe's own.
    method: `@designs.Grid()`, `@designs.Random()`,
      `@designs.SuccessiveHalving()`.
    num_parallel: runs at a time.
    environments: variables of each of those, such as
      `[{'CUDA_VISIBLE_DEVICES': '0'}, {'CUDA_VISIBLE_DEVICES': '1'}]`.
    search_paths: folders of gin files, beside the working directory.
    slurm_options: of `--array`: option -> value, as `{'gres': 'gpu:1'}`.
  """

  recipe: str | Sequence[str]
  values: Mapping[str, Any]
  metric: str
  goal: str = 'min'
  bindings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  method: Any = designs.Grid()
  num_parallel: int = 1
  environments: Sequence[Mapping[str, str]] = ()
  search_paths: Sequence[str] = ()
  slurm_options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

  def __post_init__(self):
    """Refuses what no run can be made of.

    Raises:
      BadExperimentError: see there.
    """
    points_lib.check_names([*self.values, *self.bindings])
    if not self.values:
      raise BadExperimentError(
          'values is empty: nothing differs between runs\n'
          '  expected: a name and its values, at least.\n'
          "  do: values = {'adafactor.Adafactor.beta1': [0.0, 0.9]}"
      )
    both = sorted(set(self.values) & set(self.bindings))
    if both:
      raise BadExperimentError(
          f'{both[0]} stands in values and in bindings\n'
          '  expected: in one of them.\n  do: leave one out'
      )
    self._check_steps()
    for name, value in self.bindings.items():
      points_lib.check_value(name, value)
    for point in self.points:
      for name, value in point.bindings.items():
        points_lib.check_value(name, value)
    designs.check_all_differ(self.points)
    _ = self.measure

  def _check_steps(self) -> None:
    is_halving = isinstance(self.method, designs.SuccessiveHalving)
    if is_halving and 'TRAIN_STEPS' in {*self.values, *self.bindings}:
      steps = {**self.bindings, **self.values}['TRAIN_STEPS']
      raise BadExperimentError(
          f'TRAIN_STEPS is bound to {steps!r}, and SuccessiveHalving sets it\n'
          '  expected: first_steps and last_steps to say it.\n'
          '  do: leave TRAIN_STEPS out'
      )

  @property
  def points(self) -> list[points_lib.Point]:
    """Its runs, in order."""
    return self.method.points(self.values)

  @property
  def measure(self) -> results_lib.Measure:
    """What runs are judged by."""
    return results_lib.Measure(metric=self.metric, goal=self.goal)

  def made_recipe(self) -> recipes.Recipe:
    """What its runs have in common."""
    files = [self.recipe] if isinstance(self.recipe, str) else self.recipe
    return recipes.Recipe(
        gin_files=files, bindings=self.bindings, search_paths=self.search_paths
    )

  def described(self, texts: str) -> dict[str, Any]:
    """What old and new runs in a folder must have in common, as JSON.

    Not the values: more of them may come.
    """
    kept = designs.described(self.method)
    if 'SuccessiveHalving' not in kept.values():
      kept = {}  # a run is the same, whoever chose it
    return {
        'kind': 'sweep',
        'recipe': self.made_recipe().described(),
        'files': texts,
        **kept,
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Standing:
  """How far a sweep is.

  Attributes:
    results: one for each run.
    jobs: what can be trained now; none = all is done that can be.
  """

  results: Sequence[results_lib.Result]
  jobs: Sequence[runner_lib.Job]


def standing(
    sweep: Sweep,
    folder: folder_lib.Folder,
    *,
    has_tried: Callable[[runner_lib.Job], bool] = lambda job: False,
) -> Standing:
  """Reads how far it is from the folders of its runs.

  Args:
    sweep: see there.
    folder: of it.
    has_tried: whether a job that failed is not to be tried again.

  Raises:
    BadExperimentError: a run is done, and has no such metric.
  """
  alive = sweep.points
  rungs = sweep.method.rungs(len(alive))
  found: dict[str, results_lib.Result] = {}
  for number, rung in enumerate(rungs):
    told = [
        results_lib.result_of(
            folder.run(point),
            point,
            measure=sweep.measure,
            steps=rung.steps,
            rung=number,
        )
        for point in alive
    ]
    for result in told:
      # Of a run that is not yet at this rung, what it came to before stands.
      before = found.get(result.point.key)
      if result.status != 'missing' or before is None:
        found[result.point.key] = result
    jobs = [
        runner_lib.Job(point=r.point, steps=rung.steps)
        for r in told
        if r.status in _OPEN or r.status == 'failed'
    ]
    jobs = [job for job in jobs if not has_tried(job)]
    if jobs or number == len(rungs) - 1:
      break
    best = results_lib.ranked(told, sweep.measure)
    best = [r for r in best if r.value is not None]
    chosen = {r.point.key for r in best[: rungs[number + 1].num_runs]}
    alive = [point for point in alive if point.key in chosen]
  return Standing(results=list(found.values()), jobs=jobs)


def train(
    sweep: Sweep,
    folder: folder_lib.Folder,
    *,
    say: Callable[[str], None],
    when_done: Callable[[Standing], None],
    program: Sequence[str] | None = None,
) -> Standing:
  """Trains all that is missing.

  Args:
    sweep: see there.
    folder: of it, opened.
    say: takes a line for a person.
    when_done: called with the standing after each run that reached its end.
    program: that takes the flags of `t5wild train`; None: that itself.

  Raises:
    BadExperimentError: a run is done, and has no such metric; the others were
      told to save and stop.
  """
  tried: set[tuple[str, int | None]] = set()

  def has_tried(job: runner_lib.Job) -> bool:
    return (job.point.key, job.steps) in tried

  def tell(job: runner_lib.Job) -> None:
    del job
    when_done(standing(sweep, folder, has_tried=has_tried))

  runner = runner_lib.Runner(
      sweep.made_recipe(),
      folder,
      num_parallel=sweep.num_parallel,
      environments=sweep.environments,
      program=program,
      say=say,
  )
  now = standing(sweep, folder, has_tried=has_tried)
  while now.jobs:
    steps = now.jobs[0].steps
    length = '' if steps is None else f' to step {steps:,}'
    say(f'{len(now.jobs)} runs to train{length}.')
    runner.run(now.jobs, when_done=tell)
    tried |= {(job.point.key, job.steps) for job in now.jobs}
    now = standing(sweep, folder, has_tried=has_tried)
  return now
