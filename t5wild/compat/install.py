# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Switches T5X's names and gin paths on; the binaries do so by themselves."""

from t5wild import vocabulary_files
from t5wild.compat import finder
from t5wild.compat import gin_files
from t5wild.compat import t5_finder


def install(*, hide: bool | None = None) -> None:
  """Makes T5X's modules and gin files those of t5wild, once in a process.

  T5's names too, where t5 is absent, and vocabularies in a local folder. It
  costs a millisecond: nothing is imported before it is named.

  Args:
    hide: what becomes of a T5X that is installed; see `finder.install`.
  """
  finder.install(hide=hide)
  t5_finder.install()
  gin_files.register()
  vocabulary_files.install()
