# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Holds arrays to the shapes that annotations give them, while tests run."""

from collections.abc import Callable
import functools
import inspect
import types
import typing
from typing import Any

import jax
import jaxtyping

# Trees also hold specs and placeholders, and numpy arrays serve as well.
_CHECKED = jax.Array


def check(function: Callable[..., Any]) -> Callable[..., Any]:
  """Returns the function, raising TypeError for arrays of another shape.

  What `jaxtyping.install_import_hook` is given: axes of one name are held to
  one size within a call by jaxtyping. Annotations that are no shapes are left
  alone.
  """
  shapes = {
      name: hints
      for name, hint in _annotations(function).items()
      if (hints := _shapes_in(hint))
  }
  if not shapes:
    return function
  signature = inspect.signature(function)

  @functools.wraps(function)
  def checked(*args, **kwargs):
    for name, value in signature.bind(*args, **kwargs).arguments.items():
      _check_one(name, value, shapes)
    result = function(*args, **kwargs)
    _check_one('return', result, shapes)
    return result

  return checked


def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
  return getattr(function, '__annotations__', {})


def _shapes_in(hint: Any) -> tuple[Any, ...]:
  """Array annotations that a value may meet; empty if others are allowed."""
  is_union = isinstance(hint, types.UnionType) or (
      typing.get_origin(hint) is typing.Union
  )
  hints = typing.get_args(hint) if is_union else (hint,)
  hints = tuple(one for one in hints if one is not type(None))
  are_shapes = [
      isinstance(one, type) and issubclass(one, jaxtyping.AbstractArray)
      for one in hints
  ]
  return hints if hints and all(are_shapes) else ()


def _check_one(name: str, value: Any, shapes) -> None:
  if name not in shapes or not isinstance(value, _CHECKED):
    return
  if not any(isinstance(value, hint) for hint in shapes[name]):
    raise TypeError(
        f'{name} is {value.dtype}{list(value.shape)}, expected '
        f'{" or ".join(map(str, shapes[name]))} (jaxtyping tells the sizes)'
    )
