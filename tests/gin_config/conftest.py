# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A tiny trainer module and a place for gin files, the same for every test."""

import sys
import textwrap
import types

import gin
import pytest

_SOURCE = '''
from collections.abc import Mapping, Sequence
import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class DatasetConfig:
  name: str = 'none'
  batch_size: int = 1
  lengths: Mapping[str, int] | None = None
  shuffle: bool = True
  rates: Sequence[float] = ()


class Model:
  def __init__(self, size: int = 3, *, rate: float = 0.1):
    self.size = size
    self.rate = rate


def train(model: Model, data: DatasetConfig | None = None, evaluation=None,
          model_dir: str = '', steps: int = 1, fn=None, **extra):
  return dict(model=model, data=data, evaluation=evaluation,
              model_dir=model_dir, steps=steps, fn=fn, **extra)


def strict(steps: int):
  return steps


def registered(steps: int = 1):
  return steps


def theirs(size: int = 1):
  return size
'''


def _make_toy() -> types.ModuleType:
  """One module for all tests: gin's registry outlives a test."""
  module = types.ModuleType('t5wild_toy')
  # Named so, wrong types are errors as they are in our own code.
  module.__dict__['__name__'] = 't5wild.toy'
  sys.modules['t5wild.toy'] = sys.modules['t5wild_toy'] = module
  exec(_SOURCE, module.__dict__)
  module.theirs.__module__ = 'their.code'
  return module


_TOY = _make_toy()
gin.register(_TOY.registered, module='some.registry')


@pytest.fixture(autouse=True)
def clean_gin():
  """Every test starts and ends without a gin configuration."""
  gin.clear_config()
  yield
  gin.clear_config()


@pytest.fixture
def toy(tmp_path, monkeypatch):
  """A module `t5wild_toy` to configure, in an empty working directory."""
  monkeypatch.chdir(tmp_path)
  return _TOY


@pytest.fixture
def write(tmp_path):
  """Writes a gin file that imports the toy module; returns its path."""

  def write_file(name, text, *, head=True):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    start = (
        'from __gin__ import dynamic_registration\nimport t5wild_toy as toy\n'
        if head
        else ''
    )
    path.write_text(start + textwrap.dedent(text), encoding='utf-8')
    return str(path)

  return write_file
