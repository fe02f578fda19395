# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A recipe that an experiment varies: asked about before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from t5wild.experiments import points as points_lib

_PLACE = '/to/be/chosen'
_SHOWN_LINES = 15


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
  """Gin files and what all runs bind.

  Attributes:
    gin_files: in gin's order.
    bindings: gin name -> value, of every run.
    search_paths: folders of gin files, beside the working directory.
  """

  gin_files: Sequence[str]
  bindings: Mapping[str, Any]
  search_paths: Sequence[str] = ()

  def flags(self, bindings: Mapping[str, Any], *, model_dir: str) -> list[str]:
    """Flags of `t5wild train` for one run."""
    paths = ','.join(('.', *self.search_paths))
    return [
        f'--gin_search_paths={paths}',
        *(f'--gin_file={path}' for path in self.gin_files),
        *points_lib.flags_of({**self.bindings, **bindings}),
        f'--gin.MODEL_DIR={model_dir}',
    ]

  def described(self) -> dict[str, Any]:
    """As JSON, to be held against another."""
    texts = {n: points_lib.gin_text(v) for n, v in self.bindings.items()}
    return {'gin_files': list(self.gin_files), 'bindings': texts}


def check(
    recipe: Recipe, points: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
  """Reads the recipe with the bindings of each run, as the runs will.

  Returns:
    `texts`: a hash of all its files.

  Raises:
    points.BadExperimentError: what the runs would refuse.
  """
  return _ask(recipe, points, with_costs=False)


def costs(recipe: Recipe, bindings: Mapping[str, Any]) -> dict[str, Any]:
  """Parameters, tokens and operations of a step; see `t5wild.recipe_facts`.

  Raises:
    points.BadExperimentError: the run would be refused.
  """
  return _ask(recipe, [bindings], with_costs=True)


def _ask(
    recipe: Recipe, points: Sequence[Mapping[str, Any]], *, with_costs: bool
) -> dict[str, Any]:
  request = {
      'gin_files': list(recipe.gin_files),
      'search_paths': ['.', *recipe.search_paths],
      'points': [
          [
              f'{name} = {points_lib.gin_text(value)}'
              for name, value in {
                  **recipe.bindings, **point, 'MODEL_DIR': _PLACE
              }.items()
          ]
          for point in points
      ],
      'with_costs': with_costs,
  }  # fmt: skip
  with tempfile.TemporaryDirectory() as folder:
    asked, answered = (os.path.join(folder, n) for n in ('asked', 'answered'))
    with open(asked, 'w', encoding='utf-8') as file:
      json.dump(request, file)
    done = subprocess.run(
        [sys.executable, '-m', 't5wild.recipe_facts', asked, answered],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if not os.path.exists(answered):
      last = '\n'.join(done.stderr.splitlines()[-_SHOWN_LINES:])
      raise points_lib.BadExperimentError(
          f'The recipe {list(recipe.gin_files)} cannot be read here:\n{last}\n'
          '  expected: a recipe that `t5wild train` takes.\n'
          '  do: try `t5wild train` with it'
      )
    with open(answered, encoding='utf-8') as file:
      told = json.load(file)
  if told['error']:
    raise points_lib.BadExperimentError(told['error'])
  return told
