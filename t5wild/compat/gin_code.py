# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Says of a gin file whether it runs unchanged, or what it lacks.

Its imports are looked up among T5X's names, our own and what is installed;
modules beside the recipe are not imported. Every binding must then name a
parameter that the real object declares itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
import dataclasses
import inspect
import pathlib
import re
from typing import Any

from t5wild.compat import frameworks
from t5wild.compat import parts as parts_lib
from t5wild.compat import recipe_modules
from t5wild.compat import verdicts
from t5wild.gin_config import findings
from t5wild.gin_config import reader
from t5wild.gin_config import signatures

# What another file or flag is to add is no fault of this one.
_ADDED_BY_OTHERS = ('macro', 'required')
_PLACE = re.compile(r'(?P<file>.*?):(?P<line>[0-9]+): (?P<text>.*)')
_UNKNOWN = re.compile(r"unknown name '(?P<symbol>\w+)")
# What the lint says where a file goes by gin's registry.
_UNREGISTERED = 'is registered'


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
  included = [real(part.path) for part in file.walk() if part is not file]
  foreign = _framework(file)
  if foreign is not None:
    return verdicts.FileReport(path=path, faults=(foreign,)), included
  modules = recipe_modules.Modules(folders)
  whole = parts_lib.read(file, modules.load)
  report = whole.report
  found = [
      each
      for each in report.findings
      if not each.is_hint
      and each.kind not in _ADDED_BY_OTHERS
      and not modules.is_of_task(each)
  ]
  faults = [
      *_nameless(file, report), *_faults(found, file, modules),
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
          after=whole.after,
      ),
      included,
  )


def read(
    path: str, search_paths: Sequence[str] = ()
) -> tuple[reader.GinFile, findings.Report]:
  """One gin file that runs, and what its names mean."""
  folders = [*search_paths, *map(str, pathlib.Path(path).resolve().parents)]
  file = reader.read_file(path, search_paths=folders)
  modules = recipe_modules.Modules(folders)
  return file, parts_lib.read(file, modules.load).report


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


def _framework(file: reader.GinFile) -> verdicts.Fault | None:
  """The fault of a gin file that is another framework's, by its imports."""
  known = frameworks.of_modules(
      each.statement.module for each in parts_lib.imports(file)
  )
  if known is None:
    return None
  framework, module = known
  return verdicts.foreign(
      file.path, f'a gin file of {framework} (it imports {module!r})'
  )


def _nameless(
    file: reader.GinFile, report: findings.Report
) -> Iterator[verdicts.Fault]:
  """Says of a file without imports, whose names nobody knows, what it is."""
  if not parts_lib.is_nameless(file, report):
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
    found: Sequence[findings.Finding],
    file: reader.GinFile,
    modules: recipe_modules.Modules,
) -> Iterator[verdicts.Fault]:
  """What the lint found, and which of it comes from an import's fault."""
  failed = {each.place for each in found if each.kind == 'import'}
  lost = {
      (each.place.file, each.statement.bound_name()): each.place.line
      for each in parts_lib.imports(file)
      if each.place in failed
  }
  own = {
      each.statement.bound_name(): each.statement.module
      for each in parts_lib.imports(file)
      if each.statement.module in modules.own
  }
  for each in found:
    place = each.place
    has_place = isinstance(place, reader.Place)
    unknown = _UNKNOWN.match(each.what) if has_place else None
    symbol = unknown['symbol'] if unknown else None
    comes_from = lost.get((place.file, symbol)) if has_place else None
    package = modules.package_missed_by(each)
    fault = verdicts.Fault(
        kind=each.kind,
        file=place.file if has_place else file.path,
        line=place.line if has_place else None,
        text=place.text.strip() if has_place else str(place),
        what=each.what,
        expected=each.expected,
        do=f'install the package that has {package!r}.' if package else each.do,
        package=package,
        follows_from=comes_from,
    )
    if symbol in own and comes_from is None:
      yield _of_own_code(fault, own[symbol])
    elif unknown and own and _UNREGISTERED in each.what:
      yield _of_own_code(fault, ' or '.join(own.values()))
    else:
      yield fault


def _of_own_code(fault: verdicts.Fault, module: str) -> verdicts.Fault:
  """The fault of a name that code of the recipe would answer for."""
  return dataclasses.replace(
      fault,
      kind=verdicts.OWN_CODE,
      what=f'this is of {module}, code of the recipe, which is not read',
      expected='names of T5X, of t5wild or of installed packages.',
      do='try it: code that keeps to T5X\'s interfaces runs, see "Your own '
      'Python" in docs/migrating_from_t5x.md.',
  )


def _catch_alls(report: findings.Report) -> Iterator[verdicts.Fault]:
  """Bindings that only a `**kwargs` would take, so that nobody reads them."""
  for seen in report.seen:
    binding = seen.binding
    source = seen.target and seen.target.signature_source
    if (
        source is None
        or _declares(source, binding.parameter)
        or not signatures.accepts(source, binding.parameter)  # found already
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
