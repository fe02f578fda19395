# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild sweep` with a stand-in for training, for tasks of an array job."""

import sys

from t5wild.experiments import recipes
from t5wild.experiments import runner
from t5wild.experiments import sweep_command

PROGRAM = (sys.executable, '-m', 'tests.experiments.made_trainer')


def main(argv) -> int:
  """Takes the command line of `t5wild`."""
  recipes.check = lambda recipe, points: {'texts': ''}
  runner.TRAIN = PROGRAM
  assert argv[0] == 'sweep'
  return sweep_command.main(argv[1:])


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
