# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Finds SentencePiece models, in a local folder instead of a bucket too.

Recipes of T5X name `gs://t5-data/vocabs/...`. With --vocab_dir, or the variable
T5WILD_VOCAB_DIR, a file of that name in a folder is read instead, by whatever
code makes the vocabulary. A model that is nowhere, or a file that is none, is
refused in the same words whoever reads it. Imports neither seqio nor
TensorFlow.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.abc
import os
import re
import sys
import types

from absl import logging

from t5wild import reachability

VARIABLE = 'T5WILD_VOCAB_DIR'
_MODULE = 'seqio.vocabularies'
_LOADER = '_load_model'
# 'cc_all.32000.100extra' has 100 sentinels in the file, 'cc_all.32000' none.
_SENTINELS_IN_NAME = re.compile(r'\.(\d+)extra(?=/)')
_SENTINEL = re.compile(rb'<extra_id_\d+>')
_TRAIN = 't5wild train-vocab --input TEXT --output NAME.model'
_MEND = (
    'Copy the file to this machine, into a folder DIR, and give --vocab_dir '
    f"DIR (or set {VARIABLE}); of T5's own vocabularies one of the two, with "
    'or without "100extra", serves for both. A vocabulary of your own: '
    f'{_TRAIN}'
)
_MEND_LOCAL = (
    'Correct the path, give the folder that has a file of that name with '
    f'--vocab_dir DIR (or set {VARIABLE}), or train one: {_TRAIN}'
)


class UnreachableVocabularyError(FileNotFoundError):
  """A SentencePiece model that is nowhere to be had from here."""


class BadVocabularyError(ValueError):
  """A file that is no SentencePiece model."""


@dataclasses.dataclass(frozen=True)
class Found:
  """Where a model is read from.

  Attributes:
    path: the file.
    extra_ids: sentinels to add to those that it has.
  """

  path: str
  extra_ids: int


def set_folder(folder: str) -> None:
  """Looks for vocabularies in a folder, here and in processes started here.

  Raises:
    ValueError: there is no such folder.
  """
  if not os.path.isdir(folder):
    raise ValueError(
        f'--vocab_dir is {folder!r}: expected a folder with SentencePiece '
        'models. Correct it.'
    )
  os.environ[VARIABLE] = os.path.abspath(folder)


def places(path: str) -> list[str]:
  """Files of the folder that may stand for a path, the likeliest first.

  All its ends, from the longest to the bare name; then the same with or
  without the sentinels in the name of its folder.
  """
  folder = os.environ.get(VARIABLE)
  if not folder:
    return []
  tail = os.fspath(path).partition('://')[2] or os.fspath(path)
  parts = [part for part in tail.split('/') if part not in ('', '.', '..')]
  ends = ['/'.join(parts[i:]) for i in range(len(parts))]
  ends += [_twin(end) for end in ends if '/' in end]
  return [os.path.join(folder, end) for end in dict.fromkeys(ends)]


def find(path: str, extra_ids: int = 0) -> Found:
  """Where to read a model from.

  A local file that exists is itself. Of a file of the folder the sentinels are
  as many as those asked for and those that the path's name promises, whether
  they are in it or not.

  Args:
    path: as the vocabulary was given it.
    extra_ids: sentinels that it adds.

  Raises:
    UnreachableVocabularyError: it is neither in the folder nor where its path
      says, or that cannot be reached from here.
  """
  path = os.fspath(path)
  is_remote = '://' in path
  tried = places(path)
  if not is_remote and os.path.isfile(path):
    return Found(path, extra_ids)
  for place in tried:
    if os.path.isfile(place):
      return _in_folder(path, place, extra_ids)
  if is_remote and reachability.is_reachable(path):
    return Found(path, extra_ids)
  raise UnreachableVocabularyError(_nowhere(path, is_remote=is_remote))


def check(path: str | os.PathLike[str]) -> Found:
  """Refuses a model that is not there, and a file that is none.

  What lies in a bucket that answers is left to the library that reads it.

  Raises:
    UnreachableVocabularyError: see `find`.
    BadVocabularyError: the file is no SentencePiece model.
  """
  found = find(path)
  if '://' in found.path:
    return found
  import sentencepiece

  try:
    sentencepiece.SentencePieceProcessor(model_file=found.path)
  except (RuntimeError, OSError):
    raise BadVocabularyError(
        f'{found.path!r} is no SentencePiece model: expected the .model file '
        'of a vocabulary (not its .vocab, nor text). Correct the path, or '
        f'train one: {_TRAIN}'
    ) from None
  return found


def local_file(path: str | os.PathLike[str]) -> str:
  """The file of a model, for readers that open local files only.

  Raises:
    UnreachableVocabularyError: see `find`; or it is in a bucket.
    BadVocabularyError: see `check`.
  """
  found = check(path)
  if '://' in found.path:
    raise UnreachableVocabularyError(
        f'the SentencePiece model {found.path!r} is in a bucket: expected a '
        f'file of this machine, where TensorFlow does not read it. {_MEND}'
    )
  return found.path


def install() -> None:
  """Makes seqio's vocabularies look here, whenever seqio is imported."""
  module = sys.modules.get(_MODULE)
  if module is not None:
    _patch(module)
  elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
    sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
  """Finds one module where others find it, and changes it once it is there."""

  def find_spec(self, fullname, path=None, target=None):
    """The spec of seqio's vocabularies, else None."""
    if fullname != _MODULE:
      return None
    for finder in sys.meta_path:
      if finder is self or not hasattr(finder, 'find_spec'):
        continue
      spec = finder.find_spec(fullname, path, target)
      if spec is not None and spec.loader is not None:
        spec.loader = _Loader(spec.loader)
        return spec
    return None


class _Loader(importlib.abc.Loader):
  """Loads a module as another loader does, then changes it."""

  def __init__(self, loader: importlib.abc.Loader):
    self._loader = loader

  def __getattr__(self, name: str):
    """What else the other loader has, such as the source."""
    return getattr(self._loader, name)

  def create_module(self, spec):
    return self._loader.create_module(spec)

  def exec_module(self, module):
    self._loader.exec_module(module)
    _patch(module)


def _patch(module: types.ModuleType) -> None:
  """Lets seqio's one function that reads models ask `find` first."""
  load = getattr(module, _LOADER, None)
  if load is None or hasattr(load, 'asks_t5wild'):
    return

  @functools.wraps(load)
  def load_found(sentencepiece_model_file, extra_ids, *args, **kwargs):
    found = find(sentencepiece_model_file, extra_ids or 0)
    _tell(os.fspath(sentencepiece_model_file), found)
    try:
      return load(found.path, found.extra_ids, *args, **kwargs)
    except Exception as error:  # TensorFlow's, protobuf's and SentencePiece's
      check(found.path)
      raise UnreachableVocabularyError(
          f'the SentencePiece model {found.path!r} cannot be read '
          f'({type(error).__name__}: {error}): expected the .model file of a '
          f'vocabulary. {_MEND}'
      ) from error

  load_found.asks_t5wild = True
  setattr(module, _LOADER, load_found)


def _twin(end: str) -> str:
  """The same path with T5's 100 sentinels in the folder's name, or without."""
  if _SENTINELS_IN_NAME.search(end):
    return _SENTINELS_IN_NAME.sub('', end)
  folder, _, name = end.rpartition('/')
  return f'{folder}.100extra/{name}'


@functools.cache
def _in_folder(path: str, place: str, extra_ids: int) -> Found:
  named = _SENTINELS_IN_NAME.search(path)
  wanted = extra_ids + (int(named[1]) if named else 0)
  with open(place, 'rb') as file:
    present = len(set(_SENTINEL.findall(file.read())))
  return Found(place, max(0, wanted - present))


@functools.cache
def _tell(path: str, found: Found) -> None:
  if found.path != path:
    logging.info(
        'The vocabulary %s is read from %s; %d sentinels are added.',
        path, found.path, found.extra_ids,
    )  # fmt: skip


def _nowhere(path: str, *, is_remote: bool) -> str:
  tried = [path, *places(path)]
  why = (
      f'its storage was not reached in {reachability.TIMEOUT_SECONDS:.0f} s'
      if is_remote
      else 'there is no such file'
  )
  listed = '\n'.join(f'  {place}' for place in tried)
  return (
      f'the SentencePiece model {path!r} cannot be read: {why}. Tried:\n'
      f'{listed}\nExpected the .model file of the vocabulary. '
      f'{_MEND if is_remote else _MEND_LOCAL}'
  )
