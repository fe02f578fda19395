# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Says of a T5X recipe whether it runs unchanged, or what it lacks.

Each file is read, never run: its imports are looked up among T5X's names, our
own and what is installed; modules beside the recipe are not imported. Every
binding must then name a parameter that the real object declares itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
import dataclasses
import importlib
import importlib.util
import inspect
import pathlib
import sys
import sysconfig
import types
from typing import Any

from t5wild.compat import finder
from t5wild.compat import t5x_alias
from t5wild.gin_config import findings
from t5wild.gin_config import lint as lint_lib
from t5wild.gin_config import reader
from t5wild.gin_config import signatures

# What another file or flag is to add is no fault of this one.
_ADDED_BY_OTHERS = ('macro', 'required')
# What recipes reach as `__main__`, under one binary or another.
_BINARIES = ('t5x.train', 't5x.eval', 't5x.infer', 't5x.precompile')


@dataclasses.dataclass(frozen=True, kw_only=True)
class FileReport:
  """What became of one gin file.

  Attributes:
    path: the file.
    faults: what keeps it from running, each with its line.
    needs: macros that another file or a flag must set.
    own_modules: imports of modules beside the recipe, which were not read.
    includers: files of the same check that include it and run; a part of
      theirs need not stand alone.
  """

  path: str
  faults: tuple[str, ...] = ()
  needs: tuple[str, ...] = ()
  own_modules: tuple[str, ...] = ()
  includers: tuple[str, ...] = ()

  @property
  def runs_unchanged(self) -> bool:
    """Whether it runs as it stands, or as the part of others that do."""
    return not self.faults or bool(self.includers)


class OwnModuleError(ImportError):
  """A module that lies beside the recipe: it is not run by a check."""


def check(
    paths: Sequence[str], *, search_paths: Sequence[str] = ()
) -> list[FileReport]:
  """Checks gin files, or all those below folders; runs nothing of them.

  Args:
    paths: files and folders.
    search_paths: folders of included files, besides those above each file.
  """
  with finder.silence():
    checked = [_check_file(path, search_paths) for path in _gin_files(paths)]
  includers: dict[str, list[str]] = {}
  for report, parts in checked:
    for part in () if report.faults else parts:
      includers.setdefault(part, []).append(report.path)
  return [
      dataclasses.replace(
          report, includers=tuple(includers.get(_real(report.path), ()))
      )
      for report, _ in checked
  ]


def _gin_files(paths: Iterable[str]) -> list[str]:
  found = []
  for path in map(pathlib.Path, paths):
    if path.is_dir():
      found += sorted(map(str, path.rglob('*.gin')))
    else:
      found.append(str(path))
  return found


def _check_file(
    path: str, search_paths: Sequence[str]
) -> tuple[FileReport, list[str]]:
  """The report of one file, and the real paths of what it includes."""
  folders = [*search_paths, *map(str, pathlib.Path(path).resolve().parents)]
  try:
    file = reader.read_file(path, search_paths=folders)
  except reader.GinError as error:
    return FileReport(path=path, faults=(str(error),)), []
  modules = _Modules(folders)
  report = lint_lib.lint([file], load=modules.load)
  faults = [
      each
      for each in report.findings
      if not each.is_hint and each.kind not in _ADDED_BY_OTHERS
  ]
  needs = [each for each in report.findings if each.kind in _ADDED_BY_OTHERS]
  texts = [str(each) for each in faults if not modules.is_of_task(each)]
  texts += _catch_alls(report)
  parts = [_real(part.path) for part in file.walk() if part is not file]
  return (
      FileReport(
          path=path,
          faults=tuple(texts),
          needs=tuple(each.what for each in needs),
          own_modules=tuple(modules.own),
      ),
      parts,
  )


def _real(path: str) -> str:
  return str(pathlib.Path(path).resolve())


def _catch_alls(report: findings.Report) -> list[str]:
  """Bindings that only a `**kwargs` would take, so that nobody reads them."""
  return [
      f'{seen.binding.place}\n  {seen.binding.name!r} declares no parameter '
      f'{seen.binding.parameter!r}, it passes on what it is given\n'
      '  expected: a parameter that it declares.\n'
      '  do: look up what reads it.'
      for seen in report.seen
      if seen.target is not None
      and not _declares(seen.target.signature_source, seen.binding.parameter)
  ]


def _declares(source: Any, parameter: str) -> bool:
  known = signatures.parameters_of(source)
  if known is None:
    return False
  if parameter in known:
    return True
  # A class may hand the rest to the one it is derived from.
  bases = source.__mro__[1:] if inspect.isclass(source) else ()
  return any(parameter in (signatures.parameters_of(b) or ()) for b in bases)


class _Modules:
  """Imports what is T5X's, ours or installed; refuses a recipe's own code."""

  def __init__(self, folders: Sequence[str]):
    self._folders = folders
    self.own: list[str] = []

  def load(self, name: str) -> types.ModuleType:
    """The module `name`; ImportError where it is absent or a recipe's own."""
    if name == '__main__':
      return _main_module()
    root = name.partition('.')[0]
    if root != 't5x' and not _is_installed(root):
      if self._is_beside(name):
        self.own.append(name)
        raise OwnModuleError(f'{name} is code of the recipe', name=name)
      raise ModuleNotFoundError(f'{root} is not installed', name=name)
    return importlib.import_module(name)

  def is_of_task(self, finding: findings.Finding) -> bool:
    """Whether it is about a module of the recipe that was left unread."""
    return finding.kind == 'import' and any(
        f'{name!r}' in finding.what for name in self.own
    )

  def _is_beside(self, name: str) -> bool:
    places = [pathlib.Path(f, *name.split('.')) for f in self._folders]
    return any(p.is_dir() or p.with_suffix('.py').is_file() for p in places)


def _is_installed(root: str) -> bool:
  """Whether it is t5wild, of Python, or in a folder of installed packages."""
  if root == 't5wild' or root in sys.stdlib_module_names:
    return True
  spec = importlib.util.find_spec(root)
  if spec is None:
    return False
  places = [spec.origin, *(spec.submodule_search_locations or ())]
  installed = {sysconfig.get_path('purelib'), sysconfig.get_path('platlib')}
  return any(
      place and pathlib.Path(place).is_relative_to(folder)
      for place in places
      for folder in installed
  )


def _main_module() -> types.ModuleType:
  """What `import __main__` gives under any of the binaries."""
  module = types.ModuleType('__main__')
  for binary in _BINARIES:
    for name, place in t5x_alias.aliases(binary).items():
      source, _, attribute = place.partition(':')
      setattr(module, name, getattr(importlib.import_module(source), attribute))
  return module
