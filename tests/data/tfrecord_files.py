# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes TFRecord files of tf.Example for tests, without TensorFlow."""

from collections.abc import Iterable, Mapping
import gzip
import struct
from typing import Any

import numpy as np

from t5wild.data import tfrecords

_BYTES = 2  # wire type


def write(path, examples: Iterable[Mapping[str, Any]]) -> str:
  """Writes examples of lists of bytes, of floats or of whole numbers."""
  opener = gzip.open if str(path).endswith('.gz') else open
  with opener(path, 'wb') as file:
    for example in examples:
      file.write(frame(serialize(example)))
  return str(path)


def frame(data: bytes) -> bytes:
  """The bytes by which a record lies in a file."""
  head = struct.pack('<Q', len(data))
  return b''.join([
      head, struct.pack('<I', tfrecords.masked_crc32c(head)),
      data, struct.pack('<I', tfrecords.masked_crc32c(data)),
  ])


def serialize(features: Mapping[str, Any]) -> bytes:
  """The tf.Example of a mapping."""
  entries = []
  for name, values in features.items():
    values = list(values)
    if all(isinstance(value, bytes) for value in values):
      feature = _field(1, b''.join(_field(1, value) for value in values))
    elif all(isinstance(value, float) for value in values):
      feature = _field(2, _field(1, np.array(values, '<f4').tobytes()))
    else:
      packed = b''.join(_varint(int(v) & (1 << 64) - 1) for v in values)
      feature = _field(3, _field(1, packed))
    entries.append(_field(1, _field(1, name.encode()) + _field(2, feature)))
  return _field(1, b''.join(entries))


def _field(number: int, data: bytes) -> bytes:
  return _varint(number << 3 | _BYTES) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
  parts = bytearray()
  while value >= 0x80:
    parts.append(value & 0x7F | 0x80)
    value >>= 7
  parts.append(value)
  return bytes(parts)
