# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A whole checkpoint with its layers stacked, or plain, without any model.

With a model, its shapes say what is wanted; here they are those of T5X's two
networks: `examples/t5` is plain, `examples/scalable_t5` stacks its layers.
"""

from collections.abc import Iterator, Mapping, Sequence
import re

import jax
import numpy as np

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import layer_stacks
from t5wild.checkpoints import stored as stored_lib

Arrays = Mapping[str, stored_lib.Stored]
Shape = tuple[int, ...]

_AXIS = 1  # T5X's axis of layers.
_UNUSED = (1,)
_HEAD_BIAS = re.compile(r'.*attention/(query|key|value)/bias')
_TO_HEADS = re.compile(r'.*attention/(query|key|value)/kernel')
_FROM_HEADS = re.compile(r'.*attention/out/kernel')
_TO_EMBED = re.compile(r'.*(attention/out|mlp/wo)/kernel')


def stack(
    arrays: Arrays, *, num_heads: int | None = None, where: str
) -> dict[str, stored_lib.Stored]:
  """Returns a checkpoint of plain layers with these stacked.

  Adafactor's moments of kernels become T5X's for stacked ones, which are
  factored whatever their size.

  Args:
    arrays: By key.
    num_heads: Number of attention heads; None: as many as relative biases.
    where: The checkpoint, for errors.

  Raises:
    steps.NotACheckpointError: Its layers are not plain, or the number of heads
      is not known.
  """
  towers = _towers(arrays, 'plain', where=where)
  head_dim = _head_dim(arrays, towers, num_heads, where=where)
  wanted = {}
  for tower in towers:
    first = f'target/{tower}/layers_0/'
    count = layer_stacks.num_layers(arrays, tower)
    for name in _below(arrays, first):
      layer = tuple(arrays[first + name].shape)
      inner = _with_heads(name, layer, head_dim)
      wanted |= _stacked_shapes(arrays, tower, name, inner, count)
    shared = f'target/{tower}/{layer_stacks.SHARED_BIAS}'
    if shared in arrays:
      inner = tuple(arrays[shared].shape)
      wanted |= _stacked_shapes(
          arrays, tower, layer_stacks.SHARED_BIAS, inner, count, plain=''
      )
  return _relaid(arrays, wanted)


def _stacked_shapes(
    arrays: Arrays,
    tower: str,
    name: str,
    inner: Shape,
    count: int,
    plain: str = 'layers_0/',
) -> dict[str, Shape]:
  """Shapes of one parameter's stack, and of what is remembered of it."""
  made = {}
  stacked = _insert(inner, range(len(inner)), count)
  for head in _heads(arrays, tower):
    old, new = f'{head}{tower}/{plain}{name}', f'{head}{tower}/{tower}/{name}'
    if old in arrays:
      made[new] = stacked
    slots = {s: f'{old}/{s}' for s in ('v', 'v_row', 'v_col', 'm')}
    if slots['v'] not in arrays:
      continue
    shapes = {'v': stacked, 'v_row': _UNUSED, 'v_col': _UNUSED, 'm': _UNUSED}
    if name.endswith('/kernel') and len(inner) > 1:
      row = len(inner) - 1 if _TO_EMBED.fullmatch(name) else 0
      columns = [dim for dim in range(len(inner)) if dim != row]
      shapes['v'] = _UNUSED
      shapes['v_row'] = _insert(inner, [row], count)
      shapes['v_col'] = _insert(inner, columns, count)
    if tuple(arrays[slots['m']].shape) != _UNUSED:
      shapes['m'] = stacked
    made |= {f'{new}/{slot}': shape for slot, shape in shapes.items()}
  return made


def _insert(inner: Shape, dims: Sequence[int], count: int) -> Shape:
  """Sizes of some dimensions, with that of the layers where it belongs."""
  sizes = [inner[dim] for dim in dims]
  sizes.insert(sum(dim < _AXIS for dim in dims), count)
  return tuple(sizes)


def _with_heads(name: str, layer: Shape, head_dim: int | None) -> Shape:
  if head_dim and len(layer) == 2 and _TO_HEADS.fullmatch(name):
    return (layer[0], layer[1] // head_dim, head_dim)
  if head_dim and len(layer) == 2 and _FROM_HEADS.fullmatch(name):
    return (layer[0] // head_dim, head_dim, layer[1])
  if head_dim and len(layer) == 1 and _HEAD_BIAS.fullmatch(name):
    return (layer[0] // head_dim, head_dim)
  return layer


def _head_dim(
    arrays: Arrays, towers: Sequence[str], num_heads: int | None, *, where: str
) -> int | None:
  """Size of a head, where kernels join heads."""
  kernels = [
      (key, arrays[key].shape[-1])
      for tower in towers
      for key in arrays
      if re.fullmatch(rf'target/{tower}/layers_0/.*attention/query/kernel', key)
      and len(arrays[key].shape) == 2
  ]
  if not kernels:
    return None
  key, joined = kernels[0]
  biases = [k for k in arrays if k.endswith('/relpos_bias/rel_embedding')]
  if num_heads is None and biases:
    num_heads = arrays[biases[0]].shape[0]
  if not num_heads or joined % num_heads:
    raise steps.NotACheckpointError(
        f'{where} has kernels of joined heads ({key}: '
        f'{list(arrays[key].shape)}) and num_heads is {num_heads}, expected '
        f'the number of attention heads, a divisor of {joined}: give '
        '--num_heads'
    )
  return joined // num_heads


def unstack(arrays: Arrays, *, where: str) -> dict[str, stored_lib.Stored]:
  """Returns a checkpoint of stacked layers with these plain.

  A relative bias that is not the same in all layers stays one of each: the
  model then needs `positions = 'relative_bias_per_layer'`.

  Args:
    arrays: By key.
    where: The checkpoint, for errors.

  Raises:
    steps.NotACheckpointError: Its layers are not stacked.
  """
  wanted = {}
  for tower in _towers(arrays, 'stacked', where=where):
    first = f'target/{tower}/{tower}/'
    for name in _below(arrays, first):
      shape = tuple(arrays[first + name].shape)
      inner = (*shape[:_AXIS], *shape[_AXIS + 1 :])
      layer = _without_heads(name, inner)
      plain = 'layers_0/'
      if name == layer_stacks.SHARED_BIAS and _is_same(arrays[first + name]):
        plain = ''
      wanted |= _plain_shapes(arrays, tower, name, layer, plain)
  return _relaid(arrays, wanted)


def _plain_shapes(
    arrays: Arrays, tower: str, name: str, layer: Shape, plain: str
) -> dict[str, Shape]:
  """Shapes of one layer's parameter, and of what is remembered of it."""
  made = {}
  for head in _heads(arrays, tower):
    old, new = f'{head}{tower}/{tower}/{name}', f'{head}{tower}/{plain}{name}'
    if old in arrays:
      made[new] = layer
    slots = {s: f'{old}/{s}' for s in ('v', 'v_row', 'v_col', 'm')}
    if slots['v'] not in arrays:
      continue
    shapes = {'v': layer, 'v_row': _UNUSED, 'v_col': _UNUSED, 'm': _UNUSED}
    if tuple(arrays[slots['v_row']].shape) != _UNUSED:
      sizes = sorted(layer)
      shapes |= {'v': _UNUSED, 'v_row': (sizes[0],), 'v_col': (sizes[1],)}
    if tuple(arrays[slots['m']].shape) != _UNUSED:
      shapes['m'] = layer
    made |= {f'{new}/{slot}': shape for slot, shape in shapes.items()}
  return made


def _without_heads(name: str, inner: Shape) -> Shape:
  if len(inner) == 3 and _TO_HEADS.fullmatch(name):
    return (inner[0], inner[1] * inner[2])
  if len(inner) == 3 and _FROM_HEADS.fullmatch(name):
    return (inner[0] * inner[1], inner[2])
  if len(inner) == 2 and _HEAD_BIAS.fullmatch(name):
    return (inner[0] * inner[1],)
  return inner


def _is_same(bias: stored_lib.Stored) -> bool:
  numbers = np.asarray(bias).astype(np.float32)
  return bool((numbers == np.take(numbers, [0], _AXIS)).all())


def _towers(arrays: Arrays, layout: str, *, where: str) -> list[str]:
  found = {t: layer_stacks.layout(arrays, t) for t in layer_stacks.TOWERS}
  towers = [tower for tower, has in found.items() if has == layout]
  if not towers:
    raise steps.NotACheckpointError(
        f'{where} has layers {found}, expected {layout!r} ones to convert: '
        'leave --scan and --unscan out to keep them as they are'
    )
  return towers


def _below(arrays: Arrays, first: str) -> Iterator[str]:
  return (key.removeprefix(first) for key in arrays if key.startswith(first))


def _heads(arrays: Arrays, tower: str) -> list[str]:
  """What stands before a tower: 'target/', 'state/param_states/'."""
  pattern = re.compile(rf'(.*?){tower}/(?:layers_0|{tower})/.+')
  matches = map(pattern.fullmatch, arrays)
  return list(dict.fromkeys(match[1] for match in matches if match))


def _relaid(
    arrays: Arrays, shapes: Mapping[str, Shape]
) -> dict[str, stored_lib.Stored]:
  wanted = {
      key: jax.ShapeDtypeStruct(shape, np.float32)
      for key, shape in shapes.items()
  }
  adapted = layer_stacks.adapt(arrays, wanted)
  kept = {k: v for k, v in arrays.items() if k not in adapted.used}
  return kept | dict(adapted.arrays)


def lost(before: Arrays, after: Arrays) -> list[str]:
  """Returns arrays of single layers that could not be laid out anew.

  The model would begin them from scratch.
  """
  pattern = re.compile(r'(encoder|decoder)/(layers_\d+|\1)/')
  towers = {
      tower
      for tower in layer_stacks.TOWERS
      if layer_stacks.layout(before, tower) != layer_stacks.layout(after, tower)
  }
  return sorted(
      key
      for key in before.keys() & after.keys()
      if (match := pattern.search(key))
      and match[1] in towers
      and layer_stacks.layout({f'target/{match[0]}': 0}, match[1])
      == layer_stacks.layout(before, match[1])
  )
