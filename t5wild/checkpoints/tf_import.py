# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of Mesh-TensorFlow T5 (`model.ckpt-1000`), under T5X's names.

TensorFlow is imported here and only when such a checkpoint is read.
"""

from collections.abc import Callable, Mapping
import re
from typing import Any

import numpy as np

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import stored as stored_lib

_SLOTS = {'': '', '_slot_vr': '/v_row', '_slot_vc': '/v_col', '_slot_v': '/v'}
_SLOT = '(?P<slot>_slot_v[rc]?)?'
_LAYER = r'(?P<tower>encoder|decoder|transformer)/block_(?P<block>\d+)/'
_MATRICES = {'q': 'query', 'k': 'key', 'v': 'value', 'o': 'out'}
_NORMS = {
    'encoder': ('pre_attention_layer_norm', 'pre_mlp_layer_norm'),
    'decoder': (
        'pre_self_attention_layer_norm', 'pre_cross_attention_layer_norm',
        'pre_mlp_layer_norm',
    ),
    # A decoder alone.
    'transformer': ('pre_self_attention_layer_norm', 'pre_mlp_layer_norm'),
}  # fmt: skip


class TensorFlowArray(stored_lib.Stored):
  """An array of a TensorFlow checkpoint, which is read as a whole."""

  def __init__(self, reader: Any, name: str, shape: Any, dtype: np.dtype):
    """Names an array; `reader` is TensorFlow's."""
    self.key = name
    self.shape = tuple(shape)
    self.dtype = dtype
    self._reader = reader

  def read(self, index: stored_lib.Index) -> np.ndarray:
    """Returns a part.

    Raises:
      steps.NotACheckpointError: The checkpoint is damaged.
    """
    try:
      return np.asarray(self._reader.get_tensor(self.key))[index]
    except Exception as error:  # TensorFlow's, which is not imported here.
      raise steps.NotACheckpointError(
          f'{self.key} cannot be read ({error}), expected an array of the '
          'checkpoint: it is damaged; copy it again'
      ) from error


def read_structure(prefix: str) -> dict[str, stored_lib.Stored]:
  """Returns the arrays of a checkpoint by T5X's keys.

  Args:
    prefix: What the names of its files begin with.

  Raises:
    steps.NotACheckpointError: TensorFlow is not installed, the checkpoint is
      damaged, or of another network than T5's.
  """
  reader = _load(prefix)
  dtypes = reader.get_variable_to_dtype_map()
  found = {}
  for name, shape in reader.get_variable_to_shape_map().items():
    dtype = np.dtype(dtypes[name].as_numpy_dtype)
    found[name] = TensorFlowArray(reader, name, shape, dtype)
  return rename(found, where=prefix)


def _load(prefix: str) -> Any:
  try:
    import tensorflow  # Heavy, and needed for this alone.
  except ImportError as error:
    raise steps.NotACheckpointError(
        f'{prefix} is a TensorFlow checkpoint and TensorFlow cannot be '
        f'imported here ({error}), expected it to read one: pip install '
        'tensorflow, or convert the checkpoint where it is installed, with '
        't5wild convert'
    ) from error
  try:
    return tensorflow.train.load_checkpoint(prefix)
  except (ValueError, tensorflow.errors.OpError) as error:
    raise steps.NotACheckpointError(
        f'{prefix} cannot be opened ({error}), expected a TensorFlow '
        'checkpoint with .index and .data files: copy all of them again'
    ) from error


def rename(
    arrays: Mapping[str, stored_lib.Stored], *, where: str
) -> dict[str, stored_lib.Stored]:
  """Returns the arrays by T5X's keys.

  Args:
    arrays: By Mesh-TensorFlow's names.
    where: The checkpoint, for the error.

  Raises:
    steps.NotACheckpointError: Names that no T5 has.
  """
  renamed, unknown = {}, []
  for name, array in arrays.items():
    key = _key(name)
    if key is None:
      unknown.append(name)
    elif key == 'state/step':
      step = np.asarray(array).astype(np.int32)
      renamed[key] = stored_lib.InMemory(step, key=name)
    else:
      renamed[key] = array
  if unknown:
    raise steps.NotACheckpointError(
        f'{where} holds {len(unknown)} arrays that no T5 has, such as '
        f'{sorted(unknown)[:5]}, expected those of Mesh-TensorFlow T5: its '
        'network is another one, which is not read here'
    )
  shared = _with_shared_bias(renamed)
  return shared | _unused_slots(shared)


def _key(name: str) -> str | None:
  if name == 'global_step':
    return 'state/step'
  for pattern, make in _RULES:
    match = re.fullmatch(pattern + _SLOT, name)
    if match:
      below = make(match)
      head = 'state/param_states' if match['slot'] else 'target'
      return f'{head}/{below}{_SLOTS[match["slot"] or ""]}'
  return None


def _tower(match: re.Match) -> str:
  return match['tower'].replace('transformer', 'decoder')


def _in_layer(match: re.Match, rest: str) -> str:
  return f'{_tower(match)}/layers_{int(match["block"])}/{rest}'


def _attention(match: re.Match) -> str:
  kind = 'attention'
  if match['tower'] != 'encoder':
    kind = {
        'SelfAttention': 'self_attention',
        'EncDecAttention': 'encoder_decoder_attention',
    }[match['kind']]
  return _in_layer(match, f'{kind}/{_MATRICES[match["matrix"]]}/kernel')


def _mlp(match: re.Match) -> str:
  name = match['matrix'] + (match['number'] or '')
  return _in_layer(match, f'mlp/{name}/kernel')


def _norm(match: re.Match) -> str:
  names = _NORMS[match['tower']]
  return _in_layer(match, f'{names[int(match["sub"]) % len(names)]}/scale')


def _last_norm(match: re.Match) -> str:
  return f'{_tower(match)}/{_tower(match)}_norm/scale'


_Rule = tuple[str, Callable[[re.Match], str]]
_RULES: tuple[_Rule, ...] = (
    (r'shared/embedding', lambda _: 'token_embedder/embedding'),
    (
        r'(?P<tower>encoder|decoder|transformer)/embedding',
        lambda m: f'{_tower(m)}/token_embedder/embedding',
    ),
    (
        _LAYER + r'layer_000/SelfAttention/relative_attention_bias',
        lambda m: _in_layer(m, 'relpos_bias/rel_embedding'),
    ),
    (
        _LAYER + r'layer_\d+/(?P<kind>SelfAttention|EncDecAttention)/'
        r'(?P<matrix>[qkvo])',
        _attention,
    ),
    (
        _LAYER + r'layer_\d+/DenseReluDense/(?P<matrix>wi|wo)(?P<number>_\d+)?'
        r'/kernel',
        _mlp,
    ),
    (_LAYER + r'layer_(?P<sub>\d+)/(?:layer|rms)_norm/scale', _norm),
    (
        r'(?P<tower>encoder|decoder|transformer)/(?:final_layer|rms)_norm/'
        r'scale',
        _last_norm,
    ),
    (
        r'(?:decoder|transformer)/logits/kernel',
        lambda _: 'decoder/logits_dense/kernel',
    ),
)


def _with_shared_bias(arrays: dict[str, Any]) -> dict[str, Any]:
  """A relative bias in the first layer alone is that of all layers."""
  later = re.compile(r'.*/layers_0*[1-9]\d*/relpos_bias/.*')
  if any(map(later.fullmatch, arrays)):
    return arrays
  return {
      key.replace('/layers_0/relpos_bias/', '/relpos_bias/'): array
      for key, array in arrays.items()
  }


def _unused_slots(arrays: Mapping[str, Any]) -> dict[str, stored_lib.Stored]:
  """What T5X's Adafactor has besides: zeros of shape (1,)."""
  made = {}
  for key in arrays:
    if not key.startswith('target/'):
      continue
    state = 'state/param_states/' + key.removeprefix('target/')
    used = {s for s in ('v', 'v_row', 'v_col') if f'{state}/{s}' in arrays}
    if used:
      for slot in {'v', 'v_row', 'v_col', 'm'} - used:
        made[f'{state}/{slot}'] = stored_lib.InMemory(
            np.zeros(1, np.float32), key=f'{state}/{slot}'
        )
  return made
