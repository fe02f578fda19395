# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The `t5wild` command: one sub-command for each thing a user does.

A command's module is imported when it is asked for, so that `t5wild --help`
answers at once, on machines without JAX too.
"""

from collections.abc import Sequence
import dataclasses
import difflib
import errno
import importlib
import os
import signal
import sys

import t5wild
from t5wild import exit_codes
from t5wild import huge_pages

_RUN_MODE = '--run_mode='  # of T5X's t5x/main.py
_HELP_FLAGS = ('-h', '--help', '-help', 'help')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Command:
  """One sub-command.

  Attributes:
    module: where its code is.
    function: takes the arguments, returns an exit code (None: done).
    takes_program_name: whether the arguments start with the program's name.
    computes: whether a CPU would have most of its time from a model.
    summary: one line for `t5wild --help`.
  """

  module: str
  function: str = 'main'
  takes_program_name: bool = False
  computes: bool = False
  summary: str


COMMANDS = {
    'quickstart': Command(
        module='t5wild.quickstart.main',
        computes=True,
        summary='train a small model on text of this machine, in minutes',
    ),
    'train': Command(
        module='t5wild.train',
        function='run',
        takes_program_name=True,
        computes=True,
        summary='train what gin files and --gin.NAME=value flags describe',
    ),
    'precompile': Command(
        module='t5wild.precompile',
        function='run',
        takes_program_name=True,
        summary='compile the training step of gin files, and train nothing',
    ),
    'plan': Command(
        module='t5wild.planner.plan',
        function='run',
        takes_program_name=True,
        summary='say how to spread a recipe over a machine, before renting it',
    ),
    'eval': Command(
        module='t5wild.eval',
        function='run',
        takes_program_name=True,
        computes=True,
        summary="a task's metrics and loss of checkpoints, now or as they come",
    ),
    'infer': Command(
        module='t5wild.infer',
        function='run',
        takes_program_name=True,
        computes=True,
        summary='predict with a checkpoint, or score by it; or converse',
    ),
    'report': Command(
        module='t5wild.reports.run_report',
        summary='write a page that shows a run, while it goes on or afterwards',
    ),
    'compare': Command(
        module='t5wild.reports.compare',
        summary='say how runs differ, since which step, and what they cost',
    ),
    'sweep': Command(
        module='t5wild.experiments.sweep_command',
        summary='train a recipe with many values, and say which was best',
    ),
    'ladder': Command(
        module='t5wild.experiments.ladder_command',
        summary='fit a law to small runs, and foretell a larger one',
    ),
    'watch': Command(
        module='t5wild.reports.watch',
        summary='show a run in the terminal, or as a live page, as it goes on',
    ),
    'checkpoints': Command(
        module='t5wild.checkpoint_files.command',
        summary='list, verify, mirror, compare and pin checkpoints',
    ),
    'convert': Command(
        module='t5wild.convert',
        summary='read checkpoints of T5X; of Hugging Face both ways',
    ),
    'migrate': Command(
        module='t5wild.compat.migrate_command',
        summary='say what of a T5X project runs unchanged, and what is missing',
    ),
    'run': Command(
        module='t5wild.compat.run',
        summary="run a script that imports t5x, with t5wild's objects",
    ),
    'cache': Command(
        module='t5wild.cache',
        summary='write a task as files that runs read without it, exactly',
    ),
    'data': Command(
        module='t5wild.inspecting.main',
        summary='inspect: show what a task, a file or a cache holds',
    ),
    'samples': Command(
        module='t5wild.samples',
        summary='say what a step was trained on, and when a text was seen',
    ),
    'train-vocab': Command(
        module='t5wild.data.train_vocabulary',
        summary='train a SentencePiece vocabulary on your text',
    ),
    'supervise': Command(
        module='t5wild.launch.supervise',
        summary='run a command, and start it again where that is worth it',
    ),
    'goodput': Command(
        module='t5wild.vitals.goodput_command',
        summary="where a run's time and money went, over all restarts",
    ),
    'nodes': Command(
        module='t5wild.launch.node_ledger',
        summary='which hosts failed how, across runs, and which to leave out',
    ),
    'doctor': Command(
        module='t5wild.doctor',
        summary='say what is installed and seen here, and how to mend it',
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
  """Runs a sub-command and returns its exit code; `argv` without our name."""
  try:
    try:
      code = _answer(
          list(sys.argv[1:] if argv is None else argv), is_process=argv is None
      )
    finally:
      lost = _lost_output()
  except KeyboardInterrupt:  # while modules are still being imported, too
    _print('Stopped by Ctrl-C.', stream=sys.stderr)
    return 128 + signal.SIGINT
  except BrokenPipeError:
    # Who read the output has gone, as `head` does: nobody to tell.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + signal.SIGPIPE
  except OSError as error:
    if error.errno != errno.ENOSPC:
      raise
    code, lost = None, error
  if lost and not code:
    _print(f'The output is not whole: {lost}.', stream=sys.stderr)
    return exit_codes.DISK_FULL.code
  return code


def _lost_output() -> OSError | None:
  """Writes out standard output; says what kept it from being whole.

  Raises:
    BrokenPipeError: who read it has gone.
  """
  try:
    sys.stdout.flush()
  except BrokenPipeError:
    raise
  except OSError as error:
    # Else Python itself fails over it at the end, with an exit code of its own.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return error
  return None


def usage() -> str:
  """The text of `t5wild --help`."""
  width = max(map(len, COMMANDS))
  lines = [
      f'  {name:<{width}}  {command.summary}'
      for name, command in COMMANDS.items()
  ]
  return '\n'.join([
      't5wild trains T5-style models in JAX, configured by gin.',
      '',
      'usage: t5wild COMMAND [arguments]',
      '',
      *lines,
      '',
      'Start with `t5wild quickstart`; `t5wild COMMAND --help` says more.',
  ])


def unknown(name: str) -> str:
  """The three-part error for a command that is none."""
  close = difflib.get_close_matches(name, COMMANDS)
  hint = f'; did you mean {close[0]!r}?' if close else ''
  return (
      f'There is no command {name!r}{hint}\n'
      f'  expected: one of {", ".join(COMMANDS)}.\n'
      '  do: t5wild --help says what each does.'
  )


def _answer(arguments: Sequence[str], *, is_process: bool) -> int:
  if not arguments or arguments[0] in _HELP_FLAGS:
    _print(usage())
    return exit_codes.DONE.code if arguments else exit_codes.BAD_CONFIG.code
  name, *rest = arguments
  if name == '--version':
    _print(f't5wild {t5wild.__version__}')
    return exit_codes.DONE.code
  if any(argument.startswith(_RUN_MODE) for argument in arguments):
    name, rest = _by_run_mode(arguments)
  if name not in COMMANDS:
    _print(unknown(name), stream=sys.stderr)
    return exit_codes.BAD_CONFIG.code
  if is_process and COMMANDS[name].computes:
    huge_pages.start_again()
  return _run(name, rest)


def _by_run_mode(arguments: Sequence[str]) -> tuple[str, list[str]]:
  """The command that T5X's --run_mode names, and the other arguments.

  It may stand beside the command itself when both are the same.
  """
  modes = [a for a in arguments if a.startswith(_RUN_MODE)]
  rest = [a for a in arguments if not a.startswith(_RUN_MODE)]
  name = modes[-1].removeprefix(_RUN_MODE)
  if rest and not rest[0].startswith('-'):
    command = rest.pop(0)
    if command != name:  # shown as the command that there is not
      name = f'{command} {modes[-1]}'
  return name, rest


def _run(name: str, rest: Sequence[str]) -> int:
  command = COMMANDS[name]
  function = getattr(importlib.import_module(command.module), command.function)
  first = [f't5wild {name}'] if command.takes_program_name else []
  return function([*first, *rest]) or exit_codes.DONE.code


def _print(text: str, *, stream=None) -> None:
  print(text, file=stream or sys.stdout)


if __name__ == '__main__':
  sys.exit(main())
