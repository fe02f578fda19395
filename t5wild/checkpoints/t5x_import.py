# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays of checkpoints in T5X's native format, read by TensorStore.

Each array is a zarr folder beside the index. Only the path and the shape come
from the index (see `t5x_index`); the specs that TensorStore opens are made
here, so that nothing in a checkpoint can name another file or host.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import json
import math
import os
from typing import Any

from etils import epath
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import tensorstore as ts

from t5wild.checkpoint_files import kvstores
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import stored
from t5wild.checkpoints import t5x_index
from t5wild.checkpoints import transforms

_MOST_NAMED = 8
_CONTEXT = {
    'file_io_concurrency': {'limit': 128},
    # A piece of which several shards need a part is unpacked once.
    'cache_pool': {'total_bytes_limit': 2**29},
}


class NativeArray(stored.Stored):
  """An array in a zarr folder.

  Attributes:
    spec: What TensorStore opens.
  """

  def __init__(
      self, key: str, spec: Mapping[str, Any], context: ts.Context, *,
      is_bfloat16: bool = False,
  ):  # fmt: skip
    """Begins to open it.

    Args:
      key: Its name in the checkpoint.
      spec: What TensorStore opens.
      context: Shared by the arrays of a checkpoint.
      is_bfloat16: Whether numbers of 16 bits without a sign are bfloat16, as
        T5X wrote them before June 2021.
    """
    self.key = key
    self.spec = spec
    self._is_bfloat16 = is_bfloat16
    self._opening = ts.open(spec, open=True, read=True, context=context)

  def open(self) -> None:
    """Waits until shape and dtype are known.

    Raises:
      ValueError: There is no such array, or it is damaged.
    """
    self._store = self._opening.result()
    self.shape = tuple(self._store.shape)
    self.dtype = np.dtype(self._store.dtype.numpy_dtype)
    if self._is_bfloat16 and self.dtype == np.uint16:
      self.dtype = np.dtype(ml_dtypes.bfloat16)
    pieces = self._store.chunk_layout.read_chunk.shape
    stored.check_pieces(self.key, shape=self.shape, pieces=pieces)

  def read(self, index: stored.Index) -> np.ndarray:
    """Returns a part; reads the pieces of the file that hold it.

    Raises:
      steps.NotACheckpointError: Pieces are missing or cut off.
    """
    stored.check_memory(self.key, index, self.dtype)
    try:
      part = self._store[index].read().result()
    except ValueError as error:  # TensorStore raises nothing narrower.
      raise steps.NotACheckpointError(
          f'{self.key} cannot be read ({error}), expected all pieces of the '
          'array: the checkpoint is damaged; copy it again'
      ) from error
    part = np.asarray(part)
    return part.view(self.dtype) if part.dtype != self.dtype else part

  def missing_piece(self) -> str | None:
    """Returns a file of a local array that is not there or empty, if any."""
    folder = self.spec['kvstore'].get('path', '')
    if self.spec['kvstore']['driver'] != 'file' or not os.path.isdir(folder):
      return None
    metadata = json.loads((epath.Path(folder) / '.zarray').read_text())
    sign = metadata.get('dimension_separator', '.')
    there = _files(folder)
    counts = [
        -(-size // piece)
        for size, piece in zip(self.shape, metadata['chunks'], strict=True)
    ]
    # The first that lacks is soon found, however many a damaged file claims.
    names = (sign.join(map(str, place)) or '0' for place in _places(counts))
    return next((name for name in names if name not in there), None)


def _places(counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
  """Yields the positions in a grid, one at a time."""
  for number in range(math.prod(counts)):
    place = []
    for count in reversed(counts):
      number, position = divmod(number, count)
      place.append(position)
    yield tuple(reversed(place))


def _files(folder: str) -> set[str]:
  """Names below a folder of the files that have something in them."""
  found = set()
  for parent, _, names in os.walk(folder, followlinks=True):
    for name in names:
      path = os.path.join(parent, name)
      if os.path.getsize(path):
        found.add(os.path.relpath(path, folder))
  return found


def read_structure(
    folder: epath.Path, *, trust_paths: bool = False
) -> dict[str, stored.Stored]:
  """Returns the arrays of a checkpoint by key, without their numbers.

  Args:
    folder: It holds a file `checkpoint`; links in it were looked at.
    trust_paths: Whether its index may point out of the folder.

  Raises:
    steps.NotACheckpointError: It is damaged; names the arrays.
    confinement.UnsafeCheckpointError: It points out of the folder.
  """
  index = t5x_index.read_index(folder, trust_paths=trust_paths)
  context = ts.Context(_CONTEXT)
  arrays = {}
  for key, leaf in index.leaves.items():
    if isinstance(leaf, np.ndarray):
      arrays[key] = stored.InMemory(leaf, key=key)
    else:
      arrays[key] = NativeArray(
          key,
          _make_spec(folder, leaf),
          context,
          is_bfloat16=index.version == 2 and transforms.is_target(key),
      )
  _open_all(arrays, index, folder)
  return arrays


def _make_spec(folder: epath.Path, leaf: t5x_index.Spec) -> dict[str, Any]:
  if leaf.foreign is not None:
    return _trusted_spec(folder, leaf.foreign)
  return {
      'driver': 'zarr',
      'kvstore': kvstores.make_kvstore(folder, leaf.path),
      # T5X writes every piece, zeros too: one that is not there is lost.
      'fill_missing_data_reads': False,
  }


def _trusted_spec(
    folder: epath.Path, foreign: Mapping[str, Any]
) -> dict[str, Any]:
  """A spec as it is; a relative path in it counts from the folder."""
  spec = {k: v for k, v in foreign.items() if k not in ('metadata', 'dtype')}
  store = spec['kvstore']
  if isinstance(store, dict) and store['driver'] in ('file', 'gfile'):
    path = spec.pop('path', None) or store.get('path', '')
    path = os.path.normpath(os.path.join(folder, path)) + '/'
    spec['kvstore'] = {'driver': 'file', 'path': path}
  return spec


def _open_all(
    arrays: Mapping[str, stored.Stored],
    index: t5x_index.Index,
    folder: epath.Path,
) -> None:
  """Opens what was begun; all that is wrong is told at once."""
  wrong = []
  for key, array in arrays.items():
    if not isinstance(array, NativeArray):
      continue
    try:
      array.open()
    except ValueError as error:  # TensorStore raises nothing narrower.
      wrong.append(f'{key}: {_first_line(error)}')
      continue
    shape = index.leaves[key].shape
    if shape is not None and shape != array.shape:
      wrong.append(
          f'{key}: {list(array.shape)} in its folder, {list(shape)} in the '
          'index'
      )
    said = index.leaves[key].dtype
    if said is not None and not _is_alike(array.dtype, said):
      wrong.append(
          f'{key}: {array.dtype.name} in its folder, {said} in the index'
      )
  _refuse(wrong, folder)


def _is_alike(dtype: np.dtype, said: str) -> bool:
  """Whether both are of floats, or neither is; else bits would be misread."""
  if 'uint16' in (dtype.name, said):  # As which T5X once wrote bfloat16.
    return True
  is_float = [jnp.issubdtype(each, jnp.floating) for each in (dtype, said)]
  return is_float[0] == is_float[1] or dtype == jnp.dtype(said)


def check_complete(arrays: Iterable[stored.Stored], folder: str) -> None:
  """Refuses arrays of which pieces are missing, before any is read.

  Raises:
    steps.NotACheckpointError: Names the arrays, and a piece of each.
  """
  wrong = []
  for array in arrays:
    piece = array.missing_piece() if isinstance(array, NativeArray) else None
    if piece is not None:
      wrong.append(f'{array.key}: its piece {piece!r} is missing or empty')
  _refuse(wrong, folder)


def _refuse(wrong: list[str], folder: str | epath.Path) -> None:
  if not wrong:
    return
  lines = '\n'.join(f'  {line}' for line in wrong[:_MOST_NAMED])
  if len(wrong) > _MOST_NAMED:
    lines += f'\n  ... and {len(wrong) - _MOST_NAMED} more'
  raise steps.NotACheckpointError(
      f'{folder} is not whole, {len(wrong)} of its arrays cannot be read:\n'
      f'{lines}\nexpected all that its index names: copy it again, or take '
      'another one'
  )


def _first_line(error: Exception) -> str:
  return str(error).split('\n', 1)[0][:300]
