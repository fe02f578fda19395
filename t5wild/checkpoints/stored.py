# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""An array in a checkpoint, and arrays made of others, read in parts.

Names, shapes and dtypes are known at once; numbers are read when asked for,
and of an array that lies on many hosts each reads its own part.
"""

import abc
from collections.abc import Sequence
import math

import jax
import numpy as np

Index = tuple[slice, ...]

_MOST_BLOCK_BYTES = 2**30


class Stored(abc.ABC):
  """An array that is read when asked for.

  Attributes:
    key: Where it comes from, for messages.
    shape: Its shape.
    dtype: Its dtype.
  """

  key: str
  shape: tuple[int, ...]
  dtype: np.dtype

  @abc.abstractmethod
  def read(self, index: Index) -> np.ndarray:
    """Returns a part; `index` has a start and a stop for every dimension."""

  def sources(self) -> list['Stored']:
    """Returns the arrays of the checkpoint that it is made of."""
    return [self]

  @property
  def nbytes(self) -> int:
    """Bytes of the whole array."""
    return math.prod(self.shape) * np.dtype(self.dtype).itemsize

  def get(self) -> np.ndarray:
    """Returns all of it; T5X's name for reading a lazy array."""
    return np.asarray(self)

  def __array__(self, dtype=None, copy=None) -> np.ndarray:
    """The numbers, read now, on the calling process alone."""
    del copy  # They are always new.
    return np.asarray(self.read(whole(self.shape)), dtype)


def whole(shape: Sequence[int]) -> Index:
  """Returns the index of everything."""
  return tuple(slice(0, size) for size in shape)


def check_pieces(
    key: str, *, shape: Sequence[int], pieces: Sequence[int] | None
) -> None:
  """Refuses pieces of a file that are larger than the array.

  A piece is unpacked as a whole: one that claims to be huge ends the process,
  since TensorStore cannot do without the memory.

  Raises:
    ValueError: They are.
  """
  pairs = zip(pieces or (), shape, strict=False)
  if any(piece > max(size, 1) for piece, size in pairs):
    raise ValueError(
        f'{key} of shape {list(shape)} has pieces of {list(pieces)}, expected '
        'none larger than the array: it is damaged or made to harm; copy it '
        'again'
    )


def check_memory(key: str, index: Index, dtype: np.dtype) -> None:
  """Refuses to read what this machine cannot hold.

  Raises:
    MemoryError: It cannot; TensorStore would end the process.
  """
  size = _size(index) * np.dtype(dtype).itemsize
  try:
    np.empty(size, np.uint8)
  except (MemoryError, ValueError) as error:
    raise MemoryError(
        f'{key} has {size:,} bytes to be read at once, expected as many as '
        'there is memory for: restore it on a mesh of more hosts, or on a '
        'larger machine'
    ) from error


def place(array: Stored, target: jax.ShapeDtypeStruct) -> jax.Array:
  """Reads an array to where it shall lie: each process only its shards.

  Shards that make a block together are read at once, if it is not too large: a
  piece of a file of which several need a part is then unpacked once.
  """
  parts = _local_parts(array.shape, target.sharding)
  block = tuple(
      slice(min(part.start for part in axis), max(part.stop for part in axis))
      for axis in zip(*parts, strict=True)
  )
  is_block = _size(block) == sum(map(_size, parts))
  if is_block and _size(block) * array.dtype.itemsize <= _MOST_BLOCK_BYTES:
    parts = [block]
  read = [
      (part, np.asarray(array.read(part)).astype(target.dtype, copy=False))
      for part in parts
  ]

  def cut(index):
    index = _bounded(index, array.shape)
    part, numbers = next(found for found in read if _holds(found[0], index))
    inside = tuple(
        slice(i.start - p.start, i.stop - p.start)
        for i, p in zip(index, part, strict=True)
    )
    # A copy each: devices must not share memory that a step gives back.
    return np.array(numbers[inside])

  return jax.make_array_from_callback(target.shape, target.sharding, cut)


def _local_parts(
    shape: Sequence[int], sharding: jax.sharding.Sharding
) -> list[Index]:
  """The different parts of an array that lie on devices of this process."""
  indices = sharding.addressable_devices_indices_map(tuple(shape)).values()
  parts = [_bounded(index, shape) for index in indices]
  # Slices cannot be hashed before Python 3.12.
  return list({tuple((p.start, p.stop) for p in i): i for i in parts}.values())


def _bounded(index: Index, shape: Sequence[int]) -> Index:
  """The same index with a start and a stop for every dimension."""
  return tuple(
      slice(*part.indices(size)[:2])
      for part, size in zip(index, shape, strict=True)
  )


def _holds(outer: Index, inner: Index) -> bool:
  return all(
      a.start <= b.start and b.stop <= a.stop
      for a, b in zip(outer, inner, strict=True)
  )


def _size(index: Index) -> int:
  return math.prod(part.stop - part.start for part in index)


class InMemory(Stored):
  """An array that was read already."""

  def __init__(self, value: np.ndarray, *, key: str):
    """Holds a value."""
    self.key = key
    self.value = value
    self.shape = tuple(value.shape)
    self.dtype = value.dtype

  def read(self, index: Index) -> np.ndarray:
    """Returns a part."""
    return self.value[index]


class _Made(Stored):
  """An array made of others."""

  def __init__(self, *parts: Stored, shape: Sequence[int]):
    self.parts = parts
    self.key = parts[0].key
    self.shape = tuple(shape)
    self.dtype = parts[0].dtype

  def sources(self) -> list[Stored]:
    """Returns the arrays of the checkpoint that it is made of."""
    return [source for part in self.parts for source in part.sources()]


class Layer(_Made):
  """One layer of a stack."""

  def __init__(self, stack: Stored, *, axis: int, number: int):
    """Takes `stack[..., number, ...]`."""
    shape = (*stack.shape[:axis], *stack.shape[axis + 1 :])
    super().__init__(stack, shape=shape)
    self._axis = axis
    self._number = number

  def read(self, index: Index) -> np.ndarray:
    """Returns a part."""
    one = slice(self._number, self._number + 1)
    index = (*index[: self._axis], one, *index[self._axis :])
    return np.squeeze(self.parts[0].read(index), self._axis)


class Stack(_Made):
  """Layers of one shape, stacked along an axis."""

  def __init__(self, layers: Sequence[Stored], *, axis: int):
    """Stacks them in order."""
    shape = list(layers[0].shape)
    shape.insert(axis, len(layers))
    super().__init__(*layers, shape=shape)
    self._axis = axis

  def read(self, index: Index) -> np.ndarray:
    """Returns a part."""
    rest = (*index[: self._axis], *index[self._axis + 1 :])
    made = np.empty([part.stop - part.start for part in index], self.dtype)
    layers = np.moveaxis(made, self._axis, 0)
    for number, part in enumerate(self.parts[index[self._axis]]):
      layers[number] = part.read(rest)  # One at a time, to spare memory.
    return made


class Cast(_Made):
  """An array in another dtype."""

  def __init__(self, array: Stored, dtype: np.dtype):
    """Takes `array.astype(dtype)`."""
    super().__init__(array, shape=array.shape)
    self.dtype = np.dtype(dtype)

  def read(self, index: Index) -> np.ndarray:
    """Returns a part."""
    return self.parts[0].read(index).astype(self.dtype)


class Transposed(_Made):
  """A matrix the other way round."""

  def __init__(self, matrix: Stored):
    """Takes `matrix.T`."""
    super().__init__(matrix, shape=matrix.shape[::-1])

  def read(self, index: Index) -> np.ndarray:
    """Returns a part."""
    return self.parts[0].read(index[::-1]).T


class Mean(_Made):
  """The mean over some dimensions, times a number; of float32 numbers."""

  def __init__(self, array: Stored, *, over: Sequence[int], factor=1.0):
    """Takes `factor * array.mean(over)`; over nothing, the product alone."""
    self._over = tuple(over)
    self._factor = factor
    shape = [n for i, n in enumerate(array.shape) if i not in self._over]
    super().__init__(array, shape=shape)

  def read(self, index: Index) -> np.ndarray:
    """Returns a part."""
    array = self.parts[0]
    kept = iter(index)
    full = tuple(
        slice(0, size) if axis in self._over else next(kept)
        for axis, size in enumerate(array.shape)
    )
    mean = array.read(full).astype(np.float64).mean(self._over)
    return (self._factor * mean).astype(self.dtype)


class _Merged(_Made):
  """Neighbouring dimensions `axis` and `axis + 1` as one."""

  def __init__(self, array: Stored, *, axis: int):
    shape = list(array.shape)
    self._inner = shape.pop(axis + 1)
    shape[axis] *= self._inner
    super().__init__(array, shape=shape)
    self._axis = axis

  def read(self, index: Index) -> np.ndarray:
    """Returns a part."""
    axis, inner = self._axis, self._inner
    part = index[axis]
    outer = slice(part.start // inner, -(-part.stop // inner))
    read = self.parts[0].read(
        (*index[:axis], outer, slice(0, inner), *index[axis + 1 :])
    )
    sizes = (*read.shape[:axis], -1, *read.shape[axis + 2 :])
    if not read.size:
      sizes = [n.stop - n.start for n in index]
      return np.empty(sizes, read.dtype)
    start = part.start - outer.start * inner
    cut = [slice(None)] * len(index)
    cut[axis] = slice(start, start + part.stop - part.start)
    return read.reshape(sizes)[tuple(cut)]


class _Split(_Made):
  """Dimension `axis` as two, the second of size `inner`."""

  def __init__(self, array: Stored, *, axis: int, inner: int):
    shape = list(array.shape)
    shape[axis : axis + 1] = [shape[axis] // inner, inner]
    super().__init__(array, shape=shape)
    self._axis = axis
    self._inner = inner

  def read(self, index: Index) -> np.ndarray:
    """Returns a part."""
    axis, inner = self._axis, self._inner
    outer = index[axis]
    joined = slice(outer.start * inner, outer.stop * inner)
    read = self.parts[0].read((*index[:axis], joined, *index[axis + 2 :]))
    sizes = (
        *read.shape[:axis], outer.stop - outer.start, inner,
        *read.shape[axis + 1 :],
    )  # fmt: skip
    cut = [slice(None)] * len(index)
    cut[axis + 1] = index[axis + 1]
    return read.reshape(sizes)[tuple(cut)]


def joined_dims(
    small: Sequence[int], large: Sequence[int]
) -> list[tuple[int, ...]] | None:
  """Returns which dimensions of `large` make each dimension of `small`.

  None where neighbours multiplied never give `small`: [32, 64] is made of
  [32, 4, 16] by ((0,), (1, 2)).
  """
  groups, at = [], 0
  for size in small:
    group, product = [at], large[at] if at < len(large) else 0
    while product < size and at + 1 < len(large):
      at += 1
      product *= large[at]
      group.append(at)
    if product != size:
      return None
    groups.append(tuple(group))
    at += 1
  return groups if at == len(large) else None


def reshape(array: Stored, shape: Sequence[int]) -> Stored | None:
  """Returns the array with neighbouring dimensions joined, or split.

  None where that cannot give the shape.
  """
  shape = tuple(shape)
  if array.shape == shape:
    return array
  if len(shape) < len(array.shape):
    groups = joined_dims(shape, array.shape)
    for axis, group in enumerate(groups or ()):
      for _ in group[1:]:
        array = _Merged(array, axis=axis)
    return None if groups is None else array
  groups = joined_dims(array.shape, shape)
  for axis, group in reversed(list(enumerate(groups or ()))):
    for dim in group[:0:-1]:
      array = _Split(array, axis=axis, inner=shape[dim])
  return None if groups is None else array
