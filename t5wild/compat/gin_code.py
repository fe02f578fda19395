# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Says of a gin file whether it runs unchanged, or what it lacks.

Its imports are looked up among T5X's names, our own and what is installed;
modules beside the recipe are not imported. Every binding must then name a
parameter that the real object declares itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
import importlib
import inspect
import pathlib
import re
import site
import sys
import sysconfig
import types
from typing import Any

from t5wild.compat import frameworks
from t5wild.compat import t5x_alias
from t5wild.compat import verdicts
from t5wild.gin_config import findings
from t5wild.gin_config import lint as lint_lib
from t5wild.gin_config import module_search
from t5wild.gin_config import reader
from t5wild.gin_config import signatures

# What another file or flag is to add is no fault of this one.
_ADDED_BY_OTHERS = ('macro', 'required')
# What recipes reach as `__main__`, under one binary or another.
_BINARIES = ('t5x.train', 't5x.eval', 't5x.infer', 't5x.precompile')
_PLACE = re.compile(r'(?P<file>.*?):(?P<line>[0-9]+): (?P<text>.*)')
_UNKNOWN = re.compile(r"unknown name '(?P<symbol>\w+)")
# What a package raises that is installed beside versions it does not know.
_BROKEN = (
    AttributeError, LookupError, OSError, RuntimeError, SyntaxError, TypeError,
    ValueError,
)  # fmt: skip


class OwnModuleError(ImportError):
  """A module that lies beside the recipe: it is not run by a check."""


def check(
    path: str, search_paths: Sequence[str] = ()
) -> tuple[verdicts.FileReport, list[str]]:
  """The report of one gin file, and the real paths of what it includes."""
  folders = [*search_paths, *map(str, pathlib.Path(path).resolve().parents)]
  try:
    file = reader.read_file(path, search_paths=folders)
  except reader.GinError as error:
    return verdicts.FileReport(path=path, faults=(_refused(path, error),)), []
  except (OSError, UnicodeDecodeError, RecursionError) as error:
    return verdicts.unreadable(path, 'gin', error), []
  parts = [real(part.path) for part in file.walk() if part is not file]
  foreign = _framework(file)
  if foreign is not None:
    return verdicts.FileReport(path=path, faults=(foreign,)), parts
  modules = _Modules(folders)
  report = lint_lib.lint([file], load=modules.load)
  found = [
      each
      for each in report.findings
      if not each.is_hint
      and each.kind not in _ADDED_BY_OTHERS
      and not modules.is_of_task(each)
  ]
  faults = [
      *_nameless(file, found), *_faults(found, file, modules),
      *_catch_alls(report),
  ]  # fmt: skip
  return (
      verdicts.FileReport(
          path=path,
          faults=tuple(dict.fromkeys(faults)),
          needs=tuple(
              each.what
              for each in report.findings
              if each.kind in _ADDED_BY_OTHERS
          ),
          own_modules=tuple(dict.fromkeys(modules.own)),
      ),
      parts,
  )


def read(
    path: str, search_paths: Sequence[str] = ()
) -> tuple[reader.GinFile, findings.Report]:
  """One gin file that runs, and what its names mean."""
  folders = [*search_paths, *map(str, pathlib.Path(path).resolve().parents)]
  file = reader.read_file(path, search_paths=folders)
  return file, lint_lib.lint([file], load=_Modules(folders).load)


def real(path: str) -> str:
  """The path by which two names of one file are known to be one."""
  return str(pathlib.Path(path).resolve())


def _refused(path: str, error: reader.GinError) -> verdicts.Fault:
  """The fault of what the reader refuses; perhaps it is no gin at all."""
  if pathlib.Path(path).is_file():
    text = pathlib.Path(path).read_text(encoding='utf-8', errors='replace')
    framework = frameworks.of_text(path, text)
    if framework:
      return verdicts.foreign(path, f'a file of {framework}')
  what, _, rest = str(error).partition('\n  expected: ')
  expected, _, do = rest.partition('\n  do: ')
  place = _PLACE.match(what)
  if place is None:
    return verdicts.Fault(
        kind='unreadable', file=path, line=None,
        what=what, expected=expected, do=do,
    )  # fmt: skip
  return verdicts.Fault(
      kind='unreadable',
      file=place['file'],
      line=int(place['line']),
      text=place['text'],
      what=what[place.end() :].strip(),
      expected=expected,
      do=do,
  )


def _imports(file: reader.GinFile) -> Iterator[reader.Import]:
  """The imports of a file, and of those it includes."""
  for part in file.walk():
    for statement in part.statements:
      if isinstance(statement, reader.Import):
        yield statement


def _framework(file: reader.GinFile) -> verdicts.Fault | None:
  """The fault of a gin file that is another framework's, by its imports."""
  known = frameworks.of_modules(
      each.statement.module for each in _imports(file)
  )
  if known is None:
    return None
  framework, module = known
  return verdicts.foreign(
      file.path, f'a gin file of {framework} (it imports {module!r})'
  )


def _nameless(
    file: reader.GinFile, found: Sequence[findings.Finding]
) -> Iterator[verdicts.Fault]:
  """Says of a file without imports, whose names nobody knows, what it is."""
  if any(_imports(file)) or all(each.kind != 'name' for each in found):
    return
  yield verdicts.Fault(
      kind='part',
      file=file.path,
      line=None,
      what='this imports nothing, so nobody knows what its names are: a part '
      'of a recipe, or a file of another framework',
      expected='imports (`from t5x import utils`), or to be included by a '
      'recipe that has them.',
      do='name the folder of both, so that they are checked together.',
  )


def _faults(
    found: Sequence[findings.Finding], file: reader.GinFile, modules: _Modules
) -> Iterator[verdicts.Fault]:
  """What the lint found, and which of it comes from an import's fault."""
  failed = {each.place for each in found if each.kind == 'import'}
  lost = {
      (each.place.file, each.statement.bound_name()): each.place.line
      for each in _imports(file)
      if each.place in failed
  }
  for each in found:
    place = each.place
    has_place = isinstance(place, reader.Place)
    package = modules.package_missed_by(each)
    unknown = _UNKNOWN.match(each.what) if has_place else None
    yield verdicts.Fault(
        kind=each.kind,
        file=place.file if has_place else file.path,
        line=place.line if has_place else None,
        text=place.text.strip() if has_place else str(place),
        what=each.what,
        expected=each.expected,
        do=f'install the package that has {package!r}.' if package else each.do,
        package=package,
        follows_from=lost.get((place.file, unknown['symbol']))
        if unknown
        else None,
    )


def _catch_alls(report: findings.Report) -> Iterator[verdicts.Fault]:
  """Bindings that only a `**kwargs` would take, so that nobody reads them."""
  for seen in report.seen:
    binding = seen.binding
    if seen.target is None or _declares(
        seen.target.signature_source, binding.parameter
    ):
      continue
    yield verdicts.Fault(
        kind='parameter',
        file=binding.place.file,
        line=binding.place.line,
        text=binding.place.text.strip(),
        what=f'{binding.name!r} declares no parameter {binding.parameter!r}, '
        'it passes on what it is given',
        expected='a parameter that it declares.',
        do='look up what reads it.',
    )


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
    self.missing: dict[str, str] = {}  # module -> the package it lacks

  def load(self, name: str) -> types.ModuleType:
    """The module `name`; ImportError where it is absent or a recipe's own."""
    if name == '__main__':
      return _main_module()
    root = name.partition('.')[0]
    if root != 't5x' and not _is_installed(root):
      if self._is_beside(name) or module_search.find(name):
        self.own.append(name)
        raise OwnModuleError(f'{name} is code of the recipe', name=name)
      self.missing[name] = root
      raise ModuleNotFoundError(f'{root} is not installed', name=name)
    try:
      return importlib.import_module(name)
    except ImportError as error:
      lacks = (getattr(error.__cause__ or error, 'name', '') or '').split('.')
      if lacks[0] not in ('', 't5x') and not _is_installed(lacks[0]):
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

  def _is_beside(self, name: str) -> bool:
    places = [pathlib.Path(f, *name.split('.')) for f in self._folders]
    return any(p.is_dir() or p.with_suffix('.py').is_file() for p in places)


def _is_installed(root: str) -> bool:
  """Whether it is t5wild, of Python, or in a folder of installed packages."""
  if root == 't5wild' or root in sys.stdlib_module_names:
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
  module = types.ModuleType('__main__')
  for binary in _BINARIES:
    for name, place in t5x_alias.aliases(binary).items():
      source, _, attribute = place.partition(':')
      setattr(module, name, getattr(importlib.import_module(source), attribute))
  return module
