# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A module is found as Python would find it, and nothing is imported."""

import importlib.util
import sys

import pytest

from t5wild.gin_config import module_search


@pytest.mark.parametrize(
    'name', ['json', 'json.decoder', 'importlib.metadata', 'gin.config']
)
def test_it_finds_what_python_finds(name):
  found = module_search.find(name)
  assert found.origin == importlib.util.find_spec(name).origin


@pytest.mark.parametrize(
    'name', ['no_such', 'json.no_such', 'sys.x', 'json.a.b']
)
def test_what_is_not_there_is_none(name):
  assert module_search.find(name) is None
  assert module_search.folders(name) == []


def test_nothing_is_imported(tmp_path, monkeypatch):
  monkeypatch.syspath_prepend(tmp_path)
  inner = tmp_path / 'outer_package' / 'inner'
  inner.mkdir(parents=True)
  for folder in (inner.parent, inner):
    (folder / '__init__.py').write_text("raise RuntimeError('was run')")
  assert module_search.folders('outer_package.inner') == [str(inner)]
  assert 'outer_package' not in sys.modules


def test_folders_without_init_are_packages_too(tmp_path, monkeypatch):
  monkeypatch.syspath_prepend(tmp_path)
  (tmp_path / 'plain_folder' / 'configs').mkdir(parents=True)
  assert module_search.folders('plain_folder.configs') == [
      str(tmp_path / 'plain_folder' / 'configs')
  ]
