# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Gives the modules that a recipe imports, and runs none that is not installed.

T5X's names are those of the table, whatever else of that name Python would
find; modules beside the recipe, a fork's own within `t5x` among them, are
refused by a name of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
import contextlib
import importlib
import pathlib
import site
import sys
import sysconfig
import types

from t5wild.compat import alias_modules
from t5wild.compat import t5_finder
from t5wild.compat import t5x_alias
from t5wild.gin_config import findings
from t5wild.gin_config import module_search

# What recipes reach as `__main__`, under one binary or another.
_BINARIES = ('t5x.train', 't5x.eval', 't5x.infer', 't5x.precompile')
_T5X = 't5x'
# What a package raises that is installed beside versions it does not know, or
# that is a program and ends.
_BROKEN = (
    ArithmeticError, AssertionError, AttributeError, LookupError, OSError,
    RuntimeError, SyntaxError, SystemExit, TypeError, ValueError,
)  # fmt: skip
# Python's own modules that do something when they are imported: they print,
# open a browser or a window, or run tests.
_PROGRAMS = frozenset({
    '__hello__', '__phello__', 'antigravity', 'idlelib', 'lib2to3', 'test',
    'this', 'turtledemo',
})  # fmt: skip
_MAIN = '__main__'


class OwnModuleError(ImportError):
  """A module that lies beside the recipe: it is not run by a check."""


class Modules:
  """Imports what is T5X's, ours or installed; refuses a recipe's own code."""

  def __init__(self, folders: Sequence[str]):
    """Takes the folders where the recipe's own modules may lie."""
    self._folders = folders
    self._of_t5x: dict[str, types.ModuleType] = {}
    self.own: list[str] = []
    self.missing: dict[str, str] = {}  # module -> the package it lacks

  def load(self, name: str) -> types.ModuleType:
    """The module `name`; ImportError where it is absent or a recipe's own."""
    if name == _MAIN:
      return _main_module()
    root = name.partition('.')[0]
    if root == _T5X:
      return self._load_of_t5x(name)
    if not _is_installed(root):
      self._refuse_own(name)
      self.missing[name] = root
      raise ModuleNotFoundError(f'{root} is not installed', name=name)
    if root in _PROGRAMS or name.endswith(f'.{_MAIN}'):
      raise ImportError(f'{name} is a program, which is not run', name=name)
    try:
      # What a module prints is no part of the answer.
      with contextlib.redirect_stdout(sys.stderr):
        return importlib.import_module(name)
    except ImportError as error:
      lacks = (getattr(error.__cause__ or error, 'name', '') or '').split('.')
      if lacks[0] not in ('', _T5X) and not _is_installed(lacks[0]):
        self.missing[name] = lacks[0]
      raise
    except _BROKEN as error:
      raise ImportError(
          f'{name} is installed, and fails: {type(error).__name__}: {error}',
          name=name,
      ) from error

  def package_missed_by(self, finding: findings.Finding) -> str | None:
    """The package that an import lacks, where that is all it lacks."""
    if finding.kind != 'import':
      return None
    found = (p for n, p in self.missing.items() if f'{n!r}' in finding.what)
    return next(found, None)

  def is_of_task(self, finding: findings.Finding) -> bool:
    """Whether it is about a module of the recipe that was left unread."""
    return finding.kind == 'import' and any(
        f'{name!r}' in finding.what for name in self.own
    )

  def _load_of_t5x(self, name: str) -> types.ModuleType:
    """T5X's module as the table has it, past what Python would import."""
    if name not in t5x_alias.TABLE.modules():
      if not t5x_alias.TABLE.is_absent(name):
        self._refuse_own(name)
      raise ModuleNotFoundError(t5x_alias.TABLE.absent_module(name), name=name)
    if name not in self._of_t5x:
      place = t5x_alias.TABLE.imported_with(name)
      if place is not None:
        importlib.import_module(place)
      module = alias_modules.AliasModule(name, t5x_alias.TABLE)
      self._of_t5x[name] = module
      for child in t5x_alias.TABLE.parts(name):
        setattr(module, child, self._load_of_t5x(f'{name}.{child}'))
    return self._of_t5x[name]

  def _refuse_own(self, name: str) -> None:
    """Raises OwnModuleError where the recipe has such a module itself."""
    if self._is_beside(name) or module_search.find(name):
      self.own.append(name)
      raise OwnModuleError(f'{name} is code of the recipe', name=name)

  def _is_beside(self, name: str) -> bool:
    places = [pathlib.Path(f, *name.split('.')) for f in self._folders]
    return any(p.is_dir() or p.with_suffix('.py').is_file() for p in places)


def _is_installed(root: str) -> bool:
  """Whether it is t5wild, of Python, or in a folder of installed packages."""
  if root == 't5wild' or root in sys.stdlib_module_names:
    return True
  if root == 't5' and t5_finder.is_installed():  # T5's names are ours
    return True
  spec = module_search.find(root)
  if spec is None:
    return False
  places = [spec.origin, *(spec.submodule_search_locations or ())]
  installed = {
      sysconfig.get_path('purelib'),
      sysconfig.get_path('platlib'),
      *site.getsitepackages(),
      *([site.getusersitepackages()] if site.ENABLE_USER_SITE else []),
  }
  return any(
      place and pathlib.Path(place).is_relative_to(folder)
      for place in places
      for folder in installed
  )


def _main_module() -> types.ModuleType:
  """What `import __main__` gives under any of the binaries."""
  module = types.ModuleType(_MAIN)
  for binary in _BINARIES:
    for name, place in t5x_alias.TABLE.aliases(binary).items():
      source, _, attribute = place.partition(':')
      setattr(module, name, getattr(importlib.import_module(source), attribute))
  return module
