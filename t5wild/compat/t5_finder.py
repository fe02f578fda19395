# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Lets `import t5.data...` find T5's tasks and parts here, where t5 is absent.

An installed t5 is left alone: its names are its own. T5WILD_HIDE_T5=1 has ours
all the same.
"""

import difflib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from typing import Any

from t5wild.compat import t5_alias

HIDE_VARIABLE = 'T5WILD_HIDE_T5'
_ROOT = 't5'
_MEND = (
    'Correct the name; docs/migrating_from_t5x.md ("T5 task names") lists what '
    'is here. What only the package has needs it: pip install t5.'
)


class T5Module(types.ModuleType):
  """A module of T5 whose names are read from the places they have here."""

  def __getattr__(self, name: str) -> Any:
    """Finds an object at its place, or a module below, once.

    Raises:
      AttributeError: T5 had no such name, or nothing here stands for it.
    """
    places = t5_alias.aliases(self.__name__)
    if name in places:
      place, _, ours = places[name].partition(':')
      value = getattr(importlib.import_module(place), ours)
      setattr(self, name, value)
      return value
    # T5's packages import what is below them.
    if name in t5_alias.parts(self.__name__):
      return importlib.import_module(f'{self.__name__}.{name}')
    raise AttributeError(_unknown(self.__name__, name), name=name)

  def __dir__(self) -> list[str]:
    """Every name there is, looked up or not."""
    name = self.__name__
    return sorted(
        {*super().__dir__(), *t5_alias.aliases(name), *t5_alias.parts(name)}
    )


class _Loader(importlib.abc.Loader):
  """Makes empty modules; their names come when they are read."""

  def create_module(self, spec: importlib.machinery.ModuleSpec) -> T5Module:
    module = T5Module(spec.name, f'Names of {spec.name}, as t5wild has them.')
    module.__all__ = [
        name for name in t5_alias.aliases(spec.name) if name[0] != '_'
    ]
    return module

  def exec_module(self, module: types.ModuleType) -> None:
    place = t5_alias.imported_with(module.__name__)
    if place is not None:
      importlib.import_module(place)


class T5Finder(importlib.abc.MetaPathFinder):
  """Knows the modules of T5's table, and which have no counterpart."""

  def find_spec(self, fullname, path=None, target=None):
    """The spec of a module of T5; None for modules of other packages.

    Raises:
      ModuleNotFoundError: a module of T5 that nothing here stands for.
    """
    del path, target
    if fullname.partition('.')[0] != _ROOT:
      return None
    if fullname not in t5_alias.modules():
      raise ModuleNotFoundError(_absent(fullname), name=fullname)
    return importlib.machinery.ModuleSpec(
        fullname, _Loader(), is_package=bool(t5_alias.parts(fullname))
    )


def install() -> None:
  """Makes T5's names importable in this process, unless T5 is installed.

  Raises:
    ImportError: T5 is imported already, and is to be hidden.
  """
  if is_installed():
    return
  is_hidden = os.environ.get(HIDE_VARIABLE) == '1'
  if not is_hidden and has_t5():
    return
  if _ROOT in sys.modules:
    raise ImportError(
        f'{_ROOT} is imported already, from '
        f'{sys.modules[_ROOT].__spec__.origin}, and {HIDE_VARIABLE} is to hide '
        'it. Expected to come first: import t5wild.compat before it.'
    )
  sys.meta_path.insert(0, T5Finder())


def is_installed() -> bool:
  """Whether T5's names are ours in this process."""
  return any(isinstance(finder, T5Finder) for finder in sys.meta_path)


def has_t5() -> bool:
  """Whether Python would import a t5 of its own."""
  if _ROOT in sys.modules:
    return not isinstance(sys.modules[_ROOT], T5Module)
  try:
    spec = importlib.util.find_spec(_ROOT)
  except ModuleNotFoundError:  # a finder may say so
    return False
  # A folder that happens to be called t5, with gin files say, is none.
  return spec is not None and spec.origin is not None


def _unknown(module: str, name: str) -> str:
  places = t5_alias.aliases(module)
  close = difflib.get_close_matches(name, places, 1)
  hint = f'; did you mean {close[0]!r}?' if close else ''
  return (
      f'{module} has no {name!r} in t5wild{hint}\n'
      f'  expected: one of {", ".join(sorted(places)) or "its modules"}.\n'
      f'  do: {_MEND}'
  )


def _absent(module: str) -> str:
  for prefix, reason in t5_alias.ABSENT.items():
    if f'{module}.'.startswith(f'{prefix}.'):
      return f'No module named {module!r} in t5wild: {reason}. {_MEND}'
  close = difflib.get_close_matches(module, t5_alias.modules(), 1)
  hint = f'; did you mean {close[0]!r}?' if close else ''
  return f'No module named {module!r} in t5wild{hint} {_MEND}'
