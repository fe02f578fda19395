# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Says of files written for T5X whether they run unchanged, or what they lack.

Each file is read, never run. `gin_code` judges gin files, `python_code` finds
T5X's names in Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
import dataclasses
import importlib
import os
import pathlib
import re

from t5wild.compat import finder
from t5wild.compat import frameworks
from t5wild.compat import gin_code
from t5wild.compat import python_code
from t5wild.compat import verdicts
from t5wild.gin_config import reader
from t5wild.gin_config import signatures

# Of code that Python cannot parse: written for Python 2, or half merged.
_IMPORT_OF_T5X = re.compile(r'^\s*(?:from|import)\s+t5x\b', re.MULTILINE)


def check(
    paths: Sequence[str], *, search_paths: Sequence[str] = ()
) -> list[verdicts.FileReport]:
  """Checks files, or all of T5X's below folders; runs nothing of them.

  Below a folder these are the gin files, and the Python files that import t5x.

  Args:
    paths: files and folders.
    search_paths: folders of included files, besides those above each file.
  """
  checked = []
  with finder.silence():
    for path, is_named in _files(paths):
      if path.endswith('.py'):
        report = _check_python(path, is_named=is_named)
        checked += [(report, [])] if report else []
      elif frameworks.is_never_gin(path):
        checked.append((_of_another_format(path), []))
      else:
        checked.append(gin_code.check(path, search_paths))
  includers: dict[str, list[str]] = {}
  for report, parts in checked:
    for part in () if report.faults else parts:
      includers.setdefault(part, []).append(report.path)
  return [
      dataclasses.replace(
          report, includers=tuple(includers.get(gin_code.real(report.path), ()))
      )
      for report, _ in checked
  ]


def _files(paths: Iterable[str]) -> list[tuple[str, bool]]:
  """Each file once, and whether it was named itself."""
  found: dict[str, bool] = {}
  for path in map(pathlib.Path, paths):
    if path.is_dir():
      below = [*path.rglob('*.gin'), *path.rglob('*.py')]
      # os.path: pathlib's raises where a folder may be listed, not entered.
      for each in sorted(str(p) for p in below if os.path.isfile(p)):
        found.setdefault(each, False)
    else:
      found[str(path)] = True
  return list(found.items())


def _check_python(
    path: str, *, is_named: bool
) -> verdicts.FileReport | None:
  """The report of a Python file; None where it is found and not of T5X."""
  text = ''
  try:
    text = pathlib.Path(path).read_text(encoding='utf-8')
    found = python_code.find(path, text)
  except (OSError, UnicodeDecodeError, SyntaxError) as error:
    if is_named or _IMPORT_OF_T5X.search(text):
      return verdicts.unreadable(path, 'python', error)
    return None
  if not (found.is_of_t5x or is_named):
    return None
  lines = text.splitlines()
  faults = [*found.faults]
  for call in found.calls:
    faults += _unknown_keywords(path, call, lines)
  return verdicts.FileReport(
      path=path,
      kind='python',
      faults=tuple(sorted(faults, key=lambda each: each.line)),
      names=found.names,
  )


def _unknown_keywords(
    path: str, call: python_code.Call, lines: Sequence[str]
) -> list[verdicts.Fault]:
  """Keywords of a call that our object does not take."""
  source, _, name = call.place.partition(':')
  if not call.keywords or not source.startswith('t5wild.'):
    return []
  target = getattr(importlib.import_module(source), name)
  if not callable(target):
    return []
  known = list(signatures.parameters_of(target) or ())
  return [
      verdicts.Fault(
          kind='parameter',
          file=path,
          line=call.line,
          text=lines[call.line - 1].strip(),
          what=f'{call.name} has no parameter {keyword!r}'
          + reader.did_you_mean(keyword, known),
          expected=f'one of {", ".join(known) or "no parameter at all"}.',
          do='mend the name, or leave the argument out.',
      )
      for keyword in call.keywords
      if not signatures.accepts(target, keyword)
  ]


def _of_another_format(path: str) -> verdicts.FileReport:
  try:
    text = pathlib.Path(path).read_text(encoding='utf-8')
  except (OSError, UnicodeDecodeError) as error:
    return verdicts.unreadable(path, 'other', error)
  framework = frameworks.of_text(path, text) or 'another framework'
  ending = os.path.splitext(path)[1]
  return verdicts.FileReport(
      path=path,
      kind='other',
      faults=(verdicts.foreign(path, f'a {ending} file of {framework}'),),
  )
