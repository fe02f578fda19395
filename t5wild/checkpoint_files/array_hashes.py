# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A hash of an array's numbers that does not depend on where they lie.

Each number is mixed with its place in the whole array, and the results are
added modulo 2^32. A sum has no order: parts that lie on other devices or hosts
are hashed where they are, in any cut, and added up. The mixing is that of
MurmurHash3's end (Appleby, 2011), which no two inputs share: a single changed
number is always found, several but once in 2^32.
"""

from collections.abc import Iterator, Mapping, Sequence
import json
import math
import os

from etils import epath
import numpy as np

from t5wild.checkpoint_files import file_hashes

FOLDER = file_hashes.FOLDER
# Constants of the mixing, also for who computes it on devices.
PLACE = 0x9E3779B1
FIRST, FIRST_SHIFT = 0x85EBCA6B, 15
SECOND, SECOND_SHIFT = 0xC2B2AE35, 13
MODULUS = 2**32

_VERSION = 1
_BLOCK = 2**15  # numbers; the block and its places stay in the cache
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint32}


def can_hash(dtype: np.dtype) -> bool:
  """Whether arrays of a dtype are hashed: all but complex ones and objects."""
  return dtype.itemsize in _WORDS and dtype.kind in 'biufV'


def hash_part(
    part: np.ndarray, *, start: Sequence[int], shape: Sequence[int]
) -> int:
  """Returns what a part of an array adds to the hash of the whole.

  Args:
    part: Some of the numbers, a block.
    start: Where the block begins in the array.
    shape: Of the whole array.
  """
  words, start, shape = _as_words(part, start, shape)
  rows = words.reshape(-1, words.shape[-1])
  if not rows.size:
    return 0
  places = _row_places(words.shape, start, shape)
  columns = np.arange(start[-1], start[-1] + rows.shape[1], dtype=np.uint32)
  columns *= np.uint32(PLACE)
  total = 0
  for first, last, left, right in _blocks(rows.shape):
    place = (places[first:last, None] + columns[None, left:right]).reshape(-1)
    total += _mixed_sum(rows[first:last, left:right].reshape(-1), place)
  return total % MODULUS


def _as_words(part, start, shape):
  """The same block as unsigned integers of at most 32 bits, in rows."""
  part = np.asarray(part)
  if part.ndim == 0:
    part, start, shape = part[None], (0,), (1,)
  size = part.dtype.itemsize
  if size not in _WORDS:
    raise ValueError(
        f'an array of {part.dtype} ({size} bytes a number) was to be hashed, '
        f'expected one of {sorted(_WORDS)} bytes: save it as another dtype'
    )
  words = np.ascontiguousarray(part).view(_WORDS[size])
  pieces = words.shape[-1] // max(part.shape[-1], 1)
  start = (*start[:-1], start[-1] * pieces)
  shape = (*shape[:-1], shape[-1] * pieces)
  return words, start, shape


def _row_places(
    part_shape: Sequence[int], start: Sequence[int], shape: Sequence[int]
) -> np.ndarray:
  """The place of the first number of each row, times the constant."""
  places = np.zeros((), np.uint32)
  stride = shape[-1]
  for axis in reversed(range(len(shape) - 1)):
    along = np.arange(part_shape[axis], dtype=np.uint64) + np.uint64(
        start[axis]
    )
    along = (along * np.uint64(stride * PLACE % MODULUS)).astype(np.uint32)
    places = along.reshape(-1, *[1] * places.ndim) + places
    stride *= shape[axis]
  return places.reshape(-1)


def _blocks(shape: tuple[int, int]) -> Iterator[tuple[int, int, int, int]]:
  """First and last row, left and right column of blocks in the cache."""
  num_rows, num_columns = shape
  width = min(num_columns, _BLOCK)
  height = max(1, _BLOCK // width)
  for first in range(0, num_rows, height):
    for left in range(0, num_columns, width):
      yield first, first + height, left, left + width


def _mixed_sum(words: np.ndarray, place: np.ndarray) -> int:
  mixed = np.bitwise_xor(place, words, out=place)
  scratch = np.empty_like(mixed)
  for factor, shift in ((FIRST, FIRST_SHIFT), (SECOND, SECOND_SHIFT)):
    np.multiply(mixed, np.uint32(factor), out=mixed)
    np.right_shift(mixed, np.uint32(shift), out=scratch)
    np.bitwise_xor(mixed, scratch, out=mixed)
  return int(mixed.sum(dtype=np.uint64))


def hash_array(array: np.ndarray) -> int:
  """Returns the hash of a whole array."""
  array = np.asarray(array)
  return hash_part(array, start=(0,) * array.ndim, shape=array.shape)


def file_name(process: int, count: int) -> str:
  """Name of what one process of a run writes of the hashes."""
  return f'arrays.process_{process:05d}-of-{count:05d}.json'


def to_text(entries: Mapping[str, tuple[Sequence[int], str, int]]) -> str:
  """Returns the contents of a file: (shape, dtype, share of hash) by key."""
  return json.dumps({
      'version': _VERSION,
      'arrays': {
          key: {
              'shape': [int(size) for size in shape],
              'dtype': str(dtype),
              'hash': f'{share % MODULUS:08x}',
          }
          for key, (shape, dtype, share) in entries.items()
      },
  })


def has_any(checkpoint: str | os.PathLike[str]) -> bool:
  """Whether hashes of arrays were written, whole or not."""
  folder = epath.Path(checkpoint) / FOLDER
  return folder.is_dir() and any(
      path.name.startswith('arrays.') for path in folder.iterdir()
  )


def read(
    checkpoint: str | os.PathLike[str],
) -> dict[str, tuple[tuple[int, ...], str, int]]:
  """Returns shape, dtype and hash by key of array.

  Raises:
    file_hashes.NoHashesError: They are not there, or not all of them.
  """
  folder = epath.Path(checkpoint) / FOLDER
  found: dict[str, tuple[tuple[int, ...], str, int]] = {}
  try:
    files = sorted(
        path for path in folder.iterdir() if path.name.startswith('arrays.')
    )
    for path in files:
      for key, entry in json.loads(path.read_text())['arrays'].items():
        before = found.get(key, ((), '', 0))[2]
        share = int(entry['hash'], 16)
        found[key] = (
            tuple(entry['shape']), entry['dtype'], (before + share) % MODULUS
        )  # fmt: skip
    count = int(files[0].stem.rsplit('-of-', 1)[1]) if files else 0
  except (
      OSError, ValueError, LookupError, TypeError, AttributeError
  ) as error:  # fmt: skip
    raise _no_hashes(checkpoint, repr(error)) from error
  if not files or len(files) != count:
    raise _no_hashes(checkpoint, f'{len(files)} of {count or 1} files')
  return found


def _no_hashes(checkpoint, why: str) -> file_hashes.NoHashesError:
  return file_hashes.NoHashesError(
      f'{checkpoint} has no hashes of its arrays ({why}), expected those that '
      f'a run writes to {FOLDER}/ as it saves: it is older, or of somebody '
      'else; a run that restores and saves it again writes them'
  )


def nbytes(shape: Sequence[int], dtype: str) -> int:
  """Bytes of an array; dtypes that numpy does not know count by their name."""
  digits = ''.join(c for c in dtype if c.isdigit())
  bits = 8 if dtype == 'bool' else int(digits[:2] or 8)
  return math.prod(shape) * max(bits // 8, 1)
