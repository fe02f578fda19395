# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Checks values of flags that would be found wrong only after minutes. No JAX.
"""

import math
import pathlib
import tempfile


def check_above_zero(flag: str, value: float | None, *, example: str) -> None:
  """Raises ValueError for a number that is none, infinite, or not above 0.

  Args:
    flag: its name.
    value: None where it is not given.
    example: a value.
  """
  if value is None or (math.isfinite(value) and value > 0):
    return
  raise ValueError(
      f'--{flag}={value:g}.\nExpected a number above 0.\n'
      f'Give for example --{flag}={example}, or leave it out.'
  )


def check_folder(flag: str, value: str | None) -> None:
  """Raises ValueError for a folder that cannot be written or made.

  Tries it with a file that is gone at once, in the folder, or in the one of
  those above it that is there; makes none.

  Args:
    flag: its name.
    value: None or '' where it is not given.
  """
  if value:
    _try(flag, value, pathlib.Path(value))


def check_file(flag: str, value: str | None) -> None:
  """Raises ValueError for a file that cannot be written; see `check_folder`.

  Args:
    flag: its name.
    value: None or '' where it is not given.
  """
  if not value:
    return
  path = pathlib.Path(value)
  if path.is_dir():
    raise ValueError(
        f'--{flag}={value} is a folder.\nExpected a file, there or not.\n'
        f'Give for example --{flag}={path / "plan.gin"}.'
    )
  _try(flag, value, path.parent)


def _try(flag: str, value: str, folder: pathlib.Path) -> None:
  if '://' in value:
    _refuse(flag, value, 'this command writes to local disks')
  try:
    there = next(each for each in (folder, *folder.parents) if each.exists())
    with tempfile.TemporaryFile(dir=there):
      return
  except OSError as error:
    _refuse(flag, value, error.strerror or str(error))


def _refuse(flag: str, value: str, why: str) -> None:
  raise ValueError(
      f'--{flag}={value} cannot be written: {why}.\nExpected a place in a '
      'folder that may be written, or made, by you.\nGive another one.'
  )
