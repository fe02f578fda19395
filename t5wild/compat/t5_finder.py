# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Lets `import t5.data...` find T5's tasks and parts here, where t5 is absent.

An installed t5 is left alone: its names are its own. T5WILD_HIDE_T5=1 has ours
all the same.
"""

import os
import sys

from t5wild.compat import alias_modules
from t5wild.compat import t5_alias

HIDE_VARIABLE = 'T5WILD_HIDE_T5'


def install() -> None:
  """Makes T5's names importable in this process, unless T5 is installed.

  Raises:
    ImportError: T5 is imported already, and is to be hidden.
  """
  if is_installed():
    return
  if os.environ.get(HIDE_VARIABLE) != '1' and has_t5():
    return
  alias_modules.refuse_imported(t5_alias.TABLE.package)
  sys.meta_path.insert(0, alias_modules.AliasFinder(t5_alias.TABLE))


def is_installed() -> bool:
  """Whether T5's names are ours in this process."""
  return alias_modules.is_installed(t5_alias.TABLE)


def has_t5() -> bool:
  """Whether Python would import a t5 of its own."""
  return bool(alias_modules.folders_of_its_own(t5_alias.TABLE.package))
