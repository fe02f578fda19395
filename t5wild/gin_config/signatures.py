# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Says whether a gin value fits a parameter's annotation, where that is simple.

Simple are int, float, str, bool, None, Literal, Sequence, Mapping, Callable,
unions of these, and our own classes. Anything else is accepted unseen.
"""

from __future__ import annotations

import collections.abc
from collections.abc import Callable, Mapping
import enum
import inspect
import types
import typing
from typing import Any

from t5wild.gin_config import reader

_SEQUENCES = (
    list, tuple, collections.abc.Sequence, collections.abc.Iterable,
    collections.abc.Collection,
)  # fmt: skip
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_CALLABLES = (type, collections.abc.Callable)


def parameters_of(target: Callable[..., Any]) -> Mapping[str, Any] | None:
  """`inspect.Parameter` by name, or None where Python cannot tell."""
  try:
    return inspect.signature(target).parameters
  except (TypeError, ValueError):
    return None


def accepts(target: Callable[..., Any], parameter: str) -> bool:
  """Whether `target` may be called with keyword argument `parameter`."""
  known = parameters_of(target)
  if known is None or any(p.kind == p.VAR_KEYWORD for p in known.values()):
    return True
  return parameter in known and known[parameter].kind != (
      inspect.Parameter.POSITIONAL_ONLY
  )


def annotation_of(target: Callable[..., Any], parameter: str) -> Any:
  """The resolved annotation of `parameter`; `Any` where there is none."""
  is_class = inspect.isclass(target)
  has_fields = hasattr(target, '__dataclass_fields__')
  source = target.__init__ if is_class and not has_fields else target
  try:
    annotation = typing.get_type_hints(source).get(parameter, Any)
  except (NameError, TypeError, AttributeError, SyntaxError, ImportError):
    return Any
  known = parameters_of(target) or {}
  if parameter in known and known[parameter].default is None:
    return typing.Optional[annotation]  # noqa: UP045 (fits any annotation)
  return annotation


def fits(value: Any, annotation: Any) -> bool:
  """Whether `value` may stand where `annotation` is asked for."""
  if isinstance(value, reader.Macro):
    return True
  if isinstance(value, reader.Reference):
    return value.is_called or not _is_made(annotation)
  origin = typing.get_origin(annotation) or annotation
  arguments = typing.get_args(annotation)
  if origin in (typing.Union, types.UnionType):
    return any(fits(value, choice) for choice in arguments)
  if origin is typing.Literal:
    return value in arguments
  if origin in _SEQUENCES:
    return isinstance(value, (list, tuple)) and _items_fit(value, arguments)
  if origin in _MAPPINGS:
    return isinstance(value, dict) and _entries_fit(value, arguments)
  if origin in _CALLABLES:
    return not isinstance(value, (bool, int, float, str, list, tuple, dict))
  return _scalar_fits(value, annotation)


def describe(annotation: Any) -> str:
  """`annotation` as a user would write it."""
  if annotation is type(None):
    return 'None'
  if inspect.isclass(annotation) and not typing.get_args(annotation):
    return annotation.__name__
  text = str(annotation)
  for noise in ('typing.', 'collections.abc.', 'NoneType'):
    text = text.replace(noise, 'None' if noise == 'NoneType' else '')
  return text


def _scalar_fits(value: Any, annotation: Any) -> bool:
  if annotation in (None, type(None)):
    return value is None
  if annotation is bool:  # T5X recipes write 0 and 1 as well
    return isinstance(value, int) and value in (False, True)
  if annotation is int:
    return isinstance(value, int) and not isinstance(value, bool)
  if annotation is float:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
  if annotation is str:
    return isinstance(value, str)
  return not _is_our_class(annotation)


def _is_our_class(annotation: Any) -> bool:
  """Whether no literal can stand for it: a class of ours, made by a call."""
  return (
      inspect.isclass(annotation)
      and annotation.__module__.split('.')[0] == 't5wild'
      and not issubclass(annotation, (enum.Enum, str, int, dict))
  )


def _is_made(annotation: Any) -> bool:
  """Whether an uncalled @reference, a class or function, cannot stand for it.

  Only literals fit, or objects of a class of ours that are not called.
  """
  origin = typing.get_origin(annotation) or annotation
  if origin in (typing.Union, types.UnionType):
    return all(_is_made(choice) for choice in typing.get_args(annotation))
  if _is_our_class(origin):
    return not any('__call__' in vars(each) for each in origin.__mro__)
  plain = (int, float, str, bool, None, type(None), typing.Literal)
  return origin in plain or origin in _SEQUENCES or origin in _MAPPINGS


def _items_fit(values: Any, arguments: tuple[Any, ...]) -> bool:
  if not arguments:
    return True
  if len(arguments) == 1 or arguments[-1] is ...:
    return all(fits(value, arguments[0]) for value in values)
  return len(values) == len(arguments) and all(map(fits, values, arguments))


def _entries_fit(values: dict[Any, Any], arguments: tuple[Any, ...]) -> bool:
  if len(arguments) != 2:
    return True
  key, value = arguments
  return all(fits(k, key) and fits(v, value) for k, v in values.items())
