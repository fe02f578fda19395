# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Lets Python import the modules of an alias table by their names.

A module is made when it is imported, an object is looked up when it is read:
what nobody names costs nothing.
"""

from collections.abc import Callable, Sequence
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import sys
import types
from typing import Any

from t5wild.compat import alias_table

_NO_NAME = re.compile(r"cannot import name '(?P<name>\w+)'")


def _tell_nobody(old: str, new: str) -> None:
  del old, new


class AliasModule(types.ModuleType):
  """A module of a table, whose names are read from the places they have now."""

  def __init__(
      self,
      name: str,
      table: alias_table.AliasTable,
      tell: Callable[[str, str], None] = _tell_nobody,
  ):
    """Takes what to call with the old name and the new when one is read."""
    super().__init__(name, f'Names of {name}, as t5wild has them.')
    self._table = table
    self._tell = tell
    # Without it `from t5x.models import *` would find nothing.
    self.__all__ = [each for each in table.aliases(name) if each[0] != '_']

  def __getattr__(self, name: str) -> Any:
    """Finds an object at its new place, or a module below, once.

    Raises:
      AttributeError: there was no such name, or nothing here stands for it.
    """
    places = self._table.aliases(self.__name__)
    if name in places:
      place, _, new_name = places[name].partition(':')
      value = getattr(importlib.import_module(place), new_name)
      setattr(self, name, value)
      self._tell(f'{self.__name__}.{name}', f'{place}.{new_name}')
      return value
    # The packages import what is below them.
    if name in self._table.parts(self.__name__):
      return importlib.import_module(f'{self.__name__}.{name}')
    raise AttributeError(
        self._table.unknown_name(self.__name__, name), name=name
    )

  def __dir__(self) -> list[str]:
    """Every name there is, looked up or not."""
    name = self.__name__
    return sorted({
        *super().__dir__(), *self._table.aliases(name), *self._table.parts(name)
    })  # fmt: skip


def advice(error: ImportError) -> str | None:
  """What to do about `from MODULE import NAME`, where MODULE is of a table.

  Python keeps nothing of what the module itself says of the name: its own
  message ends in `(unknown location)`. None where it is no such error.
  """
  module = sys.modules.get(error.name or '')
  found = _NO_NAME.match(str(error))
  if not isinstance(module, AliasModule) or found is None:
    return None
  name = found['name']
  if name in dir(module):  # It is there, and something else is wrong.
    return None
  return module._table.unknown_name(error.name, name)


class _Loader(importlib.abc.Loader):
  """Makes empty alias modules; their names come when they are read."""

  def __init__(self, table: alias_table.AliasTable, tell):
    self._table = table
    self._tell = tell

  def create_module(self, spec: importlib.machinery.ModuleSpec) -> AliasModule:
    return AliasModule(spec.name, self._table, self._tell)

  def exec_module(self, module: types.ModuleType) -> None:
    place = self._table.imported_with(module.__name__)
    if place is not None:
      importlib.import_module(place)


class AliasFinder(importlib.abc.MetaPathFinder):
  """Knows the modules of an alias table, and which have no counterpart."""

  def __init__(
      self,
      table: alias_table.AliasTable,
      other_folders: Sequence[str] = (),
      tell: Callable[[str, str], None] = _tell_nobody,
  ):
    """Makes a finder for `sys.meta_path`.

    Args:
      table: The names.
      other_folders: Of the package, where it is installed and hidden; modules
        that the table has not are kept.
      tell: Called with the old name and the new when one is read.
    """
    self.table = table
    self._other_folders = other_folders
    self._tell = tell

  def find_spec(self, fullname, path=None, target=None):
    """The spec of an alias module; None for modules of other packages.

    Raises:
      ModuleNotFoundError: a module of the package that nothing stands for.
    """
    del path, target
    if fullname.partition('.')[0] != self.table.package:
      return None
    if fullname in self.table.modules():
      spec = importlib.machinery.ModuleSpec(
          fullname, _Loader(self.table, self._tell)
      )
      if self.table.parts(fullname):
        parts = fullname.split('.')[1:]
        spec.submodule_search_locations = [
            os.path.join(folder, *parts) for folder in self._other_folders
        ]
      return spec
    if self._other_folders:  # perhaps a module that a fork has added
      return None
    raise ModuleNotFoundError(self.table.absent_module(fullname), name=fullname)


def is_installed(table: alias_table.AliasTable) -> bool:
  """Whether a table's names are ours in this process."""
  return any(
      isinstance(each, AliasFinder) and each.table is table
      for each in sys.meta_path
  )


def folders_of_its_own(package: str) -> list[str]:
  """Folders of a package that Python would import, ours aside; else none."""
  if package in sys.modules:
    module = sys.modules[package]
    if isinstance(module, AliasModule):
      return []
    return list(getattr(module, '__path__', ['']))
  try:
    spec = importlib.util.find_spec(package)
  except ModuleNotFoundError:  # a finder may say so
    return []
  # A folder that happens to be called so, with gin files say, is none.
  if spec is None or spec.origin is None:
    return []
  return list(spec.submodule_search_locations or [])


def refuse_imported(package: str) -> None:
  """Refuses to hide a package that is imported already.

  Raises:
    ImportError: it is.
  """
  if package not in sys.modules:
    return
  spec = sys.modules[package].__spec__
  raise ImportError(
      f'{package} is imported already, from {spec and spec.origin}, and is to '
      'be hidden. Expected to come first: import t5wild.compat before it.'
  )
