# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes out the operative configuration: every value a run will use.

gin's own operative config knows only what was called already, which at the
start of a run is little. This one follows the references from binding to
binding, so it is whole before anything runs, defaults included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import dataclasses
import inspect
from typing import Any

import gin

from t5wild.gin_config import signatures

_LITERALS = (bool, int, float, str, type(None))
# Flax adds these to every module.
_FLAX_PARAMETERS = frozenset({'parent', 'name'})

_Node = tuple[str, Any]  # scope, gin's record of the function or class


def operative_config_str() -> str:
  """gin text that sets every parameter reached by the current config.

  Read again by gin, it gives the same run. Defaults that gin cannot write
  (functions, dtypes) stand in comments at the end.
  """
  bound = gin.config._CONFIG
  macros = {key: dict(v) for key, v in bound.items() if _is_macro(key[1])}
  nodes = {
      (scope, node.selector): _parameters(scope, node)
      for scope, node in _reached(bound)
  }
  text = gin.config._config_str({**macros, **nodes})
  notes = sorted({note for node in _reached(bound) for note in _notes(*node)})
  if notes:
    text += '\n# Defaults that gin cannot write:\n' + '\n'.join(notes) + '\n'
  return text


def _is_macro(selector: str) -> bool:
  return selector in ('gin.macro', 'gin.constant')


def _reached(bound: dict[tuple[str, str], dict[str, Any]]) -> list[_Node]:
  """Every function and class that is bound, or referred to by a value."""
  registry = gin.config._REGISTRY
  todo = [
      (scope, registry[selector])
      for scope, selector in bound
      if not _is_macro(selector)
  ]
  reached: dict[tuple[str, str], _Node] = {}
  while todo:
    scope, configurable = todo.pop()
    key = (scope, configurable.selector)
    if key in reached:
      continue
    reached[key] = (scope, configurable)
    values = gin.config._get_bindings(
        configurable.selector, scope_components=scope.split('/')
    )
    for reference in _references(list(values.values())):
      inner = '/'.join(reference.scopes) or scope
      todo.append((inner, reference.configurable))
  return list(reached.values())


def _references(value: Any) -> Iterator[Any]:
  """References inside `value`, through macros."""
  for reference in gin.config.iterate_references(value):
    if reference.configurable.selector == 'gin.macro':
      bound = gin.config._CONFIG.get(('/'.join(reference.scopes), 'gin.macro'))
      yield from _references([bound['value']]) if bound else ()
    elif not _is_macro(reference.configurable.selector):
      yield reference


def _parameters(scope: str, configurable: Any) -> dict[str, Any]:
  """Defaults of one function or class, and over them what is bound."""
  values = {
      name: value
      for name, value in _defaults(configurable)
      if _is_literal(value)
  }
  values.update(
      gin.config._get_bindings(
          configurable.selector, scope_components=scope.split('/')
      )
  )
  return values


def _notes(scope: str, configurable: Any) -> Iterator[str]:
  """Comment lines for the defaults that are no gin literals."""
  bound = gin.config._get_bindings(
      configurable.selector, scope_components=scope.split('/')
  )
  for name, value in _defaults(configurable):
    if name not in bound and not _is_literal(value):
      yield f'#   {configurable.selector}.{name} = {_named(value)}'


def _defaults(configurable: Any) -> Iterator[tuple[str, Any]]:
  wrapped = configurable.wrapped
  known = signatures.parameters_of(wrapped) or {}
  is_flax = hasattr(wrapped, 'scope') and hasattr(wrapped, 'init_with_output')
  for name, parameter in known.items():
    if configurable.allowlist and name not in configurable.allowlist:
      continue
    if configurable.denylist and name in configurable.denylist:
      continue
    if is_flax and name in _FLAX_PARAMETERS:
      continue
    if parameter.default is not inspect.Parameter.empty:
      yield name, _made(wrapped, name, parameter.default)


def _made(owner: Callable[..., Any], name: str, default: Any) -> Any:
  """The default itself, where a dataclass would make a fresh one."""
  fields = getattr(owner, '__dataclass_fields__', {})
  factory = getattr(fields.get(name), 'default_factory', dataclasses.MISSING)
  return factory() if factory in (list, dict, tuple, set) else default


def _is_literal(value: Any) -> bool:
  if isinstance(value, (list, tuple)):
    return all(map(_is_literal, value))
  if isinstance(value, dict):
    return all(map(_is_literal, [*value.keys(), *value.values()]))
  return type(value) in _LITERALS


def _named(value: Any) -> str:
  """`value` as a reader knows it, the same in every process."""
  if value is gin.REQUIRED:
    return 'gin.REQUIRED'
  name = getattr(value, '__qualname__', None) or getattr(value, 'name', None)
  if isinstance(name, str):
    return f'{getattr(value, "__module__", "")}.{name}'.lstrip('.')
  return f'a {type(value).__name__}'
