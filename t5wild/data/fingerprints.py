# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What identifies a vocabulary, a task or a file: short, shown to users."""

from collections.abc import Callable, Iterable, Iterator, Mapping
import functools
import hashlib
import json
import os
import sys
import types
from typing import Any

from t5wild import vocabulary_files
from t5wild.data import vocabularies

_LENGTH = 16  # hex digits that are kept of a SHA-256
_CHUNK_BYTES = 1 << 20
# Code that has versions of its own, and that nobody edits between two starts.
_OF_LIBRARIES = ('seqio.', 't5.', 't5wild.', 'tensorflow', 'functools')


def of_value(value: Any) -> str:
  """Fingerprint of what JSON can write: 16 hex digits."""
  text = json.dumps(value, sort_keys=True, separators=(',', ':'))
  return hashlib.sha256(text.encode('utf-8')).hexdigest()[:_LENGTH]


def of_file(path: str | os.PathLike[str]) -> str:
  """SHA-256 of a file's bytes: 64 hex digits."""
  digest = hashlib.sha256()
  with open(path, 'rb') as file:
    while chunk := file.read(_CHUNK_BYTES):
      digest.update(chunk)
  return digest.hexdigest()


def describe_vocabulary(vocabulary: Any) -> dict[str, Any]:
  """What a cache remembers of a vocabulary, enough to read with and compare.

  Two vocabularies of the same pieces have the same 'fingerprint', whichever
  library's they are and wherever their files lie.
  """
  extra_ids = int(getattr(vocabulary, 'extra_ids', 0) or 0)
  path = getattr(vocabulary, 'sentencepiece_model_file', None)
  kind = type(vocabulary).__name__
  identity: dict[str, Any] = {'kind': kind, 'extra_ids': extra_ids}
  model = getattr(vocabulary, 'sp_model', None)  # its bytes, sentinels added
  if isinstance(model, bytes):
    identity['kind'] = 'SentencePiece'
    identity['model'] = hashlib.sha256(model).hexdigest()
  elif kind != 'ByteVocabulary':
    identity['vocab_size'] = int(vocabulary.vocab_size)
  return {
      'fingerprint': of_value(identity),
      'kind': identity['kind'],
      'vocab_size': int(vocabulary.vocab_size),
      'extra_ids': extra_ids,
      'eos_id': vocabulary.eos_id,
      'pad_id': vocabulary.pad_id,
      'unk_id': getattr(vocabulary, 'unk_id', None),
      'path': None if path is None else os.fspath(path),
  }


class StoredVocabulary:
  """A vocabulary as a cache remembers it: its numbers, and text if it can.

  Bytes are always encoded and decoded; SentencePiece is where its model file
  lies where it lay.
  """

  def __init__(self, description: Mapping[str, Any]):
    """Takes what `describe_vocabulary` gave."""
    self._description = dict(description)
    self.vocab_size = description['vocab_size']
    self.extra_ids = description['extra_ids']
    self.eos_id = description['eos_id']
    self.pad_id = description['pad_id']
    self.unk_id = description['unk_id']

  @functools.cached_property
  def _text(self) -> Any:
    if self._description['kind'] == 'ByteVocabulary':
      return vocabularies.ByteVocabulary(self.extra_ids)
    path = self._description['path']
    if self._description['kind'] != 'SentencePiece':
      raise ValueError(
          f'the vocabulary of the cache is a {self._description["kind"]}: '
          'expected bytes or SentencePiece, which encode text without seqio. '
          'Give the objective no text to encode, such as mode_tokens.'
      )
    path = vocabulary_files.local_file(path)
    import sentencepiece

    return sentencepiece.SentencePieceProcessor(model_file=path)

  def encode(self, text: str) -> list[int]:
    """Ids of the text, without end of sequence."""
    return [int(token) for token in self._text.encode(text)]

  def decode(self, ids: Any) -> str:
    """Text of the ids; those of no piece are left out."""
    size = self.vocab_size - self.extra_ids
    return self._text.decode([int(token) for token in ids if token < size])

  def __repr__(self) -> str:
    """Its kind, size and fingerprint."""
    return (
        f'{self._description["kind"]} of {self.vocab_size} ids, fingerprint '
        f'{self._description["fingerprint"]}'
    )


def describe_preprocessor(preprocessor: Callable[..., Any]) -> str:
  """Its module and name, with arguments that functools.partial filled in."""
  inner, given = _unwrapped(preprocessor)
  name = getattr(inner, '__qualname__', type(inner).__qualname__)
  arguments = ', '.join(
      f'{key}={_plain(value)}' for key, value in sorted(given.items())
  )
  return f'{inner.__module__}.{name}({arguments})'


def code_of(preprocessors: Iterable[Callable[..., Any]]) -> dict[str, str]:
  """Hash of the compiled code of each that is of the user's own, by its name.

  Another version of Python compiles otherwise, and is in the hash. What a
  function calls is not.
  """
  found = {}
  for preprocessor in preprocessors:
    inner, _ = _unwrapped(preprocessor)
    code = getattr(inner, '__code__', None)
    if code is not None and not inner.__module__.startswith(_OF_LIBRARIES):
      told = hashlib.sha256(repr(sys.version_info[:2]).encode())
      for part in _parts_of(code):
        told.update(repr(part).encode() + b'\0')
      found[describe_preprocessor(preprocessor)] = told.hexdigest()[:_LENGTH]
  return found


def _parts_of(code: types.CodeType) -> Iterator[Any]:
  """What it does, without names of files and numbers of lines."""
  yield code.co_code
  yield code.co_names
  for constant in code.co_consts:
    if isinstance(constant, types.CodeType):
      yield from _parts_of(constant)
    elif isinstance(constant, frozenset):  # in no order that is kept
      yield sorted(map(repr, constant))
    else:
      yield constant


def _unwrapped(
    preprocessor: Callable[..., Any],
) -> tuple[Callable[..., Any], dict[str, Any]]:
  """The function itself, and arguments that functools.partial filled in."""
  given: dict[str, Any] = {}
  inner = preprocessor
  while True:
    if isinstance(inner, functools.partial):
      given = {**inner.keywords, **given}
      inner = inner.func
    elif hasattr(inner, '__wrapped__'):
      inner = inner.__wrapped__
    else:
      return inner, given


def _plain(value: Any) -> str:
  """A value's text without addresses of memory."""
  if callable(value):
    return getattr(value, '__qualname__', type(value).__qualname__)
  text = repr(value)
  return type(value).__qualname__ if ' at 0x' in text else text
