# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What Adafactor remembers of a parameter, for another layout of it.

Its second moment is kept whole (`v`), or as a mean over columns (`v_row`) and
one over rows (`v_col`); what is not kept has shape (1,). Both means are of the
same numbers in every layout, so that those of stacked layers are those of
single ones. Which dimensions they keep is told by the shapes.
"""

from collections.abc import Mapping, Sequence
import itertools

import numpy as np

from t5wild.checkpoints import stored as stored_lib

Shape = tuple[int, ...]
Dims = tuple[int, ...]
Slots = Mapping[str, stored_lib.Stored]

SLOTS = ('v', 'v_row', 'v_col', 'm')
_UNUSED = (1,)


def _kept(
    shape: Shape, slots: Mapping[str, Shape], *, batch: Dims = ()
) -> dict[str, Dims] | None:
  """Returns the dimensions that `v_row` and `v_col` keep besides `batch`.

  None where the second moment is whole. Where two sides are equally long, the
  first is the row: T5X's choice for matrices.
  """
  row, column = slots.get('v_row', _UNUSED), slots.get('v_col', _UNUSED)
  if row == _UNUSED and column == _UNUSED:
    return None
  others = [dim for dim in range(len(shape)) if dim not in batch]
  for count in range(1, len(others)):
    for dims in itertools.combinations(others, count):
      rest = tuple(dim for dim in others if dim not in dims)
      fits = (
          _sizes(shape, (*dims, *batch)) == row
          and _sizes(shape, (*rest, *batch)) == column
      )
      if fits:
        return {'v_row': dims, 'v_col': rest}
  return None


def _sizes(shape: Shape, dims: Sequence[int]) -> Shape:
  return tuple(shape[dim] for dim in sorted(dims))


def _shapes(slots: Slots) -> dict[str, Shape]:
  return {slot: tuple(array.shape) for slot, array in slots.items()}


def _layer_axes(
    slots: Mapping[str, Shape], *, stack: Shape, axis: int
) -> dict[str, int]:
  """Returns where each slot of a stack has the layers."""
  kept = _kept(stack, slots, batch=(axis,)) or {}
  axes = {slot: sum(d < axis for d in dims) for slot, dims in kept.items()}
  for slot, shape in slots.items():
    if shape == stack:
      axes[slot] = axis
  return axes


def split_layer(
    slots: Slots, *, stack: Shape, axis: int, number: int
) -> dict[str, stored_lib.Stored]:
  """Returns the slots of one layer of a stacked parameter."""
  axes = _layer_axes(_shapes(slots), stack=stack, axis=axis)
  return {
      slot: stored_lib.Layer(array, axis=axes[slot], number=number)
      if slot in axes
      else array
      for slot, array in slots.items()
  }


def layer_shapes(
    slots: Mapping[str, Shape], *, stack: Shape, axis: int
) -> dict[str, Shape]:
  """Returns the shapes of one layer's slots, by those of a stack."""
  axes = _layer_axes(slots, stack=stack, axis=axis)
  return {
      slot: (*shape[: axes[slot]], *shape[axes[slot] + 1 :])
      if slot in axes
      else shape
      for slot, shape in slots.items()
  }


def stack_layers(
    layers: Sequence[Slots], *, inner: Shape, axis: int
) -> dict[str, stored_lib.Stored]:
  """Returns the slots of a stack of layers; '' names a parameter itself.

  Args:
    layers: Slots of each layer.
    inner: Shape of the parameter in one layer.
    axis: Where the stack of parameters has its layers.
  """
  kept = _kept(inner, _shapes(layers[0])) or {}
  made = {}
  for slot, first in layers[0].items():
    at = axis
    if slot in kept:
      # Dimensions before the layers' stay before it.
      at = sum(dim < axis for dim in kept[slot])
    elif slot and tuple(first.shape) == _UNUSED and inner != _UNUSED:
      made[slot] = first
      continue
    arrays = [layer[slot] for layer in layers if slot in layer]
    if len(arrays) == len(layers):
      made[slot] = stored_lib.Stack(arrays, axis=min(at, len(first.shape)))
  return made


def adapt(
    slots: Slots,
    *,
    from_shape: Shape,
    to_shape: Shape,
    to_slots: Mapping[str, Shape],
) -> dict[str, stored_lib.Stored]:
  """Returns the slots that a parameter in another layout asks for.

  What cannot be made (a whole moment of two means) is left out.

  Args:
    slots: Those there are.
    from_shape: Shape of their parameter.
    to_shape: Shape that it gets.
    to_slots: Shapes of the slots asked for.
  """
  groups = _same_dims(from_shape, to_shape)
  if groups is None:
    return dict(slots)
  have = _kept(from_shape, _shapes(slots))
  want = _kept(to_shape, to_slots) or {}
  made = {}
  for slot, shape in to_slots.items():
    array = None
    if slot in want:
      array = _mean_over(slots, have, _sources(want[slot], groups), from_shape)
    elif shape == _UNUSED:
      array = stored_lib.InMemory(np.zeros(_UNUSED, np.float32), key=slot)
    elif slot in slots and tuple(slots[slot].shape) == from_shape:
      array = slots[slot]
    if array is not None:
      made[slot] = stored_lib.reshape(array, shape) or array
  return made


def _same_dims(
    from_shape: Shape, to_shape: Shape
) -> list[tuple[Dims, Dims]] | None:
  """Pairs of dimensions of both shapes that hold the same numbers."""
  if len(from_shape) <= len(to_shape):
    groups = stored_lib.joined_dims(from_shape, to_shape)
    return groups and [((i,), group) for i, group in enumerate(groups)]
  groups = stored_lib.joined_dims(to_shape, from_shape)
  return groups and [(group, (i,)) for i, group in enumerate(groups)]


def _sources(dims: Dims, groups: list[tuple[Dims, Dims]]) -> Dims | None:
  """Returns the dimensions that become `dims`; None where some only in part."""
  found = []
  for source, made in groups:
    common = set(made) & set(dims)
    if common and common != set(made):
      return None
    found += source if common else ()
  return tuple(found)


def _mean_over(
    slots: Slots,
    have: Mapping[str, Dims] | None,
    kept: Dims | None,
    shape: Shape,
) -> stored_lib.Stored | None:
  """Returns the second moment's mean over all dimensions but `kept`."""
  if kept is None:
    return None
  for slot, dims in (have or {}).items():
    if tuple(sorted(dims)) == tuple(sorted(kept)):
      return slots[slot]
  whole = slots.get('v')
  if have is None and whole is not None and tuple(whole.shape) == shape:
    over = [dim for dim in range(len(shape)) if dim not in kept]
    return stored_lib.Mean(whole, over=over)
  return None


def divide(slots: Slots, *, by: int) -> dict[str, stored_lib.Stored]:
  """Returns the slots of one layer of a parameter that all layers shared.

  The gradient of a shared parameter is the sum of the layers'; if these are
  alike and independent, each has this part of the second moment. An estimate:
  the layers' own moments are not in the checkpoint.
  """
  return {
      slot: stored_lib.Mean(array, over=(), factor=1 / by)
      if slot.startswith('v') and tuple(array.shape) != _UNUSED
      else array
      for slot, array in slots.items()
  }


def sum_layers(
    slots: Slots, *, axis: int, num_layers: int
) -> dict[str, stored_lib.Stored]:
  """Returns the slots of a parameter that all layers share: see `divide`."""
  made = {}
  for slot, array in slots.items():
    if tuple(array.shape) == _UNUSED:
      made[slot] = array
    elif slot == 'v':
      made[slot] = stored_lib.Mean(array, over=(axis,), factor=num_layers)
    elif slot == 'm':
      made[slot] = stored_lib.Layer(array, axis=axis, number=0)
  return made
