# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A class of seqio held by name, imported when it is used."""

from typing import Any


class LazySeqioClass:
  """A class attribute that is a class of seqio, imported when it is used.

  seqio brings TensorFlow, and a model must import without both. On a model it
  is seqio's class. On the model's class it is this stand-in, which can be
  called, read and subclassed like it: gin reads every attribute of a class that
  it configures, and that must import nothing. Assigning to the name on a
  subclass or on a model replaces it.
  """

  def __init__(self, name: str):
    """Remembers the name of a class in seqio."""
    self._name = name

  @property
  def class_name(self) -> str:
    """The name of the class; nothing is imported."""
    return self._name

  def __get__(self, instance: Any, owner: type | None = None) -> Any:
    """Gives seqio's class on a model, the stand-in on a class."""
    return self if instance is None else self._load()

  def __call__(self, *args: Any, **kwargs: Any) -> Any:
    """Makes an object of seqio's class."""
    return self._load()(*args, **kwargs)

  def __getattr__(self, name: str) -> Any:
    """Reads seqio's class; names with two underscores import nothing."""
    if name.startswith('__'):
      raise AttributeError(
          f'{name!r} was read of {self!r}: expected a name without leading '
          'underscores; read it of the class on a model'
      )
    return getattr(self._load(), name)

  def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
    """Puts seqio's class among the bases of a subclass."""
    return (self._load(),)

  def __repr__(self) -> str:
    """Says which class it stands for."""
    return f'LazySeqioClass({self._name!r})'

  def _load(self) -> type:
    try:
      import seqio
    except ImportError as error:
      raise ImportError(
          f'seqio.{self._name} is needed to read a seqio task, and importing '
          f'seqio failed: {error}; expected an installed seqio: run '
          '`pip install seqio`, or give the model its own '
          '`feature_converter_cls`'
      ) from error
    return getattr(seqio, self._name)


def converter_class_of(model: Any) -> Any:
  """The class that converts features for a model; imports nothing.

  Where it is one of seqio's, the stand-in: data that needs no conversion is
  read where there is no seqio.
  """
  of_class = type(model).FEATURE_CONVERTER_CLS
  is_own = 'FEATURE_CONVERTER_CLS' in getattr(model, '__dict__', {})
  if isinstance(of_class, LazySeqioClass) and not is_own:
    return of_class
  return model.FEATURE_CONVERTER_CLS
