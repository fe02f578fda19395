# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Where the names of a package live here: old name -> the same object."""

from collections.abc import Iterable, Mapping
import dataclasses
import difflib


@dataclasses.dataclass(frozen=True, kw_only=True)
class AliasTable:
  """The modules of a package, and where their names are found.

  gin knows a function or class by the Python object, so an alias must be that
  very object, never a wrapper or a subclass. The places are strings: nothing is
  imported here.

  Attributes:
    package: the package's name.
    names: module -> place of ours -> names, by spaces; `old=new` where ours is
      called otherwise.
    imported: modules that are imported for what they do -> what does it here.
    absent: parts that nothing here stands for -> what to do about it.
    advice: what to do about a name that is in none of these.
  """

  package: str
  names: Mapping[str, Mapping[str, str]]
  imported: Mapping[str, str]
  absent: Mapping[str, str]
  advice: str

  def aliases(self, module: str) -> dict[str, str]:
    """Old name -> `place:name` of ours, for one module.

    Raises:
      KeyError: the module is none of the table.
    """
    found = {}
    for place, names in self.names[module].items():
      for name in names.split():
        old, _, new = name.partition('=')
        found[old] = f'{place}:{new or old}'
    return found

  def imported_with(self, module: str) -> str | None:
    """The module of ours to import when `module` is; or None."""
    return self.imported.get(module)

  def modules(self) -> tuple[str, ...]:
    """Every module that has aliases, and the packages above them."""
    return tuple(self.names)

  def parts(self, module: str) -> list[str]:
    """Names of the modules right below one."""
    start = f'{module}.'
    below = (n.removeprefix(start) for n in self.names if n.startswith(start))
    return [name for name in below if '.' not in name]

  def is_absent(self, module: str) -> bool:
    """Whether it is of a part that is known to have no counterpart."""
    return any(f'{module}.'.startswith(f'{part}.') for part in self.absent)

  def unknown_name(self, module: str, name: str) -> str:
    """Why a module has no such name here, and what to do."""
    whole = f'{module}.{name}'
    if self.is_absent(whole):
      return self.absent_module(whole)
    known = sorted({*self.aliases(module), *self.parts(module)})
    return (
        f'{module} has no {name!r} in t5wild{_hint(name, known)}\n'
        f'  expected: one of {", ".join(known)}.\n'
        f'  do: {self.advice}'
    )

  def absent_module(self, module: str) -> str:
    """Why a module cannot be imported, and what to do."""
    for prefix, reason in self.absent.items():
      if f'{module}.'.startswith(f'{prefix}.'):
        return f'No module named {module!r} in t5wild: {reason}. {self.advice}'
    hint = _hint(module, self.names)
    return f'No module named {module!r} in t5wild{hint}: {self.advice}'


def _hint(name: str, known: Iterable[str]) -> str:
  close = difflib.get_close_matches(name, known, 1)
  return f'; did you mean {close[0]!r}?' if close else ''
