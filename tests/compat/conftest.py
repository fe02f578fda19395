# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's names for one test, and gone after it."""

import sys

import pytest

from t5wild.compat import finder
from t5wild.compat import t5x_alias


def _forget() -> None:
  for name in [n for n in sys.modules if n.partition('.')[0] == 't5x']:
    del sys.modules[name]
  sys.meta_path[:] = [
      each
      for each in sys.meta_path
      if getattr(each, 'table', None) is not t5x_alias.TABLE
  ]
  finder._hinted.clear()


@pytest.fixture
def no_names():
  """No t5x can be imported, whatever an earlier test did."""
  _forget()
  yield
  _forget()


@pytest.fixture
def t5x_names(no_names):
  """T5X's names are ours."""
  finder.install()
