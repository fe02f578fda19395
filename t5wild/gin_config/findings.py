# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What the gin lint has seen and found: bindings with objects, findings."""

from __future__ import annotations

import dataclasses

from t5wild.gin_config import names
from t5wild.gin_config import reader


@dataclasses.dataclass(frozen=True)
class Seen:
  """A binding, the object it binds (None: a macro, or unknown), its file."""

  binding: reader.Binding
  target: names.Target | None
  file: reader.GinFile | None  # None: the command line

  @property
  def is_ours(self) -> bool:
    """Whether it stands in one of our own recipes."""
    return self.file is not None and self.file.is_ours


@dataclasses.dataclass(frozen=True)
class Finding:
  """What is wrong at one place, in the three parts of every error.

  Attributes:
    kind: 'import', 'name', 'parameter', 'duplicate', 'macro' (unknown),
      'unread' (a macro), 'scope', 'type' or 'required'.
    place: file and line, or what stands in their place.
    what: what is wrong, with its value.
    expected: what was expected.
    do: the mend.
    is_hint: whether gin may read it all the same.
  """

  kind: str
  place: reader.Place | str
  what: str
  expected: str
  do: str
  is_hint: bool = False

  def __str__(self) -> str:
    """The whole text."""
    return (
        f'{self.place}\n  {self.what}\n  expected: {self.expected}\n'
        f'  do: {self.do}'
    )


@dataclasses.dataclass
class Report:
  """What the lint found and saw."""

  findings: list[Finding] = dataclasses.field(default_factory=list)
  seen: list[Seen] = dataclasses.field(default_factory=list)
  reads: dict[str, list[reader.Binding]] = dataclasses.field(
      default_factory=dict
  )
  entered: set[str] = dataclasses.field(default_factory=set)
  targets: dict[str, names.Target] = dataclasses.field(default_factory=dict)
  # File -> each name as written there -> what it means.
  names_of: dict[str, dict[str, names.Target]] = dataclasses.field(
      default_factory=dict
  )
  tables: list[names.Symbols] = dataclasses.field(default_factory=list)
  flag_names: names.CommandLineNames | None = None

  @property
  def errors(self) -> list[str]:
    """Texts of what is refused."""
    return [str(each) for each in self.findings if not each.is_hint]

  @property
  def hints(self) -> list[str]:
    """Texts of what is let through and told: the same of many lines once."""
    alike: dict[str, list[Finding]] = {}
    for each in self.findings:
      if each.is_hint:
        alike.setdefault(each.what, []).append(each)
    return [
        str(first)
        + (f'\n  as {len(others)} more lines, the next {others[0].place}'
           if others else '')
        for first, *others in alike.values()
    ]

  def add(
      self,
      kind: str,
      place: reader.Place | str,
      *,
      what: str,
      expected: str,
      do: str,
      is_hint: bool = False,
  ) -> None:
    """Adds one finding."""
    self.findings.append(Finding(kind, place, what, expected, do, is_hint))

  def raise_errors(self) -> None:
    """Raises all errors as one GinError, if there are any."""
    if self.errors:
      count = len(self.errors)
      head = f'The configuration has {count} error{"s" * (count > 1)}:'
      raise reader.GinError('\n\n'.join([head, *self.errors]))
