# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""An array job of SLURM whose every task trains one run of an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import os
import shlex
import sys
from typing import Any

from t5wild.experiments import points as points_lib

_OURS = ('array', 'output', 'job-name')


def script(
    command: Sequence[str],
    *,
    num_runs: int,
    num_parallel: int,
    folder: str,
    options: Mapping[str, Any],
    program: Sequence[str] = (sys.executable, '-m', 't5wild.cli'),
) -> str:
  """The text of the script.

  Args:
    command: of `t5wild`, but for the index.
    num_runs: tasks of the array.
    num_parallel: of them at a time.
    folder: of the experiment, where the tasks' own output goes.
    options: of sbatch, beside what is set here.
    program: that takes the command.

  Raises:
    points.BadExperimentError: an option is set here already.
  """
  taken = [name for name in options if name.lstrip('-') in _OURS]
  if taken:
    raise points_lib.BadExperimentError(
        f'slurm_options holds {taken[0]!r}, which the sweep sets itself\n'
        '  expected: other options of sbatch.\n  do: leave it out'
    )
  lines = [
      '#!/bin/bash',
      '# One run of a sweep a task: its index is the run.',
      f'#SBATCH --array=0-{num_runs - 1}%{num_parallel}',
      '#SBATCH --job-name=t5wild_sweep',
      # %A: the job, %a: the index.
      f'#SBATCH --output={os.path.abspath(folder)}/array_%A_%a.log',
      *(
          f'#SBATCH --{name.lstrip("-")}={value}'
          for name, value in options.items()
      ),
      'set -eu',
      f'cd {shlex.quote(os.getcwd())}',
      f'exec {shlex.join([*program, *command])} '
      '--index="$SLURM_ARRAY_TASK_ID"',
  ]
  return '\n'.join(lines) + '\n'
