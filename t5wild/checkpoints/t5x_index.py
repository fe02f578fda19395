# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The index of a checkpoint in T5X's native format: a file `checkpoint`.

It is msgpack, as Flax writes it, of
`{'version': 3, 'optimizer': {'target': ..., 'state': ...}}`. A leaf is a small
array, or the TensorStore spec of an array beside the file. Whoever wrote it may
be a stranger: nothing in it but numbers, shapes and relative paths is believed.
"""

from collections.abc import Iterator, Mapping
import dataclasses
import math
from typing import Any

from etils import epath
import jax.numpy as jnp
import msgpack
import numpy as np

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import confinement

FILE = steps.NATIVE_INDEX
# T5X reads none before 2 either. It wrote 3 to its end, and read whatever a
# later number said as if it were 3: nobody knows what that would have been.
OLDEST_VERSION, NEWEST_VERSION = 2, 3

# Larger ones are no index: T5X keeps what is sharded in files of its own.
_MOST_BYTES = 4 * 1024**3
_MOST_DEPTH = 64
_DTYPES = (
    'bool', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32',
    'uint64', 'float16', 'float32', 'float64', 'bfloat16',
)  # fmt: skip
_ARRAY, _SCALAR = 1, 3  # Flax's msgpack extensions.
_CHUNKED = '__msgpack_chunked_array__'
_PLACEHOLDER = 'PLACEHOLDER://'  # Orbax's word for an array beside the file.
_PICKLES = (b'\x80\x02', b'\x80\x03', b'\x80\x04', b'\x80\x05')
_SPEC_KEYS = {'driver', 'kvstore', 'metadata'}
# Of these a spec is made anew; what else T5X and TensorStore write beside them
# says nothing about where the numbers lie.
_IGNORED = {
    'dtype', 'create', 'open', 'delete_existing', 'recheck_cached_data',
    'recheck_cached_metadata', 'schema', 'field', 'rank',
}  # fmt: skip
_STORES = ('file', 'gfile', 'gcs')  # Google's names of a folder, and a bucket.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spec:
  """Where an array lies.

  Attributes:
    path: Relative to the folder of the index.
    shape: What the index says of its shape; None where it does not.
    dtype: And of its dtype, likewise.
    foreign: A whole TensorStore spec, of a checkpoint that is trusted.
  """

  path: str = ''
  shape: tuple[int, ...] | None = None
  dtype: str | None = None
  foreign: Mapping[str, Any] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Index:
  """What a checkpoint holds.

  Attributes:
    version: T5X's number of the format.
    leaves: Small arrays and specs of large ones, by key.
  """

  version: int
  leaves: Mapping[str, np.ndarray | Spec]


def read_index(folder: epath.Path, *, trust_paths: bool = False) -> Index:
  """Reads the index of a checkpoint folder.

  Args:
    folder: It holds a file `checkpoint`.
    trust_paths: Whether specs may lead out of the folder.

  Raises:
    steps.NotACheckpointError: The file is cut off, or none of T5X's.
    confinement.UnsafeCheckpointError: A spec leads out of the folder.
  """
  file = epath.Path(folder) / FILE
  content = _unpack(file)
  is_orbax = _is_placeholder_tree(content)
  version = (
      NEWEST_VERSION
      if is_orbax
      else _check_version(content.get('version', 0), file=file)
  )
  nested = content if is_orbax else content.get('optimizer')
  if not isinstance(nested, dict) or 'target' not in nested:
    raise steps.NotACheckpointError(
        f'{file} holds {sorted(content)}, expected version, and optimizer with '
        'target in it, as T5X writes: take a checkpoint of T5X'
    )
  leaves = {}
  for key, value in _walk(nested, file=file):
    where = f'{file} ({key})'
    leaf = _leaf(value, where=where, trust_paths=trust_paths)
    if leaf is not None:
      leaves[key] = leaf
  confinement.check_keys(leaves, where=str(file))
  return Index(version=version, leaves=leaves)


def _check_version(version: Any, *, file: epath.Path) -> int:
  """A version whose arrays can be told from their bytes."""
  is_number = isinstance(version, int) and not isinstance(version, bool)
  if is_number and OLDEST_VERSION <= version <= NEWEST_VERSION:
    return version
  do = 'restore and save it with T5X'
  if not is_number or version > NEWEST_VERSION:
    do = 'copy it again, or have what wrote it save it in the format of T5X'
  raise steps.NotACheckpointError(
      f'{file} is of version {version!r}, expected {OLDEST_VERSION} or '
      f'{NEWEST_VERSION}, as T5X writes since 2020: {do}'
  )


def _unpack(file: epath.Path) -> dict[str, Any]:
  size = file.stat().length
  if size > _MOST_BYTES:
    raise steps.NotACheckpointError(
        f'{file} has {size} bytes, expected at most {_MOST_BYTES} of an index '
        'of arrays: save it with T5X, which keeps large arrays in files of '
        'their own'
    )
  data = file.read_bytes()
  if data[:2] in _PICKLES:
    raise steps.NotACheckpointError(
        f'{file} is a pickle, which can run any program when it is read, '
        'expected msgpack as T5X writes: take a checkpoint of T5X, or '
        'safetensors'
    )
  try:
    # Each length in it is bounded by that of the data.
    content = msgpack.unpackb(
        data, raw=False, strict_map_key=True, ext_hook=_extension
    )
  except (ValueError, TypeError, msgpack.UnpackException) as error:
    raise steps.NotACheckpointError(
        f'{file} of {size} bytes cannot be read as msgpack ({error}), expected '
        "T5X's index of arrays: it is cut off or no checkpoint; copy it again"
    ) from error
  if not isinstance(content, dict):
    raise steps.NotACheckpointError(
        f'{file} holds a {type(content).__name__}, expected a dict as T5X '
        'writes: take a checkpoint of T5X'
    )
  return content


def _extension(code: int, data: bytes) -> Any:
  if code not in (_ARRAY, _SCALAR):
    raise ValueError(f'extension {code}, expected an array')
  shape, name, buffer = msgpack.unpackb(data, raw=True)
  name = name.decode('ascii', 'replace')
  if name not in _DTYPES:
    raise ValueError(f'dtype {name!r}, expected one of {_DTYPES}')
  dtype = jnp.dtype(name)
  is_shape = all(isinstance(size, int) and size >= 0 for size in shape)
  if not is_shape or math.prod(shape) * dtype.itemsize != len(buffer):
    raise ValueError(f'{len(buffer)} bytes for {name} of shape {list(shape)}')
  return np.frombuffer(buffer, dtype).reshape(shape)


def _is_placeholder_tree(content: Mapping[str, Any]) -> bool:
  """Whether it is the index that Orbax wrote for T5X before 2024."""
  return 'target' in content and 'version' not in content


def _walk(
    nested: Mapping[str, Any], *, file: epath.Path, key: str = '', depth=0
) -> Iterator[tuple[str, Any]]:
  if depth > _MOST_DEPTH:
    raise steps.NotACheckpointError(
        f'{file} is nested deeper than {_MOST_DEPTH} names at {key[:200]!r}, '
        'expected the parameters of a model: take another checkpoint'
    )
  for name, value in nested.items():
    below = f'{key}/{name}' if key else str(name)
    if isinstance(value, dict) and not (
        value.keys() >= _SPEC_KEYS or _CHUNKED in value
    ):
      yield from _walk(value, file=file, key=below, depth=depth + 1)
    else:
      yield below, value


def _leaf(
    value: Any, *, where: str, trust_paths: bool
) -> np.ndarray | Spec | None:
  if value is None:  # The state of a parameter that no optimizer trains.
    return None
  if isinstance(value, bool | int | float):
    value = np.asarray(value)
    narrow = {'int64': np.int32, 'float64': np.float32}
    return value.astype(narrow.get(value.dtype.name, value.dtype))
  if isinstance(value, np.ndarray):
    return value
  if isinstance(value, str) and value.startswith(_PLACEHOLDER):
    name = value.removeprefix(_PLACEHOLDER)
    confinement.check_name(name, where=where)
    return Spec(path=name)
  if isinstance(value, dict) and _CHUNKED in value:
    return _join(value, where=where)
  if isinstance(value, dict):
    return _spec(value, where=where, trust_paths=trust_paths)
  raise steps.NotACheckpointError(
      f'{where} is a {type(value).__name__}, expected an array or the spec of '
      'one: take a checkpoint of T5X'
  )


def _join(value: Mapping[str, Any], *, where: str) -> np.ndarray:
  """Puts together an array that Flax cut for msgpack's limit."""
  try:
    shape, chunks = (
        [value[name][str(i)] for i in range(len(value[name]))]
        for name in ('shape', 'chunks')
    )
    return np.concatenate(chunks).reshape(shape)
  except (KeyError, TypeError, ValueError) as error:
    raise steps.NotACheckpointError(
        f'{where} is an array in pieces that do not fit ({error!r}), expected '
        "Flax's: the checkpoint is damaged; copy it again"
    ) from error


def _spec(
    value: Mapping[str, Any], *, where: str, trust_paths: bool
) -> Spec:
  """Takes path and shape out of a spec, and nothing else of it."""
  try:
    store, metadata = value['kvstore'], value['metadata']
    shape = tuple(metadata['shape'])
    if not all(isinstance(size, int) and size >= 0 for size in shape):
      raise ValueError(f'the shape is {shape}')
    if not isinstance(store, str):
      store['driver'].startswith('')  # It is a dict with a name.
  except (KeyError, TypeError, ValueError, AttributeError) as error:
    raise steps.NotACheckpointError(
        f'{where} has the spec {_short(value)}, which lacks or spoils a part '
        f'({error!r}), expected driver, kvstore and metadata with shape: the '
        'checkpoint is damaged; copy it again'
    ) from error
  dtype = value.get('dtype')
  dtype = dtype if dtype in _DTYPES else None  # Old ones say it in metadata.
  try:
    path = _path(value, store, shape, where=where)
    return Spec(path=path, shape=shape, dtype=dtype)
  except confinement.UnsafeCheckpointError:
    if not trust_paths:
      raise
    return Spec(shape=shape, foreign=value)


def _path(
    value: Mapping[str, Any], store: Any, shape: tuple[int, ...], *, where: str
) -> str:
  if isinstance(store, str) or value['driver'] != 'zarr':
    raise confinement.unsafe(where, f'has the spec {_short(value)}')
  unknown = store.keys() - {'driver', 'path', 'bucket'}
  unknown |= value.keys() - _SPEC_KEYS - _IGNORED - {'path', 'transform'}
  if unknown or store['driver'] not in _STORES:
    raise confinement.unsafe(
        where, f'has {sorted(unknown) or "the store"} in {_short(value)}'
    )
  if 'transform' in value and not _is_plain(value['transform'], shape):
    raise confinement.unsafe(where, f'transforms its array {_short(value)}')
  # TensorStore before 0.1.14 had the path beside the store.
  path = store.get('path', value.get('path'))
  if not isinstance(path, str):
    raise confinement.unsafe(where, f'has the path {path!r}')
  confinement.check_name(path, where=where)
  return path.removesuffix('/')


def _is_plain(transform: Any, shape: tuple[int, ...]) -> bool:
  """Whether a transform only says the shape once more."""
  if not isinstance(transform, dict):
    return False
  ends = transform.get('input_exclusive_max', list(shape))
  if not isinstance(ends, list):
    return False
  # An end in brackets may be moved by a resize.
  ends = [end[0] if isinstance(end, list) and end else end for end in ends]
  return ends == list(shape) and not (
      transform.keys() - {'input_exclusive_max', 'input_inclusive_min'}
      or any(transform.get('input_inclusive_min', []))
  )


def _short(value: Any) -> str:
  text = repr(value)
  return text if len(text) <= 300 else text[:300] + '...'
