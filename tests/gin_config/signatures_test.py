# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which values fit which annotations."""

from collections.abc import Callable, Mapping, Sequence
import typing
from typing import Any, Literal

import pytest

from t5wild import eval as eval_lib
from t5wild import infer
from t5wild import precompile
from t5wild import train
from t5wild.gin_config import reader
from t5wild.gin_config import signatures

_CALL = reader.Reference((), 'f', is_called=True)
_NAME = reader.Reference((), 'f', is_called=False)


@pytest.mark.parametrize(
    ('value', 'annotation', 'expected'),
    [
        (1, int, True), (True, int, False), (1.0, int, False),
        (1, float, True), (True, float, False), ('1', float, False),
        (0, bool, True), (2, bool, False), ('x', bool, False),
        ('x', str, True), (1, str, False), (None, str, False),
        (None, str | None, True), (None, None, True),
        (None, typing.Optional[str], True),  # noqa: UP045 users write it
        (1, typing.Union[int, str], True),  # noqa: UP007 users write it
        (1.5, int | str, False),
        ('a', Literal['a', 'b'], True), ('c', Literal['a', 'b'], False),
        ([1], Sequence[int], True), ((1,), list[int], True),
        (['a'], Sequence[int], False), ('a', Sequence[str], False),
        ((1, 'a'), tuple[int, str], True), ((1,), tuple[int, str], False),
        ((1, 2), tuple[int, ...], True), ([], Sequence, True),
        ({'a': 1}, Mapping[str, int], True),
        ({'a': 'b'}, dict[str, int], False),
        ([], dict, False), ('f', Callable[..., Any], False),
        (_NAME, Callable[..., Any], True), (_NAME, int, False),
        (_NAME, int | None, False), (_CALL, int, True),
        (reader.Macro('M'), int, True), (object(), Any, True),
        (3, 'int', True), (3, typing.TypeVar('T'), True),
    ],
)  # fmt: skip
def test_fits(value, annotation, expected):
  assert signatures.fits(value, annotation) is expected


def test_none_fits_where_none_is_the_default():
  def function(size: int = None):
    return size

  annotation = signatures.annotation_of(function, 'size')
  assert signatures.fits(None, annotation)
  assert not signatures.fits('x', annotation)


def test_an_annotation_that_cannot_be_resolved_accepts_anything():
  def function(size: 'NotThere' = 3):  # noqa: F821 that is the point
    return size

  assert signatures.annotation_of(function, 'size') is Any


def test_parameters_that_python_cannot_name_are_accepted():
  assert signatures.accepts(dict, 'anything')
  assert signatures.accepts(lambda **kwargs: kwargs, 'anything')
  assert not signatures.accepts(lambda a, /: a, 'a')


@pytest.mark.parametrize('binary', [train, eval_lib, infer, precompile])
def test_the_binaries_take_no_class_for_what_gin_is_to_make(binary):
  function = getattr(
      binary, {'t5wild.eval': 'evaluate'}.get(
          binary.__name__, binary.__name__.rpartition('.')[2]
      )
  )
  made = [
      name
      for name in signatures.parameters_of(function)
      if name in ('model', 'partitioner') or name.endswith('_cfg')
  ]
  assert len(made) >= 3
  for name in made:
    annotation = signatures.annotation_of(function, name)
    assert signatures.fits(_CALL, annotation), name
    assert not signatures.fits(_NAME, annotation), name
    assert not signatures.fits('x', annotation), name

