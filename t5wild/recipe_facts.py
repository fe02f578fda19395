# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Says of a recipe with several sets of bindings what each comes to.

`python -m t5wild.recipe_facts REQUEST ANSWER`: experiments, which import no
JAX, ask this of a process of its own before they start any run. Both are files
of JSON; see `Request` and `answer`.
"""

from collections.abc import Sequence
import dataclasses
import hashlib
import importlib
import json
import math
import os
import sys
from typing import Any

import gin

from t5wild import command_line
from t5wild import gin_utils
from t5wild import training_data
from t5wild import training_plan
from t5wild.compat import install
from t5wild.planner import formulas
from t5wild.trainer import model_info

_TOKENS = ('encoder_input_tokens', 'decoder_target_tokens')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
  """What is asked.

  Attributes:
    gin_files: the recipe.
    search_paths: of gin files.
    points: of each run its bindings, as `NAME = VALUE` each.
    with_costs: whether to make each run's model, on shapes alone; for one run
      only, since gin holds one configuration.
  """

  gin_files: Sequence[str]
  search_paths: Sequence[str]
  points: Sequence[Sequence[str]]
  with_costs: bool = False


def answer(request: Request) -> dict[str, Any]:
  """What a recipe comes to, or what is wrong.

  Returns:
    `error`, a text, or None. If None: `texts`, a hash of all files; and, with
    costs, `num_parameters`, `tokens_per_step` (positions of inputs and
    targets, padding included) and `flops_per_step`.
  """
  install.install()
  # A binary is imported by nobody, but recipes may reach it as __main__.
  binary = importlib.import_module('t5wild.train')
  sys.modules['__main__'].train = binary.train
  try:
    hashes = {_lint(request, bindings) for bindings in request.points}
    told = {'error': None, 'texts': min(hashes)}
    if request.with_costs:
      told |= _costs(request, binary.train)
  except (gin_utils.GinError, ValueError, LookupError, OSError, TypeError) as e:
    return {'error': command_line.complaint(e)}
  return told


def _lint(request: Request, bindings: Sequence[str]) -> str:
  files, _, report = gin_utils.lint_gin_flags(
      request.search_paths, request.gin_files, bindings
  )
  report.raise_errors()
  _refuse_one_parameter_twice(report)
  digest = hashlib.sha256()
  for file in files:
    for part in file.walk():
      digest.update(part.text.encode())
  return digest.hexdigest()


def _refuse_one_parameter_twice(report: Any) -> None:
  """Two names of one parameter would make the second value the only one."""
  by_key: dict[Any, str] = {}
  for seen in report.seen:
    if seen.file is not None or seen.target is None:
      continue
    binding = seen.binding
    key = (binding.scope, seen.target.identity, binding.parameter)
    other = by_key.setdefault(key, binding.key)
    if other != binding.key:
      raise ValueError(
          f'{other!r} and {binding.key!r} are one parameter\n'
          '  expected: each under one name.\n'
          '  do: leave one of them out'
      )


def _costs(request: Request, train: Any) -> dict[str, Any]:
  (bindings,) = request.points
  gin_utils.parse_gin_flags(
      request.search_paths, request.gin_files, bindings
  )
  plan = _planned(train)
  with training_plan.as_bad_plan():
    data = training_data.open_training_data(plan)
  try:
    states = training_data.make_states(plan, data)
    info = model_info.describe(states, plan.partitioner)
    shapes = data.input_shapes
  finally:
    data.reader.close()
  return {
      'num_parameters': info.num_parameters,
      'tokens_per_step': sum(
          math.prod(shapes[name]) for name in _TOKENS if name in shapes
      ),
      'flops_per_step': _flops(plan.model, shapes),
      'total_steps': plan.total_steps,
  }


def _flops(model: Any, shapes: Any) -> float:
  config = getattr(getattr(model, 'module', None), 'config', None)
  if config is None:
    raise ValueError(
        f'the network of {type(model).__name__} does not tell its sizes: '
        "expected a `config` with T5Config's names, which operations are "
        'counted from.'
    )
  targets = shapes['decoder_target_tokens']
  return formulas.train_step_flops(
      formulas.model_shape_of(config),
      batch=targets[0],
      input_length=shapes.get('encoder_input_tokens', (0, 0))[1],
      target_length=targets[1],
  )


def _planned(train: Any) -> training_plan.TrainingPlan:
  """What gin would have trained."""
  plans = []
  assembly = importlib.import_module('t5wild.assembly')
  run_training = assembly.run_training
  assembly.run_training = lambda plan: plans.append(plan) or (0, None)
  try:
    gin.get_configurable(train)()
  finally:
    assembly.run_training = run_training
  return plans[0]


def main() -> None:
  """Answers a request."""
  asked, answered = sys.argv[1:]
  with open(asked, encoding='utf-8') as file:
    request = Request(**json.load(file))
  told = answer(request)
  with open(f'{answered}.partial', 'w', encoding='utf-8') as file:
    json.dump(told, file)
  os.replace(f'{answered}.partial', answered)


if __name__ == '__main__':
  # The module that gin files name must be the one that runs.
  from t5wild import recipe_facts

  recipe_facts.main()
