# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint of stacked layers for a model of plain ones, and the reverse.

T5X keeps layers as `encoder/layers_0/...`, `encoder/layers_1/...` with kernels
`(embed, joined_kv)`, or scanned as `encoder/encoder/...` with kernels
`(embed, layers, heads, kv)`. Here the arrays of one are made of parts of the
other's, the optimizer's too, when they are read.
"""

from collections.abc import Iterator, Mapping
import dataclasses
import re
from typing import Any

import numpy as np

from t5wild.checkpoints import moments
from t5wild.checkpoints import stored as stored_lib
from t5wild.checkpoints import transforms

Shape = tuple[int, ...]

TOWERS = ('encoder', 'decoder')
SHARED_BIAS = 'relpos_bias/rel_embedding'
# T5X's axis of layers, and where else it can be.
_AXES = (1, 0, 2, 3, 4)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adapted:
  """What a checkpoint has under the names of a model.

  Attributes:
    arrays: Arrays by the model's keys.
    used: Keys of the checkpoint that they are made of.
  """

  arrays: Mapping[str, stored_lib.Stored]
  used: frozenset[str]


def adapt(
    stored: Mapping[str, stored_lib.Stored], wanted: Mapping[str, Any]
) -> Adapted:
  """Returns what the layers of a model can be made of.

  Nothing, where both have the same layout.

  Args:
    stored: The checkpoint's arrays by key.
    wanted: The model's by key; leaves have `shape`.

  Raises:
    transforms.DifferentModelError: Layers have each a relative bias of its
      own, and the model has one for all.
  """
  arrays, used = {}, set()
  for tower in TOWERS:
    have, want = layout(stored, tower), layout(wanted, tower)
    if have and want and have != want:
      towers = (_Tower(stored, tower), _Tower(wanted, tower))
      change = _unstack if want == 'plain' else _stack
      for made in change(*towers):
        arrays.update(made.arrays)
        used |= made.used
  return Adapted(arrays=arrays, used=frozenset(used))


def layout(arrays: Mapping[str, Any], tower: str) -> str | None:
  """Returns 'plain', 'stacked', or None where there are no such layers."""
  for key in arrays:
    if key.startswith(f'target/{tower}/layers_'):
      return 'plain'
    if key.startswith(f'target/{tower}/{tower}/'):
      return 'stacked'
  return None


def num_layers(arrays: Mapping[str, Any], tower: str) -> int:
  """Returns the number of plain layers."""
  pattern = re.compile(rf'target/{tower}/layers_(\d+)/.+')
  matches = map(pattern.fullmatch, arrays)
  return 1 + max((int(match[1]) for match in matches if match), default=-1)


class _Tower:
  """The keys of one encoder or decoder: parameters, and states of each."""

  def __init__(self, arrays: Mapping[str, Any], name: str):
    self.arrays = arrays
    self.name = name
    self._plain = re.compile(rf'(.*?){name}/layers_(\d+)/(.+)')
    self._stacked = re.compile(rf'(.*?){name}/{name}/(.+)')

  def stacked_key(self, head: str, rest: str) -> str:
    return f'{head}{self.name}/{self.name}/{rest}'

  def plain_key(self, head: str, number: int | str, rest: str) -> str:
    return f'{head}{self.name}/layers_{number}/{rest}'

  def shared_key(self, head: str) -> str:
    return f'{head}{self.name}/{SHARED_BIAS}'

  def heads(self) -> list[str]:
    """What stands before the tower: 'target/', 'state/param_states/'."""
    found = {}
    for key in self.arrays:
      match = self._plain.fullmatch(key) or self._stacked.fullmatch(key)
      if match:
        found[match[1]] = None
    return list(found)

  def parameters(self) -> list[str]:
    """Names of a layer's parameters."""
    found = {}
    for key in self.arrays:
      for pattern in (self._plain, self._stacked):
        match = pattern.fullmatch(key)
        if match and match[1] == transforms.TARGET:
          found[match[match.lastindex]] = None
    return list(found)

  def leaf(self, key: str) -> Any:
    return self.arrays.get(key)

  def slots(self, key: str) -> dict[str, Any]:
    """What Adafactor remembers of a parameter."""
    names = {slot: f'{key}/{slot}' for slot in moments.SLOTS}
    return {s: self.arrays[k] for s, k in names.items() if k in self.arrays}


def _layer_axis(pairs: list[tuple[Shape, Shape]]) -> int:
  """Returns where stacks have their layers, by the shapes of single ones."""

  def fits(axis: int, stack: Shape, layer: Shape) -> bool:
    if axis >= len(stack):
      return False
    rest = (*stack[:axis], *stack[axis + 1 :])
    small, large = sorted((rest, layer), key=len)
    return stored_lib.joined_dims(small, large) is not None

  for axis in _AXES:
    if pairs and all(fits(axis, *pair) for pair in pairs):
      return axis
  return min([_AXES[0], *(len(stack) - 1 for stack, _ in pairs)])


def _unstack(have: _Tower, want: _Tower) -> Iterator[Adapted]:
  """Takes stacks apart."""
  yield from _share_bias(have, want)
  names = [n for n in have.parameters() if not _is_shared_bias(n, want)]
  shapes = {
      name: (
          tuple(have.leaf(have.stacked_key(transforms.TARGET, name)).shape),
          tuple(leaf.shape),
      )
      for name in names
      if (leaf := want.leaf(want.plain_key(transforms.TARGET, 0, name)))
      is not None
  }
  axis = _layer_axis(list(shapes.values()))
  for head in have.heads():
    for name, (stack, layer) in shapes.items():
      yield from _unstack_one(
          _Parameter(head, name, stack=stack, layer=layer, axis=axis),
          have,
          want,
      )


@dataclasses.dataclass(frozen=True)
class _Parameter:
  """A parameter of every layer, and the shapes that it has on both sides."""

  head: str
  name: str
  stack: Shape = dataclasses.field(kw_only=True)
  layer: Shape = dataclasses.field(kw_only=True)
  axis: int = dataclasses.field(kw_only=True)

  @property
  def inner(self) -> Shape:
    """The shape of one layer of the stack."""
    return (*self.stack[: self.axis], *self.stack[self.axis + 1 :])


def _unstack_one(
    parameter: _Parameter, have: _Tower, want: _Tower
) -> Iterator[Adapted]:
  head, name, axis = parameter.head, parameter.name, parameter.axis
  key = have.stacked_key(head, name)
  slots = have.slots(key)
  stack = have.leaf(key)
  for number in range(parameter.stack[axis]):
    made = {}
    if stack is not None:
      layer = stored_lib.Layer(stack, axis=axis, number=number)
      made[''] = stored_lib.reshape(layer, parameter.layer) or layer
    elif slots:
      state = moments.split_layer(
          slots, stack=parameter.stack, axis=axis, number=number
      )
      target = want.slots(want.plain_key(head, 0, name))
      made = moments.adapt(
          state,
          from_shape=parameter.inner,
          to_shape=parameter.layer,
          to_slots={slot: tuple(leaf.shape) for slot, leaf in target.items()},
      )
    yield Adapted(
        arrays={
            _join(want.plain_key(head, number, name), slot): array
            for slot, array in made.items()
        },
        used=frozenset(_join(key, slot) for slot in slots or {'': stack}),
    )


def _stack(have: _Tower, want: _Tower) -> Iterator[Adapted]:
  """Stacks layers."""
  count = num_layers(have.arrays, have.name)
  yield from _repeat_bias(have, want, count)
  shapes = {}
  for name in have.parameters():
    layers = [
        have.leaf(have.plain_key(transforms.TARGET, number, name))
        for number in range(count)
    ]
    stack = want.leaf(want.stacked_key(transforms.TARGET, name))
    is_whole = all(x is not None and x.shape == layers[0].shape for x in layers)
    if stack is not None and is_whole:
      shapes[name] = (tuple(stack.shape), tuple(layers[0].shape))
  axis = _layer_axis(list(shapes.values()))
  for head in have.heads():
    for name, (stack, layer) in shapes.items():
      yield _stack_one(
          _Parameter(head, name, stack=stack, layer=layer, axis=axis),
          have,
          want,
          count,
      )


def _stack_one(
    parameter: _Parameter, have: _Tower, want: _Tower, count: int
) -> Adapted:
  head, name, axis = parameter.head, parameter.name, parameter.axis
  layers, used = [], []
  for number in range(count):
    key = have.plain_key(head, number, name)
    slots = have.slots(key)
    used += [_join(key, slot) for slot in slots or {'': None}]
    if have.leaf(key) is not None:
      layer = have.leaf(key)
      layers.append({'': stored_lib.reshape(layer, parameter.inner) or layer})
    else:
      target = want.slots(want.stacked_key(head, name))
      layers.append(
          moments.adapt(
              slots,
              from_shape=parameter.layer,
              to_shape=parameter.inner,
              to_slots=moments.layer_shapes(
                  {s: tuple(leaf.shape) for s, leaf in target.items()},
                  stack=parameter.stack,
                  axis=axis,
              ),
          )
      )
  made = moments.stack_layers(layers, inner=parameter.inner, axis=axis)
  return Adapted(
      arrays={
          _join(want.stacked_key(head, name), slot): array
          for slot, array in made.items()
      },
      used=frozenset(used),
  )


def _is_shared_bias(name: str, want: _Tower) -> bool:
  return name == SHARED_BIAS and want.leaf(
      want.shared_key(transforms.TARGET)
  ) is not None


def _share_bias(have: _Tower, want: _Tower) -> Iterator[Adapted]:
  """One relative bias for all layers, where theirs are the same."""
  key = have.stacked_key(transforms.TARGET, SHARED_BIAS)
  shared = want.leaf(want.shared_key(transforms.TARGET))
  bias = have.leaf(key)
  if bias is None or shared is None:
    return
  axis = _layer_axis([(tuple(bias.shape), tuple(shared.shape))])
  numbers = np.asarray(bias).astype(np.float32)
  first = np.take(numbers, [0], axis)
  if not np.array_equal(numbers, np.broadcast_to(first, numbers.shape)):
    raise transforms.DifferentModelError(
        f'{key} of the checkpoint has another relative bias for each of '
        f'{bias.shape[axis]} layers, expected the same in all for a model that '
        "shares one: set network.T5Config.positions = 'relative_bias_per_layer'"
        ' (or of your network), or scan_layers = True'
    )
  yield Adapted(
      arrays={
          want.shared_key(transforms.TARGET): stored_lib.Layer(
              bias, axis=axis, number=0
          )
      },
      used=frozenset([key]),
  )
  for head in have.heads():
    state_key = have.stacked_key(head, SHARED_BIAS)
    slots = have.slots(state_key)
    if slots:
      made = moments.sum_layers(slots, axis=axis, num_layers=bias.shape[axis])
      yield Adapted(
          arrays={
              _join(want.shared_key(head), slot): array
              for slot, array in made.items()
          },
          used=frozenset(_join(state_key, slot) for slot in slots),
      )


def _repeat_bias(
    have: _Tower, want: _Tower, count: int
) -> Iterator[Adapted]:
  """The relative bias that all layers share, in each of them."""
  stack = want.leaf(want.stacked_key(transforms.TARGET, SHARED_BIAS))
  bias = have.leaf(have.shared_key(transforms.TARGET))
  if bias is None or stack is None:
    return
  axis = _layer_axis([(tuple(stack.shape), tuple(bias.shape))])
  key = have.shared_key(transforms.TARGET)
  yield Adapted(
      arrays={
          want.stacked_key(transforms.TARGET, SHARED_BIAS): stored_lib.Stack(
              [bias] * count, axis=axis
          )
      },
      used=frozenset([key]),
  )
  for head in have.heads():
    slots = have.slots(have.shared_key(head))
    if slots:
      layer = moments.divide(slots, by=count)
      made = moments.stack_layers(
          [layer] * count, inner=tuple(bias.shape), axis=axis
      )
      yield Adapted(
          arrays={
              _join(want.stacked_key(head, SHARED_BIAS), slot): array
              for slot, array in made.items()
          },
          used=frozenset(_join(have.shared_key(head), slot) for slot in slots),
      )


def _join(key: str, slot: str) -> str:
  return f'{key}/{slot}' if slot else key
