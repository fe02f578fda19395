# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Safetensors files: read in parts, and written one array at a time.

https://huggingface.co/docs/safetensors: the length of a header in 8 bytes, the
header (JSON: name, dtype, shape, place), then the numbers. Nothing in one can
be run. bfloat16 is read and written without PyTorch.
"""

from collections.abc import Mapping
import json
import math
import os
from typing import Any

import ml_dtypes
import numpy as np

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import stored as stored_lib

_MOST_HEADER_BYTES = 100_000_000  # The format's own limit.
_DTYPES = {
    'F64': np.dtype(np.float64),
    'F32': np.dtype(np.float32),
    'F16': np.dtype(np.float16),
    'BF16': np.dtype(ml_dtypes.bfloat16),
    'I64': np.dtype(np.int64),
    'I32': np.dtype(np.int32),
    'U8': np.dtype(np.uint8),
    'BOOL': np.dtype(np.bool_),
}
_PACKED = ('F8_', 'F6_', 'F4', 'I8', 'U16', 'U32', 'U64', 'I16', 'C64')
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


class SafetensorsArray(stored_lib.Stored):
  """An array in a safetensors file."""

  def __init__(
      self, key: str, path: str, *, offset: int, shape: tuple[int, ...],
      dtype: np.dtype,
  ):  # fmt: skip
    """Knows where the numbers lie; the file is opened when they are read."""
    self.key = key
    self.shape = shape
    self.dtype = dtype
    self._path = path
    self._offset = offset

  def read(self, index: stored_lib.Index) -> np.ndarray:
    """Returns a part."""
    if not math.prod(self.shape):
      return np.empty(self.shape, self.dtype)[index]
    numbers = np.memmap(
        self._path, self.dtype, mode='r', offset=self._offset, shape=self.shape
    )
    return np.array(numbers[index])


def read_file(path: str) -> dict[str, SafetensorsArray]:
  """Returns the arrays of a file by name, without their numbers.

  Raises:
    steps.NotACheckpointError: The file is damaged.
  """
  try:
    size = os.path.getsize(path)
    with open(path, 'rb') as file:
      length = int.from_bytes(file.read(8), 'little')
      if not 2 <= length <= min(size - 8, _MOST_HEADER_BYTES):
        raise _damaged(path, f'its header would have {length} of {size} bytes')
      text = file.read(length)
  except OSError as error:
    raise _damaged(path, str(error)) from error
  try:
    header = json.loads(text)
    header.pop('__metadata__', None)
    return {
        name: _array(name, entry, path, start=8 + length, size=size)
        for name, entry in header.items()
    }
  except steps.NotACheckpointError:
    raise
  except (
      ValueError, KeyError, TypeError, AttributeError, RecursionError
  ) as error:  # fmt: skip
    raise _damaged(path, repr(error)) from error


def _array(
    name: str, entry: Mapping[str, Any], path: str, *, start: int, size: int
) -> SafetensorsArray:
  if str(entry['dtype']).startswith(_PACKED):
    raise steps.NotACheckpointError(
        f'{path}: {name} is of {entry["dtype"]}, expected one of '
        f'{sorted(_DTYPES)}: packed or quantised numbers are not read; take '
        'the model that it was made of'
    )
  dtype, shape = _DTYPES[entry['dtype']], tuple(entry['shape'])
  if not all(type(size) is int for size in (*shape, *entry['data_offsets'])):
    raise ValueError(f'{name} has shape {shape} at {entry["data_offsets"]}')
  first, last = entry['data_offsets']
  num_bytes = math.prod(shape) * dtype.itemsize
  if min((first, *shape), default=0) < 0 or last - first != num_bytes:
    raise ValueError(f'{name} of shape {shape} has {last - first} bytes')
  if start + last > size:
    raise ValueError(f'{name} ends at byte {start + last} of {size}')
  return SafetensorsArray(
      name, path, offset=start + first, shape=shape, dtype=dtype
  )


def _damaged(path: str, what: str) -> steps.NotACheckpointError:
  return steps.NotACheckpointError(
      f'{path} cannot be read as safetensors ({what}), expected a whole file '
      'of arrays: it is cut off or something else; copy it again'
  )


def write_file(
    path: str, arrays: Mapping[str, stored_lib.Stored]
) -> list[str]:
  """Writes arrays, of which one is in memory at a time.

  Returns the names of those that hold numbers that are not finite.

  Raises:
    ValueError: An array of a dtype that the format does not have.
  """
  header, at = {'__metadata__': {'format': 'pt'}}, 0
  for name, array in arrays.items():
    if np.dtype(array.dtype) not in _NAMES:
      raise ValueError(
          f'{name} is of {array.dtype}, expected one of {sorted(_DTYPES)} for '
          'safetensors: give --dtype'
      )
    header[name] = {
        'dtype': _NAMES[np.dtype(array.dtype)],
        'shape': list(array.shape),
        'data_offsets': [at, at + array.nbytes],
    }
    at += array.nbytes
  text = json.dumps(header, separators=(',', ':')).encode()
  text += b' ' * (-len(text) % 8)
  with open(path, 'wb') as file:
    file.write(len(text).to_bytes(8, 'little') + text)
    not_finite = []
    for name, array in arrays.items():
      numbers = np.ascontiguousarray(np.asarray(array))
      if not np.isfinite(numbers).all():
        not_finite.append(name)
      file.write(numbers.view(np.uint8).data if numbers.size else b'')
    file.flush()
    os.fsync(file.fileno())
  return not_finite
