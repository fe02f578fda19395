# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a check says of files written for T5X: as text, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
import dataclasses
from typing import Any

KINDS = {'gin': 'gin', 'python': 'Python', 'other': 'other'}
_UNCHANGED = 'runs unchanged'
_INSTALL = 'runs once installed'
_OWN = 'rests on code of its own'
_NOT = 'does not run'
_FOREIGN = 'of another framework'
_EXPECTED = 'a gin file that names code of T5X or of t5wild, or Python code.'
VERDICTS = (_UNCHANGED, _INSTALL, _OWN, _NOT, _FOREIGN)
OWN_CODE = 'own code'  # kind of a fault


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fault:
  """One thing that keeps a file from running.

  Attributes:
    kind: what it is about: `import`, `name`, `parameter`, `framework`,
      OWN_CODE, ...
    file: where it stands; an included file, perhaps.
    line: its line, from 1; None where it is about the file.
    text: that line.
    what: what is wrong.
    expected: what was expected.
    do: the mend.
    package: the installable package that is missing, and nothing else; or None.
    follows_from: line of the import whose fault this one comes from; or None.
  """

  kind: str
  file: str
  line: int | None
  text: str = ''
  what: str
  expected: str
  do: str
  package: str | None = None
  follows_from: int | None = None

  def __str__(self) -> str:
    """The whole, as compilers write it."""
    number = '' if self.line is None else f':{self.line}'
    text = f' {self.text}' if self.text else ''
    return (
        f'{self.file}{number}:{text}\n  {self.what}\n'
        f'  expected: {self.expected}\n  do: {self.do}'
    )


@dataclasses.dataclass(frozen=True, order=True)
class Name:
  """A name of T5X's at a line of Python, and what it is in t5wild."""

  line: int
  t5x: str
  t5wild: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class FileReport:
  """What became of one file.

  Attributes:
    path: the file.
    kind: `gin`, `python`, or `other` for what only other frameworks read.
    faults: what keeps it from running, each with its line.
    needs: macros that another file or a flag must set.
    own_modules: imports of modules beside the recipe, which were not read.
    includers: files of the same check that include it and run; a part of
      theirs need not stand alone.
    after: files of T5X's whose names a part goes by that imports nothing; it
      is to be given after them or their like.
    names: of a Python file, the names of T5X's that t5wild has.
  """

  path: str
  kind: str = 'gin'
  faults: tuple[Fault, ...] = ()
  needs: tuple[str, ...] = ()
  own_modules: tuple[str, ...] = ()
  includers: tuple[str, ...] = ()
  after: tuple[str, ...] = ()
  names: tuple[Name, ...] = ()

  @property
  def runs_unchanged(self) -> bool:
    """Whether it runs as it stands, or as the part of others that do."""
    return not self.faults or bool(self.includers)

  @property
  def missing_packages(self) -> tuple[str, ...]:
    """Packages of other people that it imports and that are not installed."""
    return tuple(sorted({f.package for f in self.faults if f.package}))

  @property
  def verdict(self) -> str:
    """One of VERDICTS."""
    if self.runs_unchanged:
      return _UNCHANGED
    if any(fault.kind == 'framework' for fault in self.faults):
      return _FOREIGN
    if all(fault.package for fault in self.faults):
      return _INSTALL
    unread = (f.package or f.kind == OWN_CODE for f in self.faults)
    return _OWN if all(unread) else _NOT


def unreadable(path: str, kind: str, error: Exception) -> FileReport:
  """The report of a file that cannot be read."""
  is_syntax = isinstance(error, SyntaxError)
  fault = Fault(
      kind='unreadable',
      file=path,
      line=error.lineno if is_syntax else None,
      text=((error.text or '') if is_syntax else '').strip(),
      what=f'this cannot be read as {KINDS[kind]}: '
      f'{error.msg if is_syntax else error}',
      expected=_EXPECTED,
      do='mend it, or leave it out.',
  )
  return FileReport(path=path, kind=kind, faults=(fault,))


def foreign(path: str, what: str) -> Fault:
  """The fault of a file that is another framework's."""
  return Fault(
      kind='framework',
      file=path,
      line=None,
      what=f'this is {what}, no recipe of T5X',
      expected=_EXPECTED,
      do='write it anew as a recipe: docs/recipes.md shows how.',
  )


def summary(reports: Sequence[FileReport]) -> dict[str, dict[str, int]]:
  """Kind of file -> verdict -> number of files, and `files` for all."""
  counts: dict[str, dict[str, int]] = {}
  for report in reports:
    of_kind = counts.setdefault(
        report.kind, {'files': 0, **dict.fromkeys(VERDICTS, 0)}
    )
    of_kind['files'] += 1
    of_kind[report.verdict] += 1
  return counts


def as_json(reports: Sequence[FileReport]) -> dict[str, Any]:
  """Everything, as plain values."""
  files = [
      {
          **dataclasses.asdict(report),
          'verdict': report.verdict,
          'missing_packages': list(report.missing_packages),
      }
      for report in reports
  ]
  return {'files': files, 'summary': summary(reports)}


def text_of(report: FileReport, *, is_brief: bool) -> str:
  """The verdict on one file; what is missing and found, unless brief."""
  verdict = report.verdict
  if verdict == _INSTALL:
    verdict = f'runs once installed: {", ".join(report.missing_packages)}'
  if report.includers and report.faults:
    verdict += f', as a part of {report.includers[0]}'
  if report.after and report.runs_unchanged:
    verdict += f', as a part given after {" and ".join(report.after)}'
  lines = [f'{report.path}: {verdict}']
  if not is_brief:
    lines += _indented(_details(report))
  return '\n'.join(lines)


def summary_text(reports: Sequence[FileReport]) -> str:
  """The counts, one line for each kind of file."""
  return '\n'.join(
      f'{KINDS[kind]} files: {of_kind[_UNCHANGED]} of {of_kind["files"]} run '
      'unchanged'
      + ''.join(
          f', {of_kind[verdict]} {_of_many(verdict)}'
          for verdict in VERDICTS[1:]
          if of_kind[verdict]
      )
      for kind, of_kind in summary(reports).items()
  )


def _of_many(verdict: str) -> str:
  names = {
      _INSTALL: 'run once packages are installed',
      _OWN: 'rest on code of their own',
      _NOT: 'do not run',
  }
  return names.get(verdict, verdict)


def _details(report: FileReport) -> Iterator[str]:
  yield from () if report.runs_unchanged else _faults(report)
  for name in report.names:
    yield f'line {name.line}: {name.t5x} is {name.t5wild}'
  for module in report.own_modules:
    yield f'not read: {module}, which is code of the recipe'
  if report.needs and report.runs_unchanged:
    yield 'set by another file or a flag: ' + '; '.join(
        ' '.join(need.split()) for need in report.needs
    )


def _faults(report: FileReport) -> Iterator[str]:
  """Each fault, and after an import's the lines that come to nothing by it."""
  lines: dict[tuple[str, int | None], set[int]] = {}
  for fault in report.faults:
    if fault.follows_from is not None:
      needed_at = lines.setdefault((fault.file, fault.follows_from), set())
      needed_at.add(fault.line)
  for fault in report.faults:
    if fault.follows_from is not None:
      continue
    yield str(fault)
    needed_at = lines.get((fault.file, fault.line))
    if needed_at and fault.kind == 'import':
      yield f'  needed at lines {", ".join(map(str, sorted(needed_at)))}'


def _indented(texts: Iterator[str]) -> list[str]:
  return [f'  {line}' for text in texts for line in text.splitlines()]
