# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The guide's table is the alias table.

After a change of the alias table write the guide's anew:

  UPDATE_GOLDEN=1 pytest tests/compat/docs_test.py
"""

import os
import pathlib

from t5wild.compat import t5x_alias

_GUIDE = (
    pathlib.Path(__file__).resolve().parents[2] / 'docs/migrating_from_t5x.md'
)
_HEAD = '| T5X | t5wild | names |\n|---|---|---|\n'
_TYPES_ONLY = ('typing', 'jax', 'jax.typing', 'jax.tree_util', 'time')


def _table() -> str:
  rows = []
  for module in t5x_alias.TABLE.modules():
    by_place = {}
    for old, place in t5x_alias.TABLE.aliases(module).items():
      source, _, new = place.partition(':')
      if source not in _TYPES_ONLY and not old.startswith('_'):
        shown = f'`{old}`' if old == new else f'`{old}` → `{new}`'
        by_place.setdefault(source, []).append(shown)
    rows += [
        f'| `{module}` | `{source}` | {", ".join(sorted(names))} |'
        for source, names in by_place.items()
    ]
  return _HEAD + '\n'.join(rows) + '\n'


def test_the_guide_lists_every_name_where_it_is_now():
  text = _GUIDE.read_text(encoding='utf-8')
  if os.environ.get('UPDATE_GOLDEN'):
    text = text.partition(_HEAD)[0] + _table()
    _GUIDE.write_text(text, encoding='utf-8')
  assert text.endswith(_table())


def test_every_module_that_is_absent_is_told_of_in_the_guide():
  text = _GUIDE.read_text(encoding='utf-8')
  for module in t5x_alias.TABLE.absent:
    assert module.removeprefix('t5x.') in text
