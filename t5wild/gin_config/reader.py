# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Finds gin files and reads them into statements that know file and line.

Nothing here touches gin's own configuration: `lint` judges the statements,
`gin_utils` hands the same files to gin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import difflib
import os
import pathlib
import tokenize
from typing import Any

from gin import config_parser

from t5wild.gin_config import folder_names
from t5wild.gin_config import module_search
from t5wild.gin_config import texts

COMMAND_LINE = 'command line'
_SOURCES: list[Callable[[str], str | None]] = []
_PATHS_OF_SOURCES: list[Callable[[], Sequence[str]]] = []


class GinError(ValueError):
  """A configuration that is refused; the message says where and what to do."""


@dataclasses.dataclass(frozen=True)
class Reference:
  """`@scopes/name`, with `()` after it when `is_called`."""

  scopes: tuple[str, ...]
  name: str
  is_called: bool


@dataclasses.dataclass(frozen=True)
class Macro:
  """`%name`."""

  name: str


@dataclasses.dataclass(frozen=True)
class Place:
  """File, line number and the text of that line."""

  file: str
  line: int
  text: str

  def __str__(self) -> str:
    """As compilers write it: `file:line: text`."""
    has_number = self.line and self.file != COMMAND_LINE
    number = f':{self.line}' if has_number else ''
    return f'{self.file}{number}: {self.text.strip()}'


@dataclasses.dataclass(frozen=True)
class Binding:
  """`scope/name.parameter = value`; a macro has an empty `parameter`."""

  scope: str
  name: str
  parameter: str
  value: Any
  place: Place

  @property
  def is_macro(self) -> bool:
    """Whether this defines a macro (`NAME = value`)."""
    return not self.parameter or self.name in ('macro', 'gin.macro')

  @property
  def macro_name(self) -> str:
    """Name of the macro that this defines, scopes included."""
    if self.parameter:
      return self.scope
    return f'{self.scope}/{self.name}' if self.scope else self.name

  @property
  def key(self) -> str:
    """The left-hand side, as written."""
    scope = f'{self.scope}/' if self.scope else ''
    parameter = f'.{self.parameter}' if self.parameter else ''
    return f'{scope}{self.name}{parameter}'


@dataclasses.dataclass(frozen=True)
class Block:
  """`scope/name:`, the head of an indented group of bindings."""

  scope: str
  name: str
  place: Place


@dataclasses.dataclass(frozen=True)
class Import:
  """`import a.b` or `from a import b`, maybe `as c`."""

  statement: config_parser.ImportStatement
  place: Place


@dataclasses.dataclass(frozen=True)
class Include:
  """`include 'path'`, with the file that it names."""

  file: GinFile
  place: Place


@dataclasses.dataclass(frozen=True)
class GinFile:
  """One gin file: its path, its text and its statements in order."""

  path: str
  text: str
  statements: tuple[Binding | Block | Import | Include, ...]

  @property
  def is_ours(self) -> bool:
    """Whether this is one of t5wild's own recipes."""
    if self.path == COMMAND_LINE:
      return False
    return pathlib.Path(self.path).resolve().is_relative_to(gin_root())

  def walk(self) -> Iterator[GinFile]:
    """This file and every file below it, in the order gin reads them."""
    for statement in self.statements:
      if isinstance(statement, Include):
        yield from statement.file.walk()
    yield self


class _Values(config_parser.ParserDelegate):
  """Turns gin's references and macros into plain values."""

  def configurable_reference(
      self, scoped_configurable_name: str, evaluate: bool
  ) -> Reference:
    *scopes, name = scoped_configurable_name.split('/')
    return Reference(tuple(scopes), name, is_called=evaluate)

  def macro(self, macro_name: str) -> Macro:
    return Macro(macro_name)


def gin_root() -> pathlib.Path:
  """Folder of our own gin files, in a wheel and in a checkout alike."""
  package = pathlib.Path(__file__).resolve().parents[1]
  installed = package / 'gin_files'
  return installed if installed.is_dir() else package.parent / 'gin'


def register_source(
    source: Callable[[str], str | None],
    *,
    paths: Callable[[], Sequence[str]] = tuple,
) -> None:
  """Adds gin files that lie on no disk: path as written -> text or None.

  Sources are asked last, after the working directory, the search paths, our
  own gin files and importable packages. `paths` gives what they have, of which
  the close ones are offered where a path is wrong.
  """
  if source not in _SOURCES:
    _SOURCES.append(source)
  if paths not in _PATHS_OF_SOURCES:
    _PATHS_OF_SOURCES.append(paths)


def find_file(
    path: str, *, search_paths: Sequence[str] = (), place: Place | None = None
) -> str:
  """The real path of gin file `path`, or `path` where a source has its text.

  Looked for in the working directory, then in `search_paths`, then among our
  own gin files, then in importable packages (`my_project/configs/a.gin`).
  """
  if texts.is_remote(path):
    return path
  folders = ['', *search_paths, str(gin_root())]
  if os.path.isabs(path):
    folders = [os.path.dirname(path)]
  for folder in folders:
    candidate = os.path.join(folder, path)
    if os.path.isfile(candidate):
      return candidate
  found = _find_in_packages(path)
  if found is not None:
    return found
  if _text_of_source(path) is not None:
    return path
  raise _no_such_file(path, folders=folders, place=place)


def read_file(
    path: str,
    *,
    search_paths: Sequence[str] = (),
    place: Place | None = None,
    stack: tuple[str, ...] = (),
) -> GinFile:
  """Reads gin file `path` and all that it includes."""
  real = find_file(path, search_paths=search_paths, place=place)
  if real in stack:
    chain = '\n    includes '.join([*stack[stack.index(real) :], real])
    raise GinError(
        f'The gin file {real!r} includes itself:\n    {chain}\n'
        '  expected: includes that end.\n'
        '  do: remove one of these include lines.'
    )
  return _read(
      _read_text(real, place=place), real,
      search_paths=search_paths, stack=(*stack, real),
  )


def read_text(
    text: str, *, search_paths: Sequence[str] = (), name: str = COMMAND_LINE
) -> GinFile:
  """Reads gin `text` (one flag), and the files that it includes."""
  return _read(text, name, search_paths=search_paths, stack=())


def parse_text(text: str, *, name: str) -> list[Any]:
  """gin's own statements of `text`; `name` is the file named in errors."""
  lines = text.splitlines() or ['']
  try:
    parser = config_parser.ConfigParser(_NamedText(text, name), _Values())
    return list(parser)
  except (SyntaxError, tokenize.TokenError, StopIteration) as error:
    line = min(_error_line(error), len(lines))
    raise GinError(
        f'{Place(name, line, lines[line - 1])}\n'
        f'  this is no gin statement: {_error_text(error)}\n'
        '  expected: `name.parameter = value`, `MACRO = value`, `include '
        "'file'`, an import, or `name:` with indented lines below.\n"
        "  do: mend this line; strings need quotes ('text'), and brackets and "
        'quotes must close.'
    ) from None


def is_value(text: str) -> bool:
  """Whether `text` is exactly one gin value (literal, @reference, %macro)."""
  try:
    statements = list(config_parser.ConfigParser(f'x = {text}\n', _Values()))
  except (SyntaxError, tokenize.TokenError, StopIteration):
    return False
  return len(statements) == 1 and not statements[0].arg_name


def did_you_mean(
    name: str, known: Sequence[str], *, cutoff: float = 0.6
) -> str:
  """`; did you mean ...?` when `known` has names close to `name`, else ''."""
  close = difflib.get_close_matches(name, sorted(set(known)), 3, cutoff)
  return f'; did you mean {" or ".join(map(repr, close))}?' if close else ''


class _NamedText:
  """Text with a file name, read line by line: what gin's parser takes."""

  def __init__(self, text: str, name: str):
    self.name = name
    self._lines = iter(text.splitlines(keepends=True))

  def readline(self) -> str:
    return next(self._lines, '')


def named_text(text: str, *, name: str) -> Any:
  """A file-like object for `gin.parse_config` whose errors name `name`."""
  return _NamedText(text, name)


def _read(
    text: str,
    name: str,
    *,
    search_paths: Sequence[str],
    stack: tuple[str, ...],
) -> GinFile:
  statements = []
  for statement in parse_text(text, name=name):
    if isinstance(statement, config_parser.IncludeStatement):
      at = _place(statement.location)
      included = read_file(
          statement.filename, search_paths=search_paths, place=at, stack=stack
      )
      statements.append(Include(included, at))
    else:
      statements.append(_convert(statement))
  return GinFile(name, text, tuple(statements))


def _convert(statement: Any) -> Binding | Block | Import:
  at = _place(statement.location)
  if isinstance(statement, config_parser.ImportStatement):
    return Import(statement, at)
  if isinstance(statement, config_parser.BlockDeclaration):
    return Block(statement.scope, statement.selector, at)
  return Binding(
      statement.scope, statement.selector, statement.arg_name, statement.value,
      at,
  )


def _place(location: config_parser.Location) -> Place:
  text = (location.line_content or '').splitlines() or ['']
  return Place(location.filename or '', location.line_num, text[0])


def _find_in_packages(path: str) -> str | None:
  """A gin file inside an importable package, none of which is imported."""
  *parts, file = pathlib.PurePosixPath(path).parts
  if not parts or not all(part.isidentifier() for part in parts):
    return None
  for folder in module_search.folders('.'.join(parts)):
    candidate = os.path.join(folder, file)
    if os.path.isfile(candidate):
      return candidate
  return None


def _text_of_source(path: str) -> str | None:
  found = (source(path) for source in _SOURCES)
  return next((text for text in found if text is not None), None)


def _read_text(path: str, *, place: Place | None) -> str:
  if not os.path.isfile(path):
    text = _text_of_source(path)
    if text is not None:
      return text
  try:
    return texts.read(path)
  except texts.UnreadableTextError as error:
    where = f'{place}\n  ' if place else ''
    raise GinError(f'{where}{error}') from error


def _no_such_file(
    path: str, *, folders: Sequence[str], place: Place | None
) -> GinError:
  known = [str(p.relative_to(gin_root())) for p in gin_root().rglob('*.gin')]
  known += [each for paths in _PATHS_OF_SOURCES for each in paths()]
  # Beside the file that was asked for: a whole tree may be a whole disk.
  asked = os.path.dirname(path)
  for folder in folders:
    beside = pathlib.Path(folder, asked)
    known += [os.path.join(asked, p.name) for p in beside.glob('*.gin')]
  where = f'{place}\n  ' if place else ''
  return GinError(
      f'{where}there is no gin file {path!r}{did_you_mean(path, known)}\n'
      f'  expected: a file in one of {folder_names.describe(folders)}, or in '
      'an importable package.\n'
      '  do: mend the path, or add its folder with --gin_search_paths=FOLDER.'
  )


def _error_line(error: BaseException) -> int:
  """Line number of a parse error; 1 when it is not known."""
  place = error.args[1] if len(error.args) > 1 else None
  if isinstance(place, config_parser.Location):
    return place.line_num
  if isinstance(error, SyntaxError) and error.lineno:
    return error.lineno
  if isinstance(place, tuple) and place and isinstance(place[0], int):
    return place[0]
  return 1


def _error_text(error: BaseException) -> str:
  if isinstance(error, StopIteration):
    return 'the text ends too early'
  text = str(error.args[0]).splitlines()[0] if error.args else str(error)
  # Python's own words show an object and a line within the value.
  return 'the value is no literal' if text.startswith('malformed') else text
