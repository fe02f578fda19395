# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What the gin lint has seen and found: bindings with their objects, errors."""

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


@dataclasses.dataclass
class Report:
  """What the lint found; `errors` and `hints` are whole, readable texts."""

  errors: list[str] = dataclasses.field(default_factory=list)
  hints: list[str] = dataclasses.field(default_factory=list)
  seen: list[Seen] = dataclasses.field(default_factory=list)
  reads: dict[str, list[reader.Binding]] = dataclasses.field(
      default_factory=dict
  )
  entered: set[str] = dataclasses.field(default_factory=set)
  targets: dict[str, names.Target] = dataclasses.field(default_factory=dict)
  tables: list[names.Symbols] = dataclasses.field(default_factory=list)
  flag_names: names.CommandLineNames | None = None

  def add(
      self,
      place: reader.Place | str,
      what: str,
      expected: str,
      do: str,
      *,
      is_hint: bool = False,
  ) -> None:
    """Adds one finding in the three parts of every error."""
    text = f'{place}\n  {what}\n  expected: {expected}\n  do: {do}'
    (self.hints if is_hint else self.errors).append(text)

  def raise_errors(self) -> None:
    """Raises all errors as one GinError, if there are any."""
    if self.errors:
      count = len(self.errors)
      head = f'The configuration has {count} error{"s" * (count > 1)}:'
      raise reader.GinError('\n\n'.join([head, *self.errors]))
