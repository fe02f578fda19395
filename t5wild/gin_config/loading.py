# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Hands checked gin files to gin, so that it understands them as we did.

gin looks for included files by its own rules, calls an object by the first name
it hears, and knows in a file only that file's imports. Where it would overlook
what the lint has found, it is given the import that says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses

import gin

from t5wild.gin_config import findings
from t5wild.gin_config import names
from t5wild.gin_config import reader


def load(
    files: Iterable[reader.GinFile],
    report: findings.Report,
    skip_unknown: bool | Sequence[str] = False,
) -> None:
  """Gives gin `files`, which `report` found to be without errors."""
  _register_methods(list(report.targets.values()))
  for file in files:
    _load(file, report.names_of, skip_unknown)


def _register_methods(targets: Sequence[names.Target]) -> None:
  """Tells gin of configured methods before it hears of their classes.

  Told later it registers a class anew, by the import of the file that
  configures the method; where that is another than the first file's, it loses
  what was bound before.
  """
  first: dict[int, names.Target] = {}
  for target in targets:
    first.setdefault(id(target.value), target)
  for target in targets:
    if target.owner is None or target.statement is None:
      continue
    owner_path, _, method = target.path.rpartition('.')
    owner = first.get(id(target.owner))
    if owner is None or owner.statement is None:
      owner = dataclasses.replace(target, path=owner_path)
    context = gin.config.ParseContext()
    for statement in (names.DYNAMIC_REGISTRATION, owner.statement):
      context.process_import(statement)
    context.get_configurable(f'{owner.path}.{method}')


def _load(
    file: reader.GinFile,
    names_of: Mapping[str, Mapping[str, names.Target]],
    skip_unknown: bool | Sequence[str],
) -> None:
  """Parses each stretch between two includes on its own.

  The rest is blanked, so that line numbers stay.
  """
  added = _missing_imports(file, names_of.get(file.path, {}))
  start = 1
  for stop, included in _stretches(file):
    text = _only_lines(file, start, stop, added)
    gin.parse_config(reader.named_text(text, name=file.path), skip_unknown)
    if included is not None:
      _load(included, names_of, skip_unknown)
    start = stop + 1


def _stretches(
    file: reader.GinFile,
) -> Iterator[tuple[int, reader.GinFile | None]]:
  """The line of each include with its file, then the end of `file`."""
  for statement in file.statements:
    if isinstance(statement, reader.Include):
      yield statement.place.line, statement.file
  yield len(file.text.splitlines()) + 1, None


def _only_lines(
    file: reader.GinFile, start: int, stop: int, added: Sequence[str]
) -> str:
  """Text of lines `start` to before `stop`, after the imports above them."""
  imports = {
      statement.place.line: statement.statement
      for statement in file.statements
      if isinstance(statement, reader.Import) and statement.place.line < stop
  }
  lines = []
  is_dynamic = _is_dynamic(file)
  if added and not is_dynamic:
    lines += [_text(names.DYNAMIC_REGISTRATION), *added]
  for number, line in enumerate(file.text.splitlines(keepends=True), 1):
    keep = number in imports or start <= number < stop
    lines.append(line if keep else '\n')
    if is_dynamic and number in imports and _is_switch(imports[number]):
      lines += added
  return ''.join(lines)


def _missing_imports(
    file: reader.GinFile, known: Mapping[str, names.Target]
) -> list[str]:
  """Import lines of names that are known from other files only.

  None for a file that names everything by gin's registry and must go on so:
  one that shortens names, or has something that no import has brought.
  """
  statements: dict[str, object] = {}
  imported = {
      statement.statement.bound_name()
      for statement in file.statements
      if isinstance(statement, reader.Import)
  }
  is_dynamic = _is_dynamic(file)
  for name, target in known.items():
    symbol = name.partition('.')[0]
    if is_dynamic and (symbol in imported or symbol == 'gin'):
      continue
    if target.statement is None or target.path != name:
      return []
    if statements.setdefault(symbol, target.statement) != target.statement:
      return []
  return [_text(statement) for statement in statements.values()]


def _is_dynamic(file: reader.GinFile) -> bool:
  return any(
      isinstance(statement, reader.Import) and _is_switch(statement.statement)
      for statement in file.statements
  )


def _is_switch(statement: object) -> bool:
  return statement.module == names.DYNAMIC_REGISTRATION.module


def _text(statement: object) -> str:
  return f'{statement.format()}\n'
