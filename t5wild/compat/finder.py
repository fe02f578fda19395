# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Lets Python import T5X's modules by their names, and get ours.

A module is made when it is imported, an object is looked up when it is read:
what nobody names costs nothing. A T5X that is installed stays what it is,
unless it is to be hidden.
"""

from collections.abc import Iterator
import contextlib
import difflib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from typing import Any

from absl import logging

from t5wild.compat import t5x_alias

# Set to 1 it does what `install(hide=True)` does.
HIDE_VARIABLE = 'T5WILD_HIDE_T5X'
_ROOT = 't5x'
_ADVICE = (
    'docs/migrating_from_t5x.md lists what each name has become; code that '
    'needs more than that keeps its own copy of it.'
)
_hinted: set[str] = set()
_is_silent = False


class AliasModule(types.ModuleType):
  """A module of T5X whose names are read from the places they have now."""

  def __getattr__(self, name: str) -> Any:
    """Finds an object at its new place, once.

    Raises:
      AttributeError: T5X had no such name, or nothing here stands for it.
    """
    places = t5x_alias.aliases(self.__name__)
    if name not in places:
      raise AttributeError(unknown_name(self.__name__, name, places), name=name)
    place, _, new_name = places[name].partition(':')
    value = getattr(importlib.import_module(place), new_name)
    setattr(self, name, value)
    _hint(f'{self.__name__}.{name}', f'{place}.{new_name}')
    return value

  def __dir__(self) -> list[str]:
    """Every name there is, looked up or not."""
    return sorted({*super().__dir__(), *t5x_alias.aliases(self.__name__)})


class _Loader(importlib.abc.Loader):
  """Makes empty alias modules; their names come when they are read."""

  def create_module(
      self, spec: importlib.machinery.ModuleSpec
  ) -> AliasModule:
    module = AliasModule(
        spec.name, f'Names of {spec.name}, as t5wild has them.'
    )
    # Without it `from t5x.models import *` would find nothing.
    module.__all__ = [
        name for name in t5x_alias.aliases(spec.name) if name[0] != '_'
    ]
    return module

  def exec_module(self, module: types.ModuleType) -> None:
    place = t5x_alias.imported_with(module.__name__)
    if place is not None:
      importlib.import_module(place)


class AliasFinder(importlib.abc.MetaPathFinder):
  """Knows the modules of the alias table, and which have no counterpart."""

  def __init__(self, other_folders: list[str]):
    """Takes the folders of an installed T5X, whose other modules are kept."""
    self.other_folders = other_folders

  def find_spec(self, fullname, path=None, target=None):
    """The spec of an alias module; None for modules of other packages.

    Raises:
      ModuleNotFoundError: a module of T5X that nothing here stands for.
    """
    del path, target
    if fullname.partition('.')[0] != _ROOT:
      return None
    known = t5x_alias.modules()
    if fullname in known:
      spec = importlib.machinery.ModuleSpec(fullname, _Loader())
      if any(name.startswith(f'{fullname}.') for name in known):
        parts = fullname.split('.')[1:]
        spec.submodule_search_locations = [
            os.path.join(folder, *parts) for folder in self.other_folders
        ]
      return spec
    if self.other_folders:  # perhaps a module that a fork of T5X has added
      return None
    raise ModuleNotFoundError(absent_module(fullname), name=fullname)


def install(*, hide: bool | None = None) -> None:
  """Makes T5X's names importable in this process, once.

  Args:
    hide: with a T5X installed, whether its names give our objects all the same
      (modules that only it has, such as those of a fork, stay importable);
      None asks the environment variable T5WILD_HIDE_T5X.

  Raises:
    ImportError: it is to be hidden, and is imported already.
  """
  if hide is None:
    hide = os.environ.get(HIDE_VARIABLE) == '1'
  if any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
    return
  installed = _installed_folders()
  if installed and not hide:
    logging.warning(
        'T5X is installed (%s), so t5x names mean its objects, which t5wild '
        'cannot run. Set %s=1 to have ours, or uninstall it.',
        installed[0], HIDE_VARIABLE,
    )  # fmt: skip
    return
  if _ROOT in sys.modules:
    raise ImportError(
        f'{_ROOT} is imported already, from {installed[:1]}, and is to be '
        'hidden. Expected to come first: import t5wild.compat before it.'
    )
  sys.meta_path.insert(0, AliasFinder(installed))


def is_installed() -> bool:
  """Whether T5X's names are ours in this process."""
  return any(isinstance(finder, AliasFinder) for finder in sys.meta_path)


@contextlib.contextmanager
def silence() -> Iterator[None]:
  """Gives no hints within: for our own code that reads old names."""
  global _is_silent
  before, _is_silent = _is_silent, True
  try:
    yield
  finally:
    _is_silent = before


def _installed_folders() -> list[str]:
  """Folders of a T5X that Python would import, else none."""
  if _ROOT in sys.modules:
    return list(getattr(sys.modules[_ROOT], '__path__', ['']))
  spec = importlib.util.find_spec(_ROOT)
  # A folder that happens to be called t5x, with gin files say, is none.
  if spec is None or spec.origin is None:
    return []
  return list(spec.submodule_search_locations or [])


def _hint(old: str, new: str) -> None:
  if not _is_silent and old not in _hinted:
    _hinted.add(old)
    logging.info('%s is now %s', old, new)


def unknown_name(module: str, name: str, places: dict[str, str]) -> str:
  """Why a module of T5X has no such name here, and what to do."""
  close = difflib.get_close_matches(name, places, 1)
  hint = f'; did you mean {close[0]!r}?' if close else ''
  return (
      f'{module} has no {name!r} in t5wild{hint}\n'
      f'  expected: one of {", ".join(sorted(places)) or "its modules"}.\n'
      f'  do: {_ADVICE}'
  )


def is_absent(module: str) -> bool:
  """Whether it is of a part of T5X that is known to have no counterpart."""
  return any(f'{module}.'.startswith(f'{part}.') for part in t5x_alias.ABSENT)


def absent_module(module: str) -> str:
  """Why a module of T5X cannot be imported, and what to do."""
  for prefix, reason in t5x_alias.ABSENT.items():
    if f'{module}.'.startswith(f'{prefix}.'):
      return f'No module named {module!r} in t5wild: {reason}'
  close = difflib.get_close_matches(module, t5x_alias.modules(), 1)
  hint = f'; did you mean {close[0]!r}?' if close else ''
  return f'No module named {module!r} in t5wild{hint}: {_ADVICE}'
