# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Turns `--gin.NAME=value` flags into text that gin can parse.

Two kindnesses over T5X: a value that is no gin literal is a string without
being quoted (`--gin.MODEL_DIR=/tmp/x`), and a name may be spelt as any file
spells it (`train_script.train.x`), though gin keeps aliases per file.
"""

from __future__ import annotations

from collections.abc import Sequence
import re
from typing import Any

from gin import config_parser

from t5wild.gin_config import names
from t5wild.gin_config import reader

_BINDING = re.compile(r'\s*(?P<name>[A-Za-z_][\w./]*)\s*=(?P<value>.*)\Z', re.S)
# A value that starts so is meant as gin, and is refused when it is none.
_GIN_ONLY = ('"', "'", '[', '(', '{', '@', '%')


def rewrite_gin_args(args: Sequence[str]) -> Sequence[str]:
  """Rewrites `--gin.NAME=VALUE` to `--gin_bindings=NAME = VALUE`."""
  return [_rewrite(arg) for arg in args]


def quoted(binding: str) -> str:
  """`binding` with its value quoted where it can only be a string."""
  match = _BINDING.match(binding)
  if not match:
    return binding
  name, value = match['name'], match['value'].strip()
  if value.startswith(_GIN_ONLY) or reader.is_value(value):
    return f'{name} = {value}'
  return f'{name} = {value!r}'


def to_gin_text(
    binding: reader.Binding, flag_names: names.CommandLineNames
) -> str:
  """gin text of `binding` with the imports that its names need.

  Names that only gin's registry knows are left to it, as T5X does.
  """
  imports: dict[str, config_parser.ImportStatement] = {}
  try:
    key = binding.key
    if not binding.is_macro:
      path = _imported(binding.name, flag_names, imports)
      scope = f'{binding.scope}/' if binding.scope else ''
      key = f'{scope}{path}.{binding.parameter}'
    value = _format(binding.value, flag_names, imports)
  except names.UnknownNameError:
    return f'{binding.key} = {_format(binding.value)}\n'
  lines = [f'{key} = {value}\n']
  if imports:
    lines.insert(0, 'from __gin__ import dynamic_registration\n')
    lines[1:1] = [f'{each.format()}\n' for each in imports.values()]
  return ''.join(lines)


def _rewrite(arg: str) -> str:
  if not arg.startswith('--gin.'):
    return arg
  name, equals, value = arg.removeprefix('--gin.').partition('=')
  if not equals:
    raise reader.GinError(
        f'The flag {arg!r} has no value.\n'
        "  expected: '--gin.NAME=VALUE', in one word.\n"
        f'  do: write {arg}=VALUE'
    )
  return f'--gin_bindings={name} = {value}'


def _imported(
    name: str,
    flag_names: names.CommandLineNames,
    imports: dict[str, config_parser.ImportStatement],
) -> str:
  """The full spelling of `name`; notes the import it needs."""
  target = flag_names.find(name)
  if target.path.startswith('gin.'):
    return target.path
  if target.statement is None:
    raise names.UnknownNameError(f'{name!r} has no import')
  symbol = target.statement.bound_name()
  if imports.setdefault(symbol, target.statement) != target.statement:
    raise names.UnknownNameError(f'{symbol!r} is imported from two places')
  return target.path


def _format(
    value: Any,
    flag_names: names.CommandLineNames | None = None,
    imports: dict[str, config_parser.ImportStatement] | None = None,
) -> str:
  """gin text of `value`; with `flag_names`, references by full spelling."""
  if isinstance(value, reader.Macro):
    return f'%{value.name}'
  if isinstance(value, reader.Reference):
    name = value.name
    if flag_names is not None and imports is not None:
      name = _imported(name, flag_names, imports)
    return f'@{"/".join([*value.scopes, name])}{"()" * value.is_called}'
  if isinstance(value, dict):
    pairs = (
        f'{_format(key, flag_names, imports)}: '
        f'{_format(item, flag_names, imports)}'
        for key, item in value.items()
    )
    return f'{{{", ".join(pairs)}}}'
  if isinstance(value, (list, tuple)):
    items = [_format(item, flag_names, imports) for item in value]
    if isinstance(value, list):
      return f'[{", ".join(items)}]'
    return f'({", ".join(items)}{"," * (len(items) == 1)})'
  return repr(value)
