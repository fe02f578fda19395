# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""TFRecord files: TensorFlow's own are read, and what is damaged is told."""

import io

import numpy as np
import pytest

from t5wild.data import tfrecords
from tests.data import tfrecord_files

# The check value of CRC-32C, and RFC 3720's of 32 zeros and of 0 to 31.
_KNOWN = {
    b'123456789': 0xE3069283,
    bytes(32): 0x8A9136AA,
    bytes(range(32)): 0x46DD794E,
    b'': 0,
}


def _by_bits(data: bytes) -> int:
  """CRC-32C as its definition says."""
  state = 0xFFFFFFFF
  for byte in data:
    state ^= byte
    for _ in range(8):
      state = (state >> 1) ^ (0x82F63B78 if state & 1 else 0)
  return state ^ 0xFFFFFFFF


@pytest.mark.parametrize(('data', 'crc'), _KNOWN.items())
def test_the_checksum_has_its_published_values(data, crc):
  assert tfrecords.crc32c(data) == crc


@pytest.mark.parametrize('size', [1, 3, 4, 5, 1023, 1024, 1025, 1027, 2500])
def test_the_checksum_is_that_of_its_definition_at_every_length(size):
  data = np.random.default_rng(size).bytes(size)
  assert tfrecords.crc32c(data) == _by_bits(data)


def _read(data: bytes) -> list[dict]:
  return [
      tfrecords.parse_example(record.data)
      for record in tfrecords.read_records(io.BytesIO(data))
  ]


def _file(count: int) -> bytes:
  return b''.join(
      tfrecord_files.frame(tfrecord_files.serialize({'n': [index, 300]}))
      for index in range(count)
  )


def test_any_flipped_bit_is_noticed_in_its_record():
  whole = _file(3)
  size = len(whole) // 3
  for place in range(size, 2 * size):
    damaged = bytearray(whole)
    damaged[place] ^= 4
    with pytest.raises(tfrecords.BadRecordError) as error:
      _read(bytes(damaged))
    assert error.value.number == 2


def test_an_end_in_the_middle_of_a_record_is_noticed():
  whole = _file(2)
  for place in range(len(whole) // 2 + 1, len(whole)):
    with pytest.raises(tfrecords.BadRecordError, match='truncated') as error:
      _read(whole[:place])
    assert error.value.number == 2


@pytest.mark.parametrize('data', [b'\xff\xff', b'hello there', b'\x12\x01a'])
def test_what_is_no_example_is_refused(data):
  with pytest.raises(ValueError):
    tfrecords.parse_example(data)
