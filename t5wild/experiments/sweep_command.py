# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild sweep`: many runs of one recipe, and which was best."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import os
import signal
import sys

from t5wild import exit_codes
from t5wild import gin_utils
from t5wild.experiments import array_job
from t5wild.experiments import command_flags
from t5wild.experiments import folder as folder_lib
from t5wild.experiments import points as points_lib
from t5wild.experiments import recipes
from t5wild.experiments import results as results_lib
from t5wild.experiments import runner as runner_lib
from t5wild.experiments import sweep as sweep_lib
from t5wild.experiments import sweep_page
from t5wild.reports import outputs

_MEND = (
    'Take one of ours, such as --gin_file=sweeps/quickstart_rate.gin, as a '
    'pattern; a recipe of training is named in it.'
)
_DESCRIPTION = """Trains a recipe once for each combination of values that a gin
file of a sweep names (see gin/sweeps/), and writes what each came to as a table
in the terminal, sweep.csv and sweep.html. The same command again trains only
what is missing."""


def main(argv: Sequence[str] | None = None) -> int:
  """Sweeps, and returns an exit code; `argv` without our name."""
  arguments, rest = _parse(argv)
  try:
    with command_flags.ended_by_sigterm():
      return _sweep(arguments, rest)
  except command_flags.FOR_THE_USER as error:
    sys.stderr.write(f'{command_flags.message_of(error)}\n')
    return exit_codes.BAD_CONFIG.code
  except KeyboardInterrupt:
    sys.stderr.write('Stopped. The same command again goes on.\n')
    return 128 + signal.SIGINT


def _sweep(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
  command_flags.read_gin(arguments, rest)
  sweep: sweep_lib.Sweep = gin_utils.configured(
      sweep_lib.Sweep, mend=_MEND
  )()
  folder = folder_lib.Folder(arguments.output)
  if arguments.table:
    command_flags.check_is_there(folder)
    return _show(sweep, folder, sweep_lib.standing(sweep, folder))
  _check_index(arguments.index, sweep)
  command_flags.say(
      f'{len(sweep.points)} runs; reading the recipe with each ...'
  )
  checked = recipes.check(
      sweep.made_recipe(), [point.bindings for point in sweep.points]
  )
  folder.open_for(sweep.described(checked['texts']))
  if arguments.array:
    return _write_array(sweep, folder, arguments, rest)
  if arguments.index is not None:
    return _train_one(sweep, folder, arguments.index)
  standing = sweep_lib.train(
      sweep,
      folder,
      say=command_flags.say,
      when_done=lambda now: _write(sweep, folder, now),
  )
  return _show(sweep, folder, standing)


def _train_one(
    sweep: sweep_lib.Sweep, folder: folder_lib.Folder, index: int
) -> int:
  runner = runner_lib.Runner(
      sweep.made_recipe(), folder, num_parallel=1, say=command_flags.say
  )
  point = sweep.points[index]
  runner.run([runner_lib.Job(point=point)])
  run = folder.run(point)
  result = results_lib.result_of(run, point, measure=sweep.measure)
  end = run.end()
  command_flags.say(
      f'{point.name}: {result.status}, {sweep.metric} {result.value}'
  )
  return end.code if end and end.code > 0 else (0 if end else 1)


def _check_index(index: int | None, sweep: sweep_lib.Sweep) -> None:
  if index is None:
    return
  _refuse_rungs(sweep)
  if not 0 <= index < len(sweep.points):
    raise points_lib.BadExperimentError(
        f'--index is {index}\n  expected: 0 to {len(sweep.points) - 1}.\n'
        '  do: write the array script anew: --array'
    )


def _refuse_rungs(sweep: sweep_lib.Sweep) -> None:
  if len(sweep.method.rungs(len(sweep.points))) > 1:
    raise points_lib.BadExperimentError(
        'SuccessiveHalving cannot be an array job: which runs go on is known '
        'only when others are done\n'
        '  expected: a grid or random draws.\n'
        '  do: without --array, in one job; num_parallel and environments '
        'spread it over devices'
    )


def _write_array(
    sweep: sweep_lib.Sweep,
    folder: folder_lib.Folder,
    arguments: argparse.Namespace,
    rest: Sequence[str],
) -> int:
  _refuse_rungs(sweep)
  command = [
      'sweep',
      *(f'--gin_file={path}' for path in arguments.gin_file),
      *(f'--gin_search_paths={p}' for p in [arguments.gin_search_paths] if p),
      *rest,
      f'--output={os.path.abspath(folder.path)}',
  ]
  path = folder.join('array.sh')
  text = array_job.script(
      command,
      num_runs=len(sweep.points),
      num_parallel=sweep.num_parallel,
      folder=folder.path,
      options=sweep.slurm_options,
  )
  outputs.write(path, text)
  command_flags.say(
      f'sbatch {path}\nand when it is done: t5wild sweep --table and the same'
  )
  return exit_codes.DONE.code


def _show(
    sweep: sweep_lib.Sweep,
    folder: folder_lib.Folder,
    standing: sweep_lib.Standing,
) -> int:
  results_lib.print_table(standing.results, sweep.measure)
  paths = _write(sweep, folder, standing)
  command_flags.say(results_lib.summary(standing.results) + '.')
  best = results_lib.ranked(standing.results, sweep.measure)[0]
  if best.value is not None:
    command_flags.say(f'Best: {results_lib.bindings_text(best.point.bindings)}')
  for path in paths:
    command_flags.say(path)
  lost = any(r.value is None for r in standing.results)
  return exit_codes.FAILED.code if lost else exit_codes.DONE.code


def _write(
    sweep: sweep_lib.Sweep,
    folder: folder_lib.Folder,
    standing: sweep_lib.Standing,
) -> list[str]:
  """The table and the page, while it goes on too."""
  paths = [folder.join('sweep.csv'), folder.join('sweep.html')]
  outputs.write(
      paths[0], results_lib.as_csv(standing.results, sweep.measure)
  )
  outputs.write(paths[1], sweep_page.html(sweep, folder, standing.results))
  return paths


def _parse(
    argv: Sequence[str] | None,
) -> tuple[argparse.Namespace, list[str]]:
  parser = argparse.ArgumentParser(
      prog='t5wild sweep', description=_DESCRIPTION
  )
  command_flags.add_to(parser, output='sweep')
  parser.add_argument(
      '--table', action='store_true',
      help='train nothing; show what there is, while others train too',
  )
  parser.add_argument(
      '--array', action='store_true',
      help='train nothing; write an array job of SLURM, a run a task',
  )
  parser.add_argument(
      '--index', type=int, metavar='N',
      help='train run N alone, from 0, as a task of an array job does',
  )
  return command_flags.parse(parser, argv)  # fmt: skip
