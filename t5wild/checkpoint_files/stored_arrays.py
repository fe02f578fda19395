# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The arrays of a checkpoint of Orbax, one after the other, by TensorStore."""

from collections.abc import Iterator
import os

import numpy as np
import tensorstore as ts

from t5wild.checkpoint_files import array_hashes
from t5wild.checkpoint_files import array_specs
from t5wild.checkpoint_files import file_hashes
from t5wild.checkpoint_files import steps


def names(checkpoint: str | os.PathLike[str]) -> list[str]:
  """Returns the keys of the arrays, in order.

  Raises:
    steps.NotACheckpointError: The path is none, or damaged.
  """
  return sorted(array_specs.names(steps.state_folder(checkpoint)))


def read(checkpoint: str | os.PathLike[str], key: str) -> np.ndarray:
  """Returns a whole array.

  Raises:
    steps.NotACheckpointError: It cannot be read.
  """
  folder = steps.state_folder(checkpoint)
  spec = array_specs.make_spec(folder, key.replace('/', '.'))
  try:
    array = ts.open(spec, open=True, read=True).result()
    return np.asarray(array.read().result())
  except ValueError as error:  # TensorStore raises nothing narrower.
    text = str(error).split(' [tensorstore_spec=', 1)[0]
    raise steps.NotACheckpointError(
        f'{key} in {folder} cannot be read ({text}), expected an array as '
        'Orbax writes: the checkpoint is damaged; take another copy'
    ) from error


def damages(checkpoint: str | os.PathLike[str]) -> Iterator[tuple[str, str]]:
  """Yields each array that is not what was saved, and what is wrong with it.

  Raises:
    file_hashes.NoHashesError: The checkpoint has no hashes of its arrays.
    steps.NotACheckpointError: The path is none, or has no description.
  """
  expected = array_hashes.read(checkpoint)
  there = names(checkpoint)
  for key in sorted(set(expected) - set(there)):
    yield key, 'is missing'
  for key in there:
    if key not in expected:
      continue
    try:
      found = array_hashes.hash_array(read(checkpoint, key))
    except steps.NotACheckpointError as error:
      yield key, str(error)
      continue
    if found != expected[key][2]:
      yield key, f'has the hash {found:08x}, and had {expected[key][2]:08x}'


def hashes(checkpoint: str | os.PathLike[str]) -> dict[str, tuple]:
  """Returns shape, dtype and hash by key; computed where none were saved.

  Raises:
    steps.NotACheckpointError: The path is none, or damaged.
  """
  try:
    return array_hashes.read(checkpoint)
  except file_hashes.NoHashesError:
    arrays = ((key, read(checkpoint, key)) for key in names(checkpoint))
    return {
        key: (a.shape, str(a.dtype), array_hashes.hash_array(a))
        for key, a in arrays
    }
