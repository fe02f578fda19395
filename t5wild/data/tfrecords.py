# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads TFRecord files of tf.Example, checksums and all, without TensorFlow.

A record is its length (uint64), the masked CRC-32C of that, its bytes, and the
masked CRC-32C of them, little-endian. An Example is a protocol buffer: a map
from a name to a list of bytes, of floats or of whole numbers.
"""

from collections.abc import Iterator
import dataclasses
import functools
import struct
from typing import Any, BinaryIO
import zlib

import numpy as np

_HEAD_BYTES = 12
_CRC_BYTES = 4
_MASK_DELTA = 0xA282EAD8  # of TensorFlow's masked checksums
_POLYNOMIAL = 0x82F63B78  # CRC-32C (Castagnoli), bits reversed
_BLOCK_BYTES = 1024
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types


class BadRecordError(ValueError):
  """A record that is not what was written; `number` counts from 1."""

  def __init__(self, reason: str, *, number: int):
    """Takes what is wrong."""
    super().__init__(reason)
    self.number = number


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
  """A record and the place where it begins, in bytes of the plain file."""

  offset: int
  data: bytes


@functools.cache
def _tables() -> np.ndarray:
  """Effect of a byte on the CRC-32C, by the bytes after it: [block, 256]."""
  first = np.arange(256, dtype=np.uint32)
  for _ in range(8):
    first = np.where(first & 1, (first >> 1) ^ _POLYNOMIAL, first >> 1)
  first = first.astype(np.uint32)
  tables = [first]
  for _ in range(_BLOCK_BYTES - 1):
    last = tables[-1]
    tables.append((last >> 8) ^ first[last & 0xFF])
  return np.stack(tables)


def crc32c(data: bytes) -> int:
  """The CRC-32C of some bytes."""
  tables = _tables()
  state = np.uint32(0xFFFFFFFF)
  for start in range(0, len(data), _BLOCK_BYTES):
    block = np.frombuffer(data, np.uint8, offset=start)[:_BLOCK_BYTES]
    block = block.copy()
    # The state is what the next four bytes are mixed with.
    old = np.frombuffer(state.astype('<u4').tobytes(), np.uint8)
    count = min(block.size, old.size)
    block[:count] ^= old[:count]
    effects = tables[np.arange(block.size - 1, -1, -1), block]
    state = np.bitwise_xor.reduce(effects)
    if count < old.size:
      rest = int.from_bytes(old[count:].tobytes(), 'little')
      state = np.uint32(int(state) ^ rest)
  return int(state) ^ 0xFFFFFFFF


def masked_crc32c(data: bytes) -> int:
  """The checksum of TFRecord files."""
  crc = crc32c(data)
  return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def read_records(file: BinaryIO) -> Iterator[Record]:
  """Yields the records of a file that is open at its beginning.

  Raises:
    BadRecordError: for a wrong checksum, or an end in the middle of a record.
  """
  number, offset = 0, 0
  while True:
    number += 1
    head = _read(file, _HEAD_BYTES, number=number, may_end=True)
    if not head:
      return
    _check(head[:8], head[8:], number=number, offset=offset, part='length')
    (length,) = struct.unpack('<Q', head[:8])
    data = _read(file, length, number=number)
    crc = _read(file, _CRC_BYTES, number=number)
    _check(data, crc, number=number, offset=offset, part='data')
    yield Record(offset=offset, data=data)
    offset += _HEAD_BYTES + length + _CRC_BYTES


def _read(
    file: BinaryIO, size: int, *, number: int, may_end: bool = False
) -> bytes:
  try:
    data = file.read(size)
  except (OSError, EOFError, zlib.error) as error:  # of gzip
    raise BadRecordError(f'broken gzip: {error}', number=number) from None
  if len(data) < size and not (may_end and not data):
    raise BadRecordError(
        f'the file ends in it, {size - len(data)} bytes early: it is truncated',
        number=number,
    )
  return data


def _check(
    data: bytes, crc: bytes, *, number: int, offset: int, part: str
) -> None:
  found = masked_crc32c(data)
  (written,) = struct.unpack('<I', crc)
  if found != written:
    raise BadRecordError(
        f'the checksum of its {part} is {found:08x}, and {written:08x} is '
        f'written (record at byte {offset})',
        number=number,
    )


def parse_example(data: bytes) -> dict[str, Any]:
  """The features of a serialized tf.Example.

  Returns:
    By name: a list of bytes, or an array of int64 or of float32.

  Raises:
    ValueError: it is none.
  """
  found: dict[str, Any] = {}
  try:
    for number, features in _fields(data):
      if number != 1:
        raise ValueError(f'field {number} is none of a tf.Example')
      for _, entry in _fields(features):
        parts = dict(_fields(entry))
        found[parts[1].decode('utf-8')] = _feature(parts.get(2, b''))
  except (IndexError, KeyError, TypeError, struct.error) as error:
    raise ValueError(f'no tf.Example ({type(error).__name__})') from None
  return found


def _feature(data: bytes) -> Any:
  for kind, body in _fields(data):
    if kind == 1:
      return [value for _, value in _fields(body)]
    if kind == 2:
      return _floats(body)
    if kind == 3:
      return _whole_numbers(body)
  return []


def _floats(body: bytes) -> np.ndarray:
  parts = [
      np.frombuffer(value, '<f4') for _, value in _fields(body)
  ]  # packed, or one by one
  return np.concatenate([*parts, np.zeros(0, np.float32)])


def _whole_numbers(body: bytes) -> np.ndarray:
  parts = []
  for _, value in _fields(body):
    parts.append(
        _varints(value)
        if isinstance(value, bytes)
        else np.array([value], np.uint64)
    )
  return np.concatenate([*parts, np.zeros(0, np.uint64)]).view(np.int64)


def _varints(data: bytes) -> np.ndarray:
  """Packed varints: uint64 [numbers]."""
  values = np.frombuffer(data, np.uint8)
  ends = np.flatnonzero(values < 0x80)
  if not values.size:
    return np.zeros(0, np.uint64)
  if not ends.size or ends[-1] != values.size - 1:
    raise ValueError('a list of numbers ends early')
  starts = np.append(0, ends[:-1] + 1)
  places = np.arange(values.size) - np.repeat(starts, ends - starts + 1)
  parts = (values & 0x7F).astype(np.uint64) << (7 * places).astype(np.uint64)
  return np.bitwise_or.reduceat(parts, starts)


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
  """Yields (field number, value): bytes, or an int for a single varint."""
  place = 0
  while place < len(data):
    tag, place = _varint(data, place)
    number, kind = tag >> 3, tag & 7
    if kind == _VARINT:
      value, place = _varint(data, place)
      yield number, value
      continue
    if kind == _BYTES:
      size, place = _varint(data, place)
    elif kind in (_FIXED32, _FIXED64):
      size = 4 if kind == _FIXED32 else 8
    else:
      raise ValueError(f'wire type {kind} is none')
    if place + size > len(data):
      raise ValueError('a field ends early')
    yield number, data[place : place + size]
    place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
  value = shift = 0
  while True:
    byte = data[place]
    place += 1
    value |= (byte & 0x7F) << shift
    if byte < 0x80:
      return value, place
    shift += 7
