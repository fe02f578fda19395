# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Says in our three parts what gin says of a call without an argument it needs.

What a gin file names is called by gin, or by code that gives it the rest: only
the call itself can tell that an argument is missing.
"""

import ast
import re

_MISSING = re.compile(
    r"No values supplied by Gin or caller for arguments: (\[.*?\])\n"
    r".*?In call to configurable '([^']+)' \((.*?)\)(?: in scope '([^']+)')?$",
    re.DOTALL | re.MULTILINE,
)


def explain(message: str) -> str | None:
  """Returns what to tell, or None where an error is another one."""
  match = _MISSING.search(message)
  if match is None:
    return None
  listed, name, made, scope = match.groups()
  scoped = f'{scope}/{name}' if scope else name
  arguments = ast.literal_eval(listed)
  lines = '\n'.join(f'    {scoped}.{each} = ...' for each in arguments)
  return (
      f'@{scoped}() ({made}) is called without {arguments}, and has no default '
      'for them: expected a value for each. In a gin file, by the name under '
      f'which it is imported there, add\n{lines}'
  )
