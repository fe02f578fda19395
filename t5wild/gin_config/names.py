# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Resolves the names of gin files to Python objects, as gin itself would.

A file with `from __gin__ import dynamic_registration` names objects through
its own imports; any other file names what was registered with gin before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
import dataclasses
import importlib
import importlib.util
import inspect
import pkgutil
import sys
import traceback
import types
from typing import Any

import gin
from gin import config_parser

from t5wild.gin_config import reader

# T5X kept these in `utils`; here each has its noun. On the command line the old
# prefix still finds the one object of that name.
_T5X_PREFIXES = ('utils.',)
_OURS = 't5wild'
_OF_IMPORTING = (__file__, importlib.__file__)

DYNAMIC_REGISTRATION = config_parser.ImportStatement(
    module='__gin__.dynamic_registration',
    is_from=True,
    alias=None,
    location=config_parser.Location(None, 0, 0, ''),
)


class UnknownNameError(LookupError):
  """A name that nothing answers to; the message says which part failed."""


@dataclasses.dataclass(frozen=True)
class Target:
  """A function or class that a gin name resolved to.

  `statement` is the import it came by (None: gin's own registry), and `path`
  its name in that file, starting with the imported symbol. `owner` is the class
  of a method.
  """

  value: Callable[..., Any]
  path: str
  statement: config_parser.ImportStatement | None = None
  owner: type | None = None

  @property
  def identity(self) -> int:
    """Equal for two names of one object."""
    return id(_unwrapped(self.value))

  @property
  def signature_source(self) -> Callable[..., Any]:
    """The object whose signature gin binds."""
    return _unwrapped(self.value)

  @property
  def names(self) -> tuple[str, ...]:
    """Every dotted name by which people may call it."""
    source = self.signature_source
    name = getattr(source, '__qualname__', self.path.rsplit('.', 1)[-1])
    defined = f'{getattr(source, "__module__", "")}.{name}'
    return (self.path, defined, self.gin_name)

  @property
  def gin_name(self) -> str:
    """The name that gin registers; any ending of it will do in gin."""
    if self.statement is None:
      return self.path
    _, *attributes = self.path.split('.')
    return '.'.join([self.statement.partial_path(), *attributes])

  @property
  def is_ours(self) -> bool:
    """Whether it is defined in t5wild."""
    module = getattr(self.signature_source, '__module__', None) or ''
    return module.split('.')[0] == 't5wild'


class Symbols:
  """The symbols one gin file sees."""

  def __init__(
      self,
      seen: Mapping[str, Target] | None = None,
      load: Callable[[str], Any] = importlib.import_module,
  ) -> None:
    """Starts without a symbol.

    Args:
      seen: the objects of earlier files.
      load: module name -> module; raises ImportError.
    """
    self._seen = {} if seen is None else seen
    self._load = load
    self.is_dynamic = False
    self.table: dict[
        str, tuple[Any, config_parser.ImportStatement | None]
    ] = {}

  def add(self, statement: config_parser.ImportStatement) -> None:
    """Imports what `statement` names; ImportError says why it cannot."""
    if statement.module.startswith('__gin__.'):
      self.is_dynamic = True
      builtins = types.SimpleNamespace(
          macro=gin.config.macro, singleton=gin.config.singleton
      )
      self.table['gin'] = (builtins, None)
      return
    module = self._import(statement.module)
    if not (statement.is_from or statement.alias):
      module = self._import(statement.module.split('.')[0])
    self.table[statement.bound_name()] = (module, statement)

  def _import(self, name: str) -> Any:
    """The module; ImportError also where its own code raises or ends Python."""
    try:
      return self._load(name)
    except ImportError:
      raise
    except (Exception, SystemExit) as error:
      raise ImportError(_failure(error), name=name) from error

  def find(self, name: str) -> Target:
    """The object called `name`; raises UnknownNameError."""
    if not self.is_dynamic:
      return _by_ending(name, self._seen.values(), _gin_names) or _registered(
          name
      )
    symbol, *attributes = name.split('.')
    if symbol not in self.table:
      inherited = _by_ending(name, self._seen.values(), _gin_names)
      if inherited is not None:
        return inherited
      hint = reader.did_you_mean(symbol, list(self.table))
      raise UnknownNameError(
          f'{symbol!r} is not imported by this file{hint}'
      )
    value, statement = self.table[symbol]
    owner = None
    for position, attribute in enumerate(attributes):
      parent = '.'.join([symbol, *attributes[:position]])
      if not hasattr(value, attribute):
        hint = reader.did_you_mean(attribute, dir(value))
        raise UnknownNameError(f'{parent!r} has no {attribute!r}{hint}')
      owner, value = value, getattr(value, attribute)
    if not callable(value):
      raise UnknownNameError(
          f'{name!r} is a {type(value).__name__}, no function and no class'
      )
    is_method = inspect.isclass(owner) and inspect.isfunction(value)
    return Target(value, name, statement, owner if is_method else None)


class CommandLineNames:
  """What flags may call the objects that the files named.

  A name is looked for among the symbols of all files, then as the ending of a
  full name (`DatasetConfig`, `train.train`), then in gin's registry, then among
  t5wild's own modules, as if a file had `from t5wild import ...`.
  """

  def __init__(self, tables: Iterable[Symbols], targets: Iterable[Target]):
    """Knows the symbols and the objects of all files read so far."""
    self._symbols = Symbols()
    self._symbols.is_dynamic = True
    for table in tables:
      self._symbols.table.update(table.table)
    self._targets = list(targets)

  def find(self, name: str) -> Target:
    """The object called `name`; raises UnknownNameError."""
    try:
      return self._symbols.find(name)
    except UnknownNameError as error:
      first = error
    for attempt in _spellings(name):
      found = _by_ending(attempt, self._targets, _all_names)
      if found is not None:
        return found
    try:
      return _registered(name)
    except UnknownNameError:
      pass
    module, dot, _ = name.partition('.')
    if dot and importlib.util.find_spec(f'{_OURS}.{module}'):
      return _in_our_module(module).find(name)
    known = [each for target in self._targets for each in target.names]
    hint = reader.did_you_mean(name, known)
    if not hint:
      raise first
    raise UnknownNameError(f'nothing is called {name!r}{hint}')


def _in_our_module(module: str) -> Symbols:
  """What a file sees that imports one module of t5wild."""
  symbols = Symbols()
  symbols.is_dynamic = True
  symbols.add(
      config_parser.ImportStatement(
          module=f'{_OURS}.{module}',
          is_from=True,
          alias=None,
          location=config_parser.Location(reader.COMMAND_LINE, 0, 0, ''),
      )
  )
  return symbols


def import_problem(
    statement: config_parser.ImportStatement, error: ImportError
) -> str:
  """What is wrong with an import, with close names of modules."""
  missing = getattr(error, 'name', None) or statement.module
  hint = ''
  parent, _, last = statement.module.rpartition('.')
  if missing == statement.module and parent in sys.modules:
    siblings = _submodules(sys.modules[parent])
    hint = reader.did_you_mean(last, siblings)
  return f'cannot import {statement.module!r} ({error}){hint}'


def _failure(error: BaseException) -> str:
  """What code raised as it was imported, and its places, the last one last."""
  places = [
      f'{frame.filename}:{frame.lineno}'
      for frame in traceback.extract_tb(error.__traceback__)
      if frame.filename not in _OF_IMPORTING
      and not frame.filename.startswith('<frozen')
  ]
  raised = f'{type(error).__name__}: {error}'
  return f'its code raises {raised}{"".join(f", at {p}" for p in places[-3:])}'


def _by_ending(
    name: str,
    targets: Iterable[Target],
    names_of: Callable[[Target], Sequence[str]],
) -> Target | None:
  """The one target with a dotted name that is `name` or ends in it."""
  matches = {}
  for target in targets:
    if any(f'.{full}'.endswith(f'.{name}') for full in names_of(target)):
      matches.setdefault(target.identity, target)
  if len(matches) > 1:
    raise UnknownNameError(
        f'{name!r} may mean any of '
        f'{sorted(target.path for target in matches.values())}'
    )
  return next(iter(matches.values()), None)


def _gin_names(target: Target) -> Sequence[str]:
  return (target.gin_name,)


def _all_names(target: Target) -> Sequence[str]:
  return target.names


def _spellings(name: str) -> Sequence[str]:
  shorter = [
      name.removeprefix(prefix)
      for prefix in _T5X_PREFIXES
      if name.startswith(prefix)
  ]
  return [name, *shorter]


def _submodules(package: types.ModuleType) -> list[str]:
  path = getattr(package, '__path__', [])
  return [module.name for module in pkgutil.iter_modules(path)]


def _registered(name: str) -> Target:
  """Looks `name` up in gin's own registry, where endings are enough."""
  registry = gin.config._REGISTRY
  try:
    found = registry.get_match(name)
  except KeyError as error:
    raise UnknownNameError(str(error).strip('\'"')) from error
  if found is None:
    hint = reader.did_you_mean(name, [key for key, _ in registry.items()])
    raise UnknownNameError(f'nothing called {name!r} is registered{hint}')
  return Target(found.wrapped, name)


def _unwrapped(value: Callable[..., Any]) -> Callable[..., Any]:
  return value if inspect.isclass(value) else inspect.unwrap(value)
