# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Where reports are written, and flags that the commands have in common."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
import os
import tempfile

from t5wild import run_dir as run_dir_lib


class BadOutputError(ValueError):
  """A flag makes no sense, or nothing can be written there; three parts."""


def formats(text: str, *, known: Sequence[str]) -> list[str]:
  """The formats of a flag, `html,md`.

  Raises:
    BadOutputError: one of them is not known.
  """
  found = text.split(',')
  unknown = [each for each in found if each not in known]
  if unknown:
    raise BadOutputError(
        f'There is no format {unknown[0]!r}\n'
        f'  expected: one or more of {",".join(known)}.\n'
        f'  do: --format={",".join(known)}'
    )
  return found


def places(output: str, kinds: Sequence[str]) -> dict[str, str]:
  """The file of each format; the output's own ending, if it has one, goes.

  Raises:
    BadOutputError: nothing can be written there.
  """
  stem, ending = os.path.splitext(output)
  if ending.lstrip('.') not in kinds:
    stem = output
  folder = os.path.dirname(os.path.abspath(stem))
  why = run_dir_lib.why_unwritable(folder)
  if why is not None:
    raise BadOutputError(
        f'The report cannot be written to {folder!r}: {why}\n'
        '  expected: a folder to write to.\n'
        '  do: --output=/somewhere/else/report'
    )
  return {kind: f'{stem}.{kind}' for kind in kinds}


def write(path: str, content: str | Callable[[str], None]) -> None:
  """Writes a file whole or not at all; a reader never sees half of it.

  Args:
    path: of the file; its folder is made.
    content: the text, or what writes it to a path.

  Raises:
    BadOutputError: it cannot be written.
  """
  folder = os.path.dirname(os.path.abspath(path))
  ending = os.path.splitext(path)[1]
  try:
    os.makedirs(folder, exist_ok=True)
    handle, passing = tempfile.mkstemp(
        dir=folder, prefix='.report', suffix=ending
    )
    os.close(handle)
    try:
      _fill(passing, content)
      os.chmod(passing, 0o644)
      os.replace(passing, path)
    finally:
      if os.path.exists(passing):
        os.remove(passing)
  except OSError as error:
    raise BadOutputError(
        f'The report cannot be written to {path!r}: {error}\n'
        '  expected: a folder with room.\n'
        '  do: --output=/somewhere/else/report'
    ) from error


def _fill(path: str, content: str | Callable[[str], None]) -> None:
  if callable(content):
    content(path)
    return
  with open(path, 'w', encoding='utf-8') as file:
    file.write(content)


def path_of_a_run(text: str) -> str:
  """A flag's path; refuses an empty one."""
  if not text:
    raise argparse.ArgumentTypeError(
        'RUN is empty; expected the MODEL_DIR of a run; is a variable unset?'
    )
  return text


def price(text: str) -> float:
  """A flag's money; refuses what is none."""
  found = float(text)
  if not 0 <= found < float('inf'):
    raise argparse.ArgumentTypeError(
        f'{text!r} is no price; expected a number of at least 0, e.g. 2.5'
    )
  return found
