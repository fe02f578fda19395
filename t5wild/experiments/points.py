# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""One run of an experiment as gin bindings: its flags, its name, its equals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import dataclasses
import hashlib
import json
import math
import re
from typing import Any

_RESERVED = {'MODEL_DIR': 'each run has a folder of its own'}
_NAME = re.compile(r'[A-Za-z_][\w./]*')
_SHOWN = 60  # characters of a folder's name
_REFERENCES = ('@', '%')


class BadExperimentError(ValueError):
  """An experiment that cannot be made; the message has three parts."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Point:
  """What one run binds, beside what all runs do.

  Attributes:
    bindings: gin name -> value.
  """

  bindings: Mapping[str, Any]

  @property
  def name(self) -> str:
    """A folder's name: the same for the same run, whatever else is planned."""
    parts = [
        f'{_short(name)}={_said(value)}'
        for name, value in self.bindings.items()
    ]
    shown = re.sub(r'[^\w=.,+-]+', '_', ','.join(parts)).strip('_')[:_SHOWN]
    return f'{shown}-{self.key[:8]}'

  @property
  def key(self) -> str:
    """A hash, the same for values that make the same run, as 1 and 1.0."""
    text = json.dumps(canonical(dict(self.bindings)))
    return hashlib.sha256(text.encode()).hexdigest()


def flags_of(bindings: Mapping[str, Any]) -> list[str]:
  """Flags of `t5wild train` for some bindings."""
  return [f'--gin.{name}={gin_text(v)}' for name, v in bindings.items()]


def gin_text(value: Any) -> str:
  """A value as gin reads it; strings that begin with @ or % are references."""
  if isinstance(value, str):
    return value if value.startswith(_REFERENCES) else repr(value)
  if isinstance(value, Mapping):
    pairs = (f'{gin_text(k)}: {gin_text(v)}' for k, v in value.items())
    return f'{{{", ".join(pairs)}}}'
  if isinstance(value, (list, tuple)):
    inner = ', '.join(map(gin_text, value))
    if isinstance(value, list):
      return f'[{inner}]'
    return f'({inner},)' if len(value) == 1 else f'({inner})'
  return repr(value)


def canonical(value: Any) -> Any:
  """JSON that is the same for what gin would make the same run of."""
  if isinstance(value, bool) or value is None:
    return value
  if isinstance(value, (int, float)):
    number = float(value)
    # An integer of any size is itself; 1 and 1.0 are one.
    return f'{int(value)}' if number.is_integer() else repr(number)
  if isinstance(value, str):
    return ['text', value]
  if isinstance(value, Mapping):
    pairs = ([canonical(k), canonical(v)] for k, v in value.items())
    return {'map': sorted(pairs)}
  return [canonical(each) for each in value]


def check_names(names: Sequence[str]) -> None:
  """Refuses what is no name of a gin binding, or is ours to bind.

  Raises:
    BadExperimentError: see there.
  """
  for name in names:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
      raise BadExperimentError(
          f'{name!r} is no name of a gin binding\n'
          "  expected: a name such as 'adafactor.Adafactor.beta1' or "
          "'BATCH_SIZE'.\n"
          '  do: mend the name'
      )
    if name in _RESERVED:
      raise BadExperimentError(
          f'{name} is bound: {_RESERVED[name]}\n'
          '  expected: names that may be the same for several runs.\n'
          f'  do: leave {name} out'
      )


def check_value(name: str, value: Any) -> None:
  """Refuses what cannot be written on a command line.

  Raises:
    BadExperimentError: see there.
  """
  if isinstance(value, float) and not math.isfinite(value):
    problem = 'is not finite'
  elif isinstance(value, (Mapping, list, tuple)):
    inner = value.items() if isinstance(value, Mapping) else value
    for each in inner:
      check_value(name, each)
    return
  elif value is None or isinstance(value, (bool, int, float, str)):
    return
  else:
    problem = f'is a {type(value).__name__}'
  raise BadExperimentError(
      f'{name} has the value {value!r}, which {problem}\n'
      '  expected: numbers, strings, None, and lists or maps of them.\n'
      "  do: write a reference as a string: '@my_module.my_function'"
  )


def _short(name: str) -> str:
  return name.rsplit('.', 1)[-1].rsplit('/', 1)[-1]


def _said(value: Any) -> str:
  if isinstance(value, float):
    return f'{value:.4g}'
  return str(value)
