# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes out the operative configuration: every value a run will use.

gin's own operative config knows only what was called already, which at the
start of a run is little. This one follows the references from binding to
binding, so it is whole before anything runs, defaults included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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


def bindings_behind(
    arguments: Mapping[str, Sequence[str]], *, without: Sequence[str] = ()
) -> list[str]:
  """Returns the bindings that some arguments depend on, a text each, sorted.

  Two configurations give the same list where they set the same, however their
  files are written: names are those of the code, macros are resolved, defaults
  left out.

  Args:
    arguments: Full name of a function (`t5wild.train.train`) to the names of
      its arguments; of those that the configuration does not bind is nothing.
    without: Ends of names to leave out (`DatasetConfig.batch_size`).
  """
  lines: set[str] = set()
  todo: list[_Node] = []
  for scope, selector in gin.config._CONFIG:
    configurable = gin.config._REGISTRY[selector]
    names = arguments.get(_full_name(configurable), ())
    todo += _told(scope, configurable, lines, only=names) if names else []
  for scope, configurable in _followed(todo):
    for part in _with_methods(configurable):
      _told(scope, part, lines)
  left_out = tuple(without)
  return sorted(
      line for line in lines if not line.split(' = ')[0].endswith(left_out)
  )


def is_bound(function: Callable[..., Any], argument: str) -> bool:
  """Whether the configuration sets an argument of a function, in any scope."""
  inner = inspect.unwrap(getattr(function, '__func__', function))
  return any(
      argument in values and gin.config._REGISTRY[selector].wrapped is inner
      for (_, selector), values in gin.config._CONFIG.items()
  )


def _with_methods(configurable: Any) -> list[Any]:
  """A class, and those of its methods that are bound."""
  start = f'{configurable.selector}.'
  methods = {
      selector for _, selector in gin.config._CONFIG
      if selector.startswith(start)
  }
  return [configurable, *(gin.config._REGISTRY[each] for each in methods)]


def _told(
    scope: str,
    configurable: Any,
    lines: set[str],
    *,
    only: Sequence[str] | None = None,
) -> list[_Node]:
  """Adds a line for each binding; returns what the values refer to."""
  values = gin.config._get_bindings(
      configurable.selector, scope_components=scope.split('/')
  )
  start = f'{scope}/' if scope else ''
  todo = []
  for name, value in values.items():
    if only is None or name in only:
      full = f'{start}{_full_name(configurable)}.{name}'
      lines.add(f'{full} = {_text(value)}')
      todo += _inner_nodes([value], scope)
  return todo


def _full_name(configurable: Any) -> str:
  wrapped = configurable.wrapped
  name = getattr(wrapped, '__qualname__', configurable.selector)
  return f'{getattr(wrapped, "__module__", "")}.{name}'


def _text(value: Any) -> str:
  """A value as text: macros by what they stand for, references by name."""
  if isinstance(value, gin.config.ConfigurableReference):
    scopes = '/'.join(value.scopes)
    if value.configurable.selector == 'gin.macro':
      return _text(gin.config._CONFIG.get((scopes, 'gin.macro'), {}).get(
          'value', f'%{scopes}'
      ))
    start = f'{scopes}/' if scopes else ''
    return f'@{start}{_full_name(value.configurable)}{"()" * value.evaluate}'
  if isinstance(value, dict):
    items = (f'{_text(k)}: {_text(v)}' for k, v in value.items())
    return f'{{{", ".join(items)}}}'
  if isinstance(value, list | tuple):
    inside = ', '.join(map(_text, value))
    return f'[{inside}]' if isinstance(value, list) else f'({inside})'
  return repr(value)


def _is_macro(selector: str) -> bool:
  return selector in ('gin.macro', 'gin.constant')


def _reached(bound: dict[tuple[str, str], dict[str, Any]]) -> list[_Node]:
  """Every function and class that is bound, or referred to by a value."""
  registry = gin.config._REGISTRY
  return _followed([
      (scope, registry[selector])
      for scope, selector in bound
      if not _is_macro(selector)
  ])


def _followed(nodes: list[_Node]) -> list[_Node]:
  """Some functions and classes, and all that their bindings refer to."""
  todo = list(nodes)
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
    todo += _inner_nodes(list(values.values()), scope)
  return list(reached.values())


def _inner_nodes(values: list[Any], scope: str) -> list[_Node]:
  return [
      ('/'.join(reference.scopes) or scope, reference.configurable)
      for reference in _references(values)
  ]


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
