# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What `t5wild migrate` says runs unchanged is really built: thirty of many.

T5X_RECIPES names a folder of repositories, owner/name each; the thirty are
those of the lowest hashes (see tools/migration_census.py).
"""

import os
import pathlib
import sys

import gin
import jax
import pytest

from t5wild import eval as evaluation
from t5wild import infer
from t5wild import precompile
from t5wild import train
from t5wild.compat import alias_modules
from t5wild.compat import gin_files
from t5wild.compat import t5_alias
from t5wild.compat import t5_finder
from t5wild.gin_config import reader
from tests import gin_registry

build_recipe = pytest.importorskip(
    'tests.compat.build_recipe', exc_type=ImportError
)
_ROOT = os.environ.get('T5X_RECIPES')
_NUM_DRAWN = 30

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        _ROOT is None, reason='T5X_RECIPES names no folder of repositories'
    ),
]


@pytest.fixture
def fresh_gin(t5x_names, monkeypatch, tmp_path):
  """gin as in a new process, with T5X's names and paths."""
  gin_registry.forget()
  monkeypatch.setattr(reader, '_SOURCES', [])
  monkeypatch.chdir(tmp_path)
  _know_t5(monkeypatch)
  gin_files.register()
  for function in (
      train.train, evaluation.evaluate, infer.infer, precompile.precompile,
      infer.create_task_from_tfexample_file,
  ):  # fmt: skip
    monkeypatch.setattr(
        sys.modules['__main__'], function.__name__, function, raising=False
    )
  yield
  gin.clear_config()
  for name in build_recipe.STAND_INS:
    sys.modules.pop(name, None)


def _know_t5(patch):
  """T5's names are ours, unless t5 is installed."""
  if not t5_finder.has_t5():
    ours = alias_modules.AliasFinder(t5_alias.TABLE)
    patch.setattr(sys, 'meta_path', [ours, *sys.meta_path])


@pytest.fixture(scope='module')
def drawn():
  """The thirty: name and report."""
  tools = pathlib.Path(__file__).resolve().parents[2] / 'tools'
  sys.path.insert(0, str(tools))
  import migration_census

  sys.path.remove(str(tools))
  reports = {}
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(reader, '_SOURCES', [gin_files.text_of])
    _know_t5(patch)
    for folder in sorted(pathlib.Path(_ROOT).glob('*/*')):
      reports |= migration_census.census(str(folder))
  names = migration_census.drawn(reports, _NUM_DRAWN)
  return [(name, reports[name]) for name in names]


@pytest.mark.parametrize('number', range(_NUM_DRAWN))
def test_what_runs_unchanged_is_built(number, drawn, fresh_gin):
  name, report = drawn[number]
  path = report.includers[0] if report.faults else report.path
  root = pathlib.Path(_ROOT, *pathlib.PurePath(name).parts[:2]).resolve()
  parents = pathlib.Path(path).resolve().parents
  folders = [str(each) for each in parents if each.is_relative_to(root)]
  model, state, trainer = build_recipe.build(
      path, after=report.after, folders=folders
  )
  assert model.module is not None
  assert jax.tree.leaves(state.params)
  assert trainer is not None
