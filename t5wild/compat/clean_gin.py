# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes a T5X gin file anew in t5wild's words; it binds the same as before.

Imports, names and includes change, the rest of the text stays: comments,
macros, values, order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import io
import tokenize
from typing import Any

from t5wild.compat import t5x_alias
from t5wild.gin_config import findings
from t5wild.gin_config import lint as lint_lib
from t5wild.gin_config import names
from t5wild.gin_config import reader

_SWITCH = 'from __gin__ import dynamic_registration'
_ROOT = 't5x'
_NETWORK = 'network'  # as T5X's and our own files call the network's module
_NETWORKS = ('t5wild.networks.transformer', 't5wild.networks.decoder_only')


class NoCleanFormError(ValueError):
  """A file that cannot be written in our words; the message says why."""


def text_of(
    file: reader.GinFile,
    known: Mapping[str, names.Target],
    includes: Mapping[str, str],
) -> str:
  """The text of `file` in t5wild's words.

  Args:
    file: one gin file.
    known: each name as written there -> what it means.
    includes: path as written there -> the path to write.

  Raises:
    NoCleanFormError: it goes by gin's registry, or has a name without a place.
  """
  words = _Words(file)
  renamed = {name: words.of(target) for name, target in known.items()}
  lines = file.text.splitlines()
  edits = _edits(file, {k: v for k, v in renamed.items() if v and v != k})
  for row, start, end, text in sorted(edits, reverse=True):
    line = lines[row - 1]
    lines[row - 1] = line[:start] + text + line[end:]
  for statement in file.statements:
    if isinstance(statement, reader.Include):
      _rewrite_include(lines, statement.place, includes)
  return '\n'.join(words.with_imports(lines)) + '\n'


def bindings_of(report: findings.Report) -> dict[Any, Any]:
  """What holds in the end, the same for two spellings of one configuration."""
  return {
      key: _plain(
          seen.binding.value,
          report.names_of.get(seen.binding.place.file, {}),
      )
      for key, seen in lint_lib.last_bindings(report.seen).items()
  }


def _plain(value: Any, known: Mapping[str, names.Target]) -> Any:
  if isinstance(value, reader.Reference):
    target = known.get(value.name)
    meaning = value.name if target is None else target.identity
    return '@', value.scopes, meaning, value.is_called
  if isinstance(value, dict):
    return [(_plain(k, known), _plain(v, known)) for k, v in value.items()]
  if isinstance(value, list | tuple):
    return type(value).__name__, [_plain(each, known) for each in value]
  return repr(value)


class _Words:
  """The imports that one file needs in our words, and how it calls things."""

  def __init__(self, file: reader.GinFile):
    self._imports = [s for s in file.statements if isinstance(s, reader.Import)]
    self._is_dynamic = any(
        each.statement.module.startswith('__gin__.') for each in self._imports
    )
    self._dropped = [
        each for each in self._imports
        if each.statement.module.partition('.')[0] == _ROOT
    ]  # fmt: skip
    kept = [each for each in self._imports if each not in self._dropped]
    self._called_network = any(
        each.statement.bound_name() == _NETWORK for each in self._dropped
    ) or not self._dropped
    # Name here -> the module or import it stands for.
    self._bound = {
        each.statement.bound_name(): each.statement.module for each in kept
    }
    self._new: set[str] = {
        f'import {ours}'
        for each in self._dropped
        if (ours := t5x_alias.TABLE.imported_with(each.statement.module))
    }

  def of(self, target: names.Target) -> str | None:
    """The name by which this file is to call `target`; None: as it does."""
    statement = target.statement
    if statement is None:
      if target.path in ('gin.macro', 'gin.singleton', 'macro', 'singleton'):
        return None
      raise NoCleanFormError(
          f"{target.path!r} is known by gin's registry alone, no import has it"
      )
    whole = _whole_name(target)
    if whole[0] != _ROOT:
      self._import_as_it_is(statement)
      return target.path
    module, name, *rest = _split(whole)
    places = t5x_alias.TABLE.aliases(module)
    if name not in places:
      raise NoCleanFormError(f'{target.path!r} has no place in t5wild')
    place, _, new = places[name].partition(':')
    return '.'.join([self._symbol(place), new, *rest])

  def with_imports(self, lines: list[str]) -> list[str]:
    """The lines, with our imports where T5X's were."""
    added = sorted(self._new)
    if added and not self._is_dynamic:
      added = [_SWITCH, *added]
    dropped = {each.place.line for each in self._dropped}
    first = min(dropped, default=0) or _after_head(lines, self._imports)
    written = []
    for number, line in enumerate(lines, 1):
      if number == first:
        written += added if dropped else [*added, ''] if added else []
      if number not in dropped:
        written.append(line)
      elif '#' in line:
        written.append(line[line.index('#') :])
    return written

  def _import_as_it_is(self, statement: Any) -> None:
    bound = statement.bound_name()
    if self._bound.setdefault(bound, statement.module) != statement.module:
      raise NoCleanFormError(f'{bound!r} would mean two modules')
    if all(s.statement.bound_name() != bound for s in self._imports):
      self._new.add(statement.format())

  def _symbol(self, module: str) -> str:
    """What this file calls a module of ours; imports it."""
    parent, _, last = module.rpartition('.')
    symbols = [last, '_'.join(module.split('.')[-2:])]
    if module in _NETWORKS and self._called_network:
      symbols.insert(0, _NETWORK)
    for symbol in symbols:
      if self._bound.setdefault(symbol, module) == module:
        break
    else:
      raise NoCleanFormError(f'every name for {module!r} is taken: {symbols}')
    if all(s.statement.bound_name() != symbol for s in self._kept()):
      line = f'from {parent} import {last}' if parent else f'import {last}'
      self._new.add(line if symbol == last else f'{line} as {symbol}')
    return symbol

  def _kept(self) -> Iterable[reader.Import]:
    return (each for each in self._imports if each not in self._dropped)


def _whole_name(target: names.Target) -> list[str]:
  """Module and attributes of `target`, as the import has them."""
  statement = target.statement
  symbol, *attributes = target.path.split('.')
  if statement.is_from or statement.alias:
    return [*statement.module.split('.'), *attributes]
  return [symbol, *attributes]


def _split(whole: list[str]) -> tuple[str, ...]:
  """A module of T5X's, then the names within it."""
  for end in range(len(whole) - 1, 0, -1):
    module = '.'.join(whole[:end])
    if module in t5x_alias.TABLE.modules():
      return (module, *whole[end:])
  raise NoCleanFormError(f'{".".join(whole)!r} has no place in t5wild')


def _after_head(lines: list[str], imports: list[reader.Import]) -> int:
  """The line before which imports go in a file that has none of T5X's."""
  if imports:
    return imports[-1].place.line + 1
  heads = (
      number
      for number, line in enumerate(lines, 1)
      if line.strip() and not line.startswith('#')
  )
  return next(heads, 1)


def _rewrite_include(
    lines: list[str], place: reader.Place, includes: Mapping[str, str]
) -> None:
  line = lines[place.line - 1]
  for old, new in includes.items():
    for quote in '\'"':
      line = line.replace(f'{quote}{old}{quote}', f'{quote}{new}{quote}')
  lines[place.line - 1] = line


def _edits(
    file: reader.GinFile, renamed: Mapping[str, str]
) -> list[tuple[int, int, int, str]]:
  """Line, first and last column and new text of each name to change."""
  skipped = {
      each.place.line
      for each in file.statements
      if isinstance(each, reader.Import | reader.Include)
  }
  tokens = list(tokenize.generate_tokens(io.StringIO(file.text).readline))
  edits = []
  position = 0
  while position < len(tokens):
    end = position + 1
    if tokens[position].type == tokenize.NAME:
      while (
          tokens[end].string == '.' and tokens[end + 1].type == tokenize.NAME
      ):
        end += 2
      chain = [token.string for token in tokens[position:end:2]]
      row, start = tokens[position].start
      before = tokens[position - 1].string if position else ''
      old = _name_in(
          chain, renamed,
          is_whole=_is_reference(tokens, position) or tokens[end].string == ':',
      )
      if old and row not in skipped and before != '%':
        edits.append((row, start, start + len(old), renamed[old]))
    position = end
  return edits


def _name_in(
    chain: list[str], renamed: Mapping[str, str], *, is_whole: bool
) -> str | None:
  """The name to change that a dotted path is, or starts with.

  On the left of `=` the last part of the path is a parameter.
  """
  name = '.'.join(chain if is_whole else chain[:-1])
  return name if name in renamed else None


def _is_reference(tokens: list[tokenize.TokenInfo], position: int) -> bool:
  """Whether the name there is one of `@name`, `@scope/name`."""
  at = position - 1
  while at > 0 and tokens[at].string == '/':
    at -= 1
    while at > 0 and (
        tokens[at].type == tokenize.NAME or tokens[at].string == '.'
    ):
      at -= 1
  return at >= 0 and tokens[at].string == '@'
