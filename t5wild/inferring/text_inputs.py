# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads records of text: lines, JSON lines and TFRecords, told where broken.

A record is a dict of what stands in the file; its texts are strings.
"""

import codecs
from collections.abc import Iterable, Iterator, Sequence, Set
import glob
import io
import json
import os
import sys
from typing import Any

STDIN = '-'
FILE_TYPES = ('text', 'jsonl', 'tfrecord')
_ENDINGS = {
    '.jsonl': 'jsonl', '.tfrecord': 'tfrecord', '.tfrecords': 'tfrecord'
}  # fmt: skip

Record = dict[str, Any]


class BadInputError(ValueError):
  """Inputs that cannot be read; nothing was compiled."""


def find_files(paths: str | Sequence[str]) -> list[str]:
  """Returns the files of paths and globs, in order; '-' is standard input.

  Raises:
    BadInputError: There is none.
  """
  given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
  found = []
  for path in map(os.fspath, given):
    is_one = path == STDIN or os.path.exists(path)  # `a[1].txt`, too
    files = [path] if is_one else sorted(glob.glob(path))
    files = [file for file in files if not os.path.isdir(file)]
    if not files:
      raise BadInputError(
          f'there is no input file {path!r}: expected a file, a glob, or - for '
          f'standard input. Correct the path (from {os.getcwd()}).'
      )
    found += files
  if not found:
    raise BadInputError(
        f'the input files are {paths!r}: expected at least one. Name it.'
    )
  return found


def type_of(path: str, file_type: str) -> str:
  """Returns how to read a file; 'auto' goes by the end of its name.

  Raises:
    BadInputError: The type is none.
  """
  if file_type in FILE_TYPES:
    return file_type
  if file_type != 'auto':
    raise BadInputError(
        f'file_type is {file_type!r}: expected one of {FILE_TYPES}, or '
        "'auto', which goes by the name's end. Correct it."
    )
  ending = os.path.splitext(path)[1]
  if '.tfrecord-' in os.path.basename(path):  # of a sharded data set
    return 'tfrecord'
  return _ENDINGS.get(ending, 'text')


class TextInputs:
  """Records of some files, which are checked before anything is made of them.

  Attributes:
    keys: Fields that every record must have, each a text.
  """

  def __init__(
      self,
      files: Sequence[str],
      *,
      file_type: str,
      inputs_key: str,
      other_keys: Sequence[str] = (),
      unread_keys: Set[str] = frozenset(),
  ):
    """Takes the files; standard input is read at once.

    Args:
      files: Paths, '-' being standard input.
      file_type: One of `FILE_TYPES`, or 'auto'.
      inputs_key: Field of a record that a line of text is.
      other_keys: Fields that a record must have, too.
      unread_keys: Fields that a record must not have: a user would think that
        they are read.

    Raises:
      BadInputError: A file type does not have the fields, or is none.
    """
    self._files = [(path, type_of(path, file_type)) for path in files]
    self._inputs_key = inputs_key
    self.keys = (inputs_key, *other_keys)
    self._unread_keys = unread_keys
    self._stdin = b''
    if STDIN in files:
      self._stdin = sys.stdin.buffer.read()
    for path, kind in self._files:
      if kind == 'text' and other_keys:
        raise BadInputError(
            f'{_named(path)} is read as text, which has no field '
            f'{other_keys[0]!r}: expected JSON lines such as '
            f'{{"{inputs_key}": "...", "{other_keys[0]}": "..."}}. Give a '
            '.jsonl file, or say that it is one (--input_type=jsonl).'
        )

  def records(self) -> Iterator[tuple[bytes, Record]]:
    """Yields (raw bytes, record) in order.

    Raises:
      BadInputError: A record is broken; names the file and the line.
    """
    for path, kind in self._files:
      if kind == 'tfrecord':
        yield from self._tf_records(path)
        continue
      with self._open(path) as file:
        yield from self._lines(file, path, kind)

  def _open(self, path: str) -> Iterable[bytes]:
    if path == STDIN:
      return io.BytesIO(self._stdin)
    return open(path, 'rb')

  def _lines(self, file, path, kind) -> Iterator[tuple[bytes, Record]]:
    number = 0
    for number, line in enumerate(file, 1):
      place = f'{_named(path)}, line {number}'
      if number == 1:  # editors of Windows put it before the text
        line = line.removeprefix(codecs.BOM_UTF8)
      try:
        text = line.decode('utf-8')
      except UnicodeDecodeError as error:
        raise BadInputError(
            f'{place} is not UTF-8 (byte {line[error.start]:#04x} at column '
            f'{error.start + 1}): expected UTF-8 text. Convert the file, e.g. '
            'by iconv -f latin1 -t utf-8.'
        ) from error
      text = text.removesuffix('\n').removesuffix('\r')
      yield line, (
          {self._inputs_key: text}
          if kind == 'text'
          else self._json_record(text, place)
      )
    if not number:
      raise BadInputError(
          f'{_named(path)} is empty: expected a line for each input. Give '
          'another file.'
      )

  def _json_record(self, text: str, place: str) -> Record:
    try:
      record = json.loads(text)
    except ValueError as error:
      raise BadInputError(
          f'{place} is no JSON ({error}): {text[:60]!r}; expected an object '
          f'such as {{"{self._inputs_key}": "..."}}. Mend the line.'
      ) from None  # its traceback would tell nothing more
    if not isinstance(record, dict):
      raise BadInputError(
          f'{place} is {text[:60]!r}: expected an object such as '
          f'{{"{self._inputs_key}": "..."}}. Mend the line.'
      )
    self._check_keys(record, place)
    if '\\u' in text:
      _check_is_text(record, place)
    return record

  def _check_keys(self, record: Record, place: str) -> None:
    for key in self.keys:
      if not isinstance(record.get(key), str):
        raise BadInputError(
            f'{place} has {key!r} = {record.get(key)!r} among the fields '
            f'{sorted(record)}: expected a text there. Mend the line, or name '
            'the field (--inputs_key, --targets_key).'
        )
    for key in self._unread_keys & record.keys():
      raise BadInputError(
          f'{place} has {key!r} = {str(record[key])[:60]!r}, which is not read '
          'where whole texts are scored: expected no such field. Drop it, or '
          'give a length for it (--input_length).'
      )

  def _tf_records(self, path: str) -> Iterator[tuple[bytes, Record]]:
    import tensorflow as tf

    number = 0
    records = tf.data.TFRecordDataset(path).as_numpy_iterator()
    while True:
      place = f'{path}, record {number + 1}'
      try:
        raw = next(records, None)
        if raw is None:
          break
        example = tf.train.Example.FromString(raw)
      except (tf.errors.DataLossError, ValueError, TypeError) as error:
        raise _no_tf_record(place, error) from None
      except Exception as error:  # protobuf's DecodeError has several homes
        if type(error).__name__ != 'DecodeError':
          raise
        raise _no_tf_record(place, error) from None
      record = {
          key: _text_of(feature.bytes_list.value[0], place, key)
          for key, feature in example.features.feature.items()
          if key in {*self.keys, *self._unread_keys}
          and feature.bytes_list.value
      }
      self._check_keys(record, place)
      yield raw, record
      number += 1
    if not number:
      raise BadInputError(
          f'{path} is empty: expected tf.train.Examples. Give another file.'
      )


def _check_is_text(record: Record, place: str) -> None:
  """Refuses half of a pair of UTF-16, which JSON can say and UTF-8 cannot."""
  try:
    json.dumps(record, ensure_ascii=False).encode('utf-8')
  except UnicodeEncodeError as error:
    half = error.object[error.start]
    raise BadInputError(
        f'{place} has {half!a}, half of a character: expected whole ones, as '
        r'in "\ud83d\ude00". Write the line again, by a program that does not '
        'cut within characters.'
    ) from None


def _no_tf_record(place: str, error: Exception) -> BadInputError:
  return BadInputError(
      f'{place} is broken ({str(error).splitlines()[0][:80]}): expected '
      'serialised tf.train.Examples. Write the file again, or set file_type.'
  )


def _text_of(value: bytes, place: str, key: str) -> str:
  try:
    return value.decode('utf-8')
  except UnicodeDecodeError as error:
    raise BadInputError(
        f'{place} has a {key!r} that is not UTF-8 ({value[:20]!r}): expected '
        'UTF-8 text. Convert it.'
    ) from error


def _named(path: str) -> str:
  return 'standard input' if path == STDIN else path
