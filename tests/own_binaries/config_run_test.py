# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A binary that asks for Fiddle is told to use gin."""

from absl import flags
import pytest

from t5wild import gin_utils
from t5wild.own_binaries import config_run


@pytest.fixture
def fiddle_flag(monkeypatch):
  values = flags.FlagValues()
  flags.DEFINE_string('fdl_config', None, 'As Fiddle has it.', values)
  values(['binary'])
  monkeypatch.setattr(flags, 'FLAGS', values)
  return values


def test_fiddle_is_used_where_one_of_its_flags_is_set(fiddle_flag):
  assert not config_run.using_fdl()
  fiddle_flag.fdl_config = 'my_config'
  assert config_run.using_fdl()
  with pytest.raises(ValueError, match=r"\['fdl_config'\], expected gin"):
    config_run.config_with_fiddle(len)


def test_without_fiddle_there_are_no_flags_of_it():
  assert not config_run.using_fdl()


def test_run_is_that_of_gin(monkeypatch):
  ran = []
  monkeypatch.setattr(gin_utils, 'run', ran.append)
  config_run.run(len)
  assert ran == [len]
