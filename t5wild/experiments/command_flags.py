# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What the commands of experiments have in common: flags, gin, Ctrl-C."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
import contextlib
import os
import signal
import sys

from t5wild import gin_utils
from t5wild.experiments import folder as folder_lib
from t5wild.experiments import points as points_lib
from t5wild.reports import outputs

FOR_THE_USER = (
    points_lib.BadExperimentError, gin_utils.GinError, outputs.BadOutputError
)  # fmt: skip
_GIN = '--gin.'


def add_to(parser: argparse.ArgumentParser, *, output: str) -> None:
  """Adds the flags; `output` is the default folder."""
  parser.add_argument(
      '--gin_file', action='append', default=[], metavar='FILE', required=True,
      help='what to do, in gin; --gin.NAME=VALUE changes it',
  )
  parser.add_argument(
      '--gin_search_paths', default='', metavar='FOLDER,...',
      help='folders of gin files, beside the working directory',
  )
  parser.add_argument(
      '--output', default=output, metavar='FOLDER',
      help=f'where runs and results lie; by default `{output}`',
  )  # fmt: skip


def parse(
    parser: argparse.ArgumentParser, argv: Sequence[str] | None
) -> tuple[argparse.Namespace, list[str]]:
  """Arguments, and flags `--gin.NAME=VALUE`."""
  arguments, rest = parser.parse_known_args(argv)
  unknown = [each for each in rest if not each.startswith(_GIN)]
  if unknown:
    parser.error(f'unrecognized arguments: {" ".join(unknown)}')
  return arguments, rest


def read_gin(arguments: argparse.Namespace, rest: Sequence[str]) -> None:
  """Reads the experiment's gin file.

  Raises:
    gin_utils.GinError: all that is wrong with it.
  """
  prefix = '--gin_bindings='
  bindings = [
      flag.removeprefix(prefix) for flag in gin_utils.rewrite_gin_args(rest)
  ]
  paths = [p for p in arguments.gin_search_paths.split(',') if p]
  gin_utils.parse_gin_flags(['.', *paths], arguments.gin_file, bindings)


def say(text: object) -> None:
  """Prints a line at once, for who reads through a pipe."""
  sys.stdout.write(f'{text}\n')
  sys.stdout.flush()


def check_is_there(folder: folder_lib.Folder) -> None:
  """Refuses to show an experiment that was never begun.

  Raises:
    points.BadExperimentError: there is none.
  """
  if not os.path.exists(folder.join('experiment.json')):
    raise points_lib.BadExperimentError(
        f'There is no experiment in {folder.path!r}\n'
        '  expected: the folder of one that was begun.\n'
        '  do: --output=FOLDER, or without --table to begin'
    )


def message_of(error: BaseException) -> str:
  """An error's own message, without the line on a call that gin adds."""
  text = gin_utils.explain_missing_arguments(str(error)) or str(error)
  return text.split('\n  In call to configurable')[0]


@contextlib.contextmanager
def ended_by_sigterm() -> Iterator[None]:
  """Makes of a SIGTERM what a Ctrl-C is: runs are told to save."""

  def interrupt(number, frame):
    raise KeyboardInterrupt

  before = signal.signal(signal.SIGTERM, interrupt)
  try:
    yield
  finally:
    signal.signal(signal.SIGTERM, before)
