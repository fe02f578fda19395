# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Lets Python import T5X's modules by their names, and get ours.

A T5X that is installed stays what it is, unless it is to be hidden.
"""

from collections.abc import Iterator
import contextlib
import os
import sys

from absl import logging

from t5wild.compat import alias_modules
from t5wild.compat import t5x_alias

# Set to 1 it does what `install(hide=True)` does.
HIDE_VARIABLE = 'T5WILD_HIDE_T5X'
_hinted: set[str] = set()
_is_silent = False


def install(*, hide: bool | None = None) -> None:
  """Makes T5X's names importable in this process, once.

  Args:
    hide: with a T5X installed, whether its names give our objects all the same
      (modules that only it has, such as those of a fork, stay importable);
      None asks the environment variable T5WILD_HIDE_T5X.

  Raises:
    ImportError: it is to be hidden, and is imported already.
  """
  if hide is None:
    hide = os.environ.get(HIDE_VARIABLE) == '1'
  if is_installed():
    return
  package = t5x_alias.TABLE.package
  installed = alias_modules.folders_of_its_own(package)
  if installed and not hide:
    logging.warning(
        'T5X is installed (%s), so t5x names mean its objects, which t5wild '
        'cannot run. Set %s=1 to have ours, or uninstall it.',
        installed[0], HIDE_VARIABLE,
    )  # fmt: skip
    return
  alias_modules.refuse_imported(package)
  sys.meta_path.insert(
      0, alias_modules.AliasFinder(t5x_alias.TABLE, installed, _hint)
  )


def is_installed() -> bool:
  """Whether T5X's names are ours in this process."""
  return alias_modules.is_installed(t5x_alias.TABLE)


@contextlib.contextmanager
def silence() -> Iterator[None]:
  """Gives no hints within: for our own code that reads old names."""
  global _is_silent
  before, _is_silent = _is_silent, True
  try:
    yield
  finally:
    _is_silent = before


def _hint(old: str, new: str) -> None:
  if not _is_silent and old not in _hinted:
    _hinted.add(old)
    logging.info('%s is now %s', old, new)
