# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the gin files that a run writes itself, a statement a line or two.

Nothing is imported, so nothing else of gin is understood.
"""

from __future__ import annotations

from collections.abc import Iterator
import re

_STATEMENT = re.compile(r'([A-Za-z_][\w./]*)\s*=\s*(.*)\Z', re.DOTALL)


def statements(text: str) -> Iterator[tuple[str, str]]:
  """Yields names and values; imports, includes and comments are left out.

  A last line without its end is left out, too: it was still being written.
  """
  whole = ''
  for line in text[: text.rfind('\n') + 1].splitlines():
    if not whole and (not line.strip() or line.lstrip().startswith('#')):
      continue
    whole += line.strip()
    if whole.endswith('\\'):
      whole = whole[:-1]
    elif _is_open(whole):
      whole += ' '
    else:
      match = _STATEMENT.match(whole)
      if match:
        yield match.group(1), match.group(2)
      whole = ''


def resolved(text: str, name: str) -> str | None:
  """The value of a name, macros followed; None if it is not there."""
  values = dict(statements(text))
  seen = set()
  value = values.get(name)
  while value is not None and value.startswith('%') and value not in seen:
    seen.add(value)
    value = values.get(value[1:])
  return value


def _is_open(text: str) -> bool:
  """Whether a bracket is still open; strings are stepped over."""
  bare = re.sub(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"", '', text)
  return sum(bare.count(c) for c in '([{') > sum(bare.count(c) for c in ')]}')
