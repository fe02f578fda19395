# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The table of rules that maps logical axis names to mesh axes.

A rule is a pair (logical name, mesh axis). Rules have priority by order, a
mesh axis is used at most once per array, and a name may have several rules:
the first whose mesh axis is still free is taken (flax's meaning).
"""

from collections.abc import Sequence
import difflib
import math
from typing import Any

from flax.linen import partitioning as flax_partitioning
from jax.sharding import Mesh
from jax.sharding import PartitionSpec

from t5wild.partitioning import mesh as mesh_lib

LogicalAxisRules = Sequence[tuple[str, str | tuple[str, ...] | None]]

# Names that T5X's networks use and no layout of T5X splits.
_REPLICATED = (
    ('relpos_buckets', None),
    ('abspos_buckets', None),
    ('length', None),
    ('layers', None),
    ('stack', None),
    ('mlp_activations', None),
)
# Names of T5X's mixture-of-experts layers.
_EXPERTS = (
    ('expert', 'expert'),
    ('expert_mlp', 'model'),
    ('expert_group', None),
    ('expert_replicas', 'data'),
    ('unmodeled', None),
)


def standard_logical_axis_rules(
    activation_partitioning_dims: int = 1,
    parameter_partitioning_dims: int = 1,
    additional_rules: LogicalAxisRules | None = None,
) -> list[tuple[str, str | tuple[str, ...] | None]]:
  """Returns the rules for T5X's axis names.

  With both at 1: heads, mlp and vocab over the model axis (tensor parallel),
  everything else whole. On a mesh whose model axis is 1 that is plain data
  parallelism.

  Args:
    activation_partitioning_dims: 2 also splits the embed dimension of
      activations over the model axis.
    parameter_partitioning_dims: 2 also splits the embed dimension of
      parameters and their optimizer state over the data axis (fully sharded,
      ZeRO-3).
    additional_rules: appended, so of lower priority than the standard ones.

  Raises:
    ValueError: a number of dimensions other than 1 or 2.
  """
  for name, dims in (
      ('activation_partitioning_dims', activation_partitioning_dims),
      ('parameter_partitioning_dims', parameter_partitioning_dims),
  ):
    if dims not in (1, 2):
      raise ValueError(
          f'{name} = {dims!r} is not supported.\n'
          'Expected 1 or 2.\n'
          f'Set standard_logical_axis_rules.{name} to 1 (whole embed '
          'dimension) or 2 (split).'
      )
  table = [
      ('batch', 'data'),
      ('vocab', 'model'),
      ('mlp', 'model'),
      ('heads', 'model'),
      ('kv', None),
      ('joined_kv', 'model'),
  ]
  # Activations first: their batch has taken 'data', so 'model' is what is left
  # for them, while a parameter that uses 'model' elsewhere goes on to 'data'.
  if activation_partitioning_dims == 2:
    table.append(('embed', 'model'))
  if parameter_partitioning_dims == 2:
    table.append(('embed', 'data'))
  if activation_partitioning_dims == parameter_partitioning_dims == 1:
    table.append(('embed', None))
  return [*table, *_REPLICATED, *_EXPERTS, *(additional_rules or ())]


def checked_rules(rules: LogicalAxisRules) -> tuple:
  """Returns the rules as a tuple of pairs, lists from gin made tuples.

  Raises:
    ValueError: an entry that is no pair, or an unknown mesh axis.
  """
  checked = []
  for rule in rules:
    if isinstance(rule, str) or len(rule) != 2 or not isinstance(rule[0], str):
      raise ValueError(
          f'logical_axis_rules has the entry {rule!r}.\n'
          'Expected pairs of a logical axis name and a mesh axis.\n'
          "Write it as ('embed', 'model'), ('embed', ('replica', 'data')) or "
          "('embed', None)."
      )
    name, axes = rule
    axes = tuple(axes) if isinstance(axes, (list, tuple)) else axes
    for axis in mesh_axes_of(axes):
      _check_mesh_axis(axis, rule)
    checked.append((name, axes))
  return tuple(checked)


def mesh_axes_of(entry: str | tuple[str, ...] | None) -> tuple[str, ...]:
  """Returns the mesh axes of one entry of a rule or spec as a tuple."""
  if entry is None or entry is PartitionSpec.UNCONSTRAINED:
    return ()
  return (entry,) if isinstance(entry, str) else tuple(entry)


def _check_mesh_axis(axis: str, rule) -> None:
  if axis in mesh_lib.MESH_AXES:
    return
  close = difflib.get_close_matches(str(axis), mesh_lib.MESH_AXES, n=1)
  hint = f' (did you mean {close[0]!r}?)' if close else ''
  raise ValueError(
      f'The rule {rule!r} names the mesh axis {axis!r}{hint}.\n'
      f'Expected one of {mesh_lib.MESH_AXES}, a tuple of them, or None.\n'
      'Mend the rule in logical_axis_rules.'
  )


def rules_for_mesh(rules: LogicalAxisRules, *, mesh: Mesh) -> tuple:
  """Returns the rules as they apply on one mesh.

  - A batch that goes over `data` also goes over the replica and expert axes
    when these are larger than 1: every device gets its own rows.
  - `length` goes over a sequence axis larger than 1, unless some rule uses
    that axis already.
  - Mesh axes that this mesh doesn't have are left out.
  """
  sizes = dict(mesh.shape)
  used = {axis for _, axes in rules for axis in mesh_axes_of(axes)}
  split_length = sizes.get('sequence', 1) > 1 and 'sequence' not in used
  batch_axes = tuple(
      axis
      for axis in ('replica', 'data', 'expert')
      if axis == 'data' or sizes.get(axis, 1) > 1
  )
  fitted = []
  for name, axes in rules:
    if name == 'batch' and axes == 'data' and len(batch_axes) > 1:
      axes = batch_axes
    if name == 'length' and axes is None and split_length:
      axes = 'sequence'
    kept = tuple(axis for axis in mesh_axes_of(axes) if axis in sizes)
    if not isinstance(axes, tuple):
      fitted.append((name, kept[0] if kept else None))
    else:
      fitted.append((name, kept or None))
  return tuple(fitted)


def spec_of_axes(
    logical_axes: Sequence[str | None],
    *,
    rules: LogicalAxisRules,
    name: str,
    shape: tuple[int, ...] | None = None,
) -> PartitionSpec:
  """Returns the mesh axes of one array.

  Args:
    logical_axes: one name (or None) per dimension.
    rules: checked rules.
    name: of the parameter, for the error.
    shape: for the error.

  Raises:
    ValueError: a logical axis without a rule.
  """
  known = {rule[0] for rule in rules}
  missing = [a for a in logical_axes if a is not None and a not in known]
  if missing:
    raise ValueError(_missing_rule_message(missing, logical_axes, known, name,
                                           shape))
  return flax_partitioning.logical_to_mesh_axes(tuple(logical_axes), rules)


def _missing_rule_message(missing, logical_axes, known, name, shape) -> str:
  lines = ', '.join(f"('{axis}', None)" for axis in missing)
  close = [
      f'{axis!r} -> {match[0]!r}'
      for axis in missing
      if (match := difflib.get_close_matches(axis, known, n=1))
  ]
  hint = f' Did you mean {", ".join(close)}?' if close else ''
  return (
      f'No rule for the logical axes {missing} of parameter {name!r}, axes '
      f'{tuple(logical_axes)}, shape {shape}.\n'
      f'Expected names out of {sorted(known)}.{hint}\n'
      'Add the line\n'
      '  partitioning.standard_logical_axis_rules.additional_rules = '
      f'[{lines}]\n'
      "(None keeps the dimension whole; 'model' or 'data' splits it), or add "
      'the pairs to your own logical_axis_rules.'
  )


def fitted_spec(
    spec: PartitionSpec, *, shape: tuple[int, ...], mesh: Mesh
) -> tuple[PartitionSpec, list[str]]:
  """Returns a spec that divides `shape`, and what had to be left out.

  A dimension that its mesh axes don't divide keeps the leading axes that do
  (a factored optimizer slot of shape (1,) none at all) and is whole along the
  others: correct, only larger.
  """
  if len(spec) > len(shape):
    return PartitionSpec(), (
        [f'{spec} is for {len(spec)} dimensions, the array has shape {shape}']
        if math.prod(shape) > 1
        else []
    )
  entries: list[Any] = []
  dropped = []
  for size, entry in zip(shape, spec, strict=False):
    kept, ways = [], 1
    for axis in mesh_axes_of(entry):
      if size % (ways * mesh.shape[axis]):
        break
      ways *= mesh.shape[axis]
      kept.append(axis)
    if len(kept) == len(mesh_axes_of(entry)):
      entries.append(entry)
      continue
    entries.append(tuple(kept) if len(kept) > 1 else (kept or [None])[0])
    lost = mesh_axes_of(entry)[len(kept)]
    dropped.append(f'{size} over {lost!r} ({mesh.shape[lost]})')
  return PartitionSpec(*entries), dropped
