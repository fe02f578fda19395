# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild ladder`: small runs, their law, and a larger run foretold by it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import signal
import sys

from t5wild import exit_codes
from t5wild import gin_utils
from t5wild.experiments import command_flags
from t5wild.experiments import findings
from t5wild.experiments import folder as folder_lib
from t5wild.experiments import ladder as ladder_lib
from t5wild.experiments import ladder_page
from t5wild.experiments import ladder_picture
from t5wild.experiments import recipes
from t5wild.experiments import scaling_fit
from t5wild.reports import outputs

_DESCRIPTION = """Trains a recipe in several sizes and lengths that a gin file
of a ladder names (see gin/ladders/), fits a law of parameters and tokens to the
losses, and foretells the loss of a larger run; writes ladder.csv, ladder.html,
ladder.png and ladder.json. The same command again trains only what is
missing."""
_MEND = (
    'Take one of ours, such as --gin_file=ladders/quickstart.gin, as a '
    'pattern; a recipe of training is named in it.'
)
_FOR_THE_USER = (*command_flags.FOR_THE_USER, scaling_fit.CannotFitError)


def main(argv: Sequence[str] | None = None) -> int:
  """Climbs, and returns an exit code; `argv` without our name."""
  arguments, rest = _parse(argv)
  try:
    with command_flags.ended_by_sigterm():
      return _climb(arguments, rest)
  except _FOR_THE_USER as error:
    sys.stderr.write(f'{command_flags.message_of(error)}\n')
    return exit_codes.BAD_CONFIG.code
  except KeyboardInterrupt:
    sys.stderr.write('Stopped. The same command again goes on.\n')
    return 128 + signal.SIGINT


def _climb(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
  command_flags.read_gin(arguments, rest)
  ladder: ladder_lib.Ladder = gin_utils.configured(
      ladder_lib.Ladder, mend=_MEND
  )()
  folder = folder_lib.Folder(arguments.output)
  if arguments.table:
    command_flags.check_is_there(folder)
  else:
    sizes = [*ladder.sizes.values(), ladder.target.size]
    checked = recipes.check(
        ladder.made_recipe(), [ladder.bindings_of(size) for size in sizes]
    )
    folder.open_for(ladder.described(checked['texts']))
  rungs = ladder_lib.plan(ladder, folder, command_flags.say)
  if not arguments.table:
    ladder_lib.train(ladder, folder, rungs, say=command_flags.say)
  rungs = ladder_lib.with_results(ladder, folder, rungs)
  _write(folder, 'ladder.csv', findings.as_csv(rungs))
  found = findings.find(rungs, metric=ladder.metric, seed=ladder.seed)
  for line in found.lines:
    command_flags.say(line)
  _write(folder, 'ladder.json', findings.as_json(found))
  _write(folder, 'ladder.html', ladder_page.html(found))
  _write(folder, 'ladder.png', lambda path: ladder_picture.draw(found, path))
  return exit_codes.DONE.code


def _write(folder: folder_lib.Folder, name: str, content) -> None:
  outputs.write(folder.join(name), content)
  command_flags.say(folder.join(name))


def _parse(
    argv: Sequence[str] | None,
) -> tuple[argparse.Namespace, list[str]]:
  parser = argparse.ArgumentParser(
      prog='t5wild ladder', description=_DESCRIPTION
  )
  command_flags.add_to(parser, output='ladder')
  parser.add_argument(
      '--table', action='store_true',
      help='train nothing; fit to what there is, while others train too',
  )
  return command_flags.parse(parser, argv)  # fmt: skip
