# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""One class under two names keeps what was bound to it by either."""

import sys
import types

import gin
import pytest

from t5wild import gin_utils

_SOURCE = """
class Model:
  def __init__(self, size=1, rate=0.5):
    self.size, self.rate = size, rate
  def predict(self, num=1):
    return num
"""


def _make_modules() -> tuple[types.ModuleType, types.ModuleType]:
  """One class in two modules, for all tests: gin's registry outlives a test."""
  new, old = types.ModuleType('new_home'), types.ModuleType('old_home')
  exec(_SOURCE, new.__dict__)
  old.Model = new.Model
  return new, old


_NEW_HOME, _OLD_HOME = _make_modules()


@pytest.fixture
def two_names(monkeypatch):
  """A class that two modules have, in one of them at first."""
  monkeypatch.setitem(sys.modules, 'new_home', _NEW_HOME)
  monkeypatch.setitem(sys.modules, 'old_home', _OLD_HOME)
  return _NEW_HOME.Model


_NEW = """
from __gin__ import dynamic_registration
import new_home
MODEL = @new_home.Model()
new_home.Model.size = 4
new_home.Model.rate = 0.1
scope/new_home.Model.size = 5
"""
_OLD = """
from __gin__ import dynamic_registration
import old_home
old_home.Model.rate = 0.2
old_home.Model.predict.num = 3
"""


def test_configuring_a_method_by_another_name_loses_no_binding(
    two_names, tmp_path
):
  for name, text in (('new.gin', _NEW), ('old.gin', _OLD)):
    (tmp_path / name).write_text(text)
  (tmp_path / 'last.gin').write_text('old_home.Model.size = 6\n')
  gin_utils.parse_gin_flags(
      [str(tmp_path)], ['new.gin', 'old.gin', 'last.gin'], []
  )
  model = gin.get_configurable(two_names)()
  with gin.config_scope('scope'):
    scoped = gin.get_configurable(two_names)()
  assert (model.size, model.rate, model.predict()) == (6, 0.2, 3)
  assert scoped.size == 5
  assert gin.query_parameter('MODEL/macro.value') is not None


def test_a_dynamic_file_sees_what_its_includes_import(two_names, tmp_path):
  (tmp_path / 'new.gin').write_text(_NEW)
  (tmp_path / 'mine.gin').write_text(
      'from __gin__ import dynamic_registration\nimport os\n'
      "include 'new.gin'\nnew_home.Model.size = 8\n"
  )
  gin_utils.parse_gin_flags([str(tmp_path)], ['mine.gin'], [])
  assert gin.get_configurable(two_names)().size == 8


def test_a_name_that_no_file_imports_is_refused_all_the_same(
    two_names, tmp_path
):
  (tmp_path / 'new.gin').write_text(_NEW)
  (tmp_path / 'mine.gin').write_text(
      'from __gin__ import dynamic_registration\n'
      "include 'new.gin'\nold_home.Model.size = 8\n"
  )
  with pytest.raises(gin_utils.GinError, match="'old_home' is not imported"):
    gin_utils.parse_gin_flags([str(tmp_path)], ['mine.gin'], [])
