# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which dimensions of a parameter Adafactor factors its second moment over.

A rule names each dimension ROW, COLUMN, BATCH (separate statistics for each
index, as for scanned layers) or NONE. Rules come from logical axis names
(`factor_map_from_axes`), from a table by parameter path (`HParamMap`), or, for
parameters of rank two and less, from their sizes (`HEURISTIC_RULE`).
"""

from collections.abc import Mapping, Sequence
import dataclasses
import difflib
import enum
import re
from typing import Any

from flax import serialization
from flax import traverse_util
import flax.core
import jax

from t5wild.optimizers import base as optimizers_base


class FactorDim(enum.Enum):
  """The part a dimension plays in the factored second moment."""

  NONE = None
  BATCH = 1
  ROW = 2
  COLUMN = 3


class HeuristicRule(enum.Enum):
  """The type of `HEURISTIC_RULE`."""

  token = 1


HEURISTIC_RULE = HeuristicRule.token
FactorRule = HeuristicRule | tuple[FactorDim, ...]

_NAMES = {
    'row': FactorDim.ROW,
    'col': FactorDim.COLUMN,
    'column': FactorDim.COLUMN,
    'batch': FactorDim.BATCH,
    'none': FactorDim.NONE,
    'unfactorized': FactorDim.NONE,
}


def factor_name_to_factordim(name: Any) -> Any:
  """Returns the FactorDim of a name; anything but a string as it is.

  Raises:
    ValueError: For an unknown name.
  """
  if not isinstance(name, str):
    return name
  if name.lower() not in _NAMES:
    raise ValueError(
        f'unknown factor dimension {name!r}, expected one of '
        f'{", ".join(sorted(_NAMES))}: correct it in logical_factor_rules'
    )
  return _NAMES[name.lower()]


def standard_logical_factor_rules() -> Mapping[str, FactorDim]:
  """Returns T5X's table: logical axis name -> part in the factoring."""
  return flax.core.freeze({
      'vocab': FactorDim.COLUMN,
      'embed': FactorDim.ROW,
      'mlp': FactorDim.COLUMN,
      'heads': FactorDim.COLUMN,
      'kv': FactorDim.COLUMN,
      'joined_kv': FactorDim.COLUMN,
      'relpos_buckets': FactorDim.NONE,
      'layers': FactorDim.BATCH,
      'stack': FactorDim.BATCH,
      'q_wi_fused': FactorDim.COLUMN,
      'o_wo_fused': FactorDim.COLUMN,
      'multiquery_heads': FactorDim.COLUMN,
      'kv_fused': FactorDim.COLUMN,
      'layer_norm_scale': FactorDim.NONE,
      'mlp_activations': FactorDim.COLUMN,
  })


class HParamMap:
  """Hyper-parameters by parameter path: the first matching pattern decides.

  Paths are the keys on the way to a parameter joined by '/'; a pattern
  matches anywhere in the path (`re.search`).
  """

  def __init__(self, rules: Sequence[tuple[str, Any]]):
    """Takes (pattern, value) pairs, tried in order."""
    self._rules = [(re.compile(pattern), value) for pattern, value in rules]

  def __getitem__(self, key: str) -> Any:
    """Returns the value for a path; KeyError when no pattern matches."""
    for pattern, value in self._rules:
      if pattern.search(key):
        return value
    patterns = [pattern.pattern for pattern, _ in self._rules]
    raise KeyError(
        f'no rule matches parameter {key!r}, expected one of the patterns '
        f"{patterns} to: add a last rule ('.*', value) for the rest"
    )

  def __call__(self, params: Any) -> Any:
    """Returns a tree like `params` with each leaf's value."""
    flat = traverse_util.flatten_dict(serialization.to_state_dict(params))
    values = {path: self['/'.join(path)] for path in flat}
    return serialization.from_state_dict(
        params, traverse_util.unflatten_dict(values)
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FactorDims:
  """The dimensions Adafactor reduces over for one parameter.

  Attributes:
    averaging: Dimensions over which scale and clipping are averaged: all but
      BATCH ones.
    row: Dimensions kept by the row statistics, None when not factored.
    column: Dimensions kept by the column statistics, None when not factored.
  """

  averaging: tuple[int, ...]
  row: tuple[int, ...] | None = None
  column: tuple[int, ...] | None = None

  @property
  def factored(self) -> bool:
    """Whether the second moment is kept as a row and a column part."""
    return self.row is not None


def parse_rule(
    rule: FactorRule | None,
    shape: Sequence[int],
    *,
    path: str,
    min_dim_size_to_factor: int,
) -> FactorDims:
  """Returns the dimensions that a rule selects for a parameter.

  As in T5X, a rule for a parameter of rank two or less without BATCH
  dimensions gives way to the size heuristic.

  Args:
    rule: One FactorDim per dimension, `HEURISTIC_RULE`, or None: not factored.
    shape: Shape of the parameter.
    path: Its path, for messages.
    min_dim_size_to_factor: Used by the heuristic only.

  Raises:
    ValueError: When the rule does not fit the shape.
  """
  everything = tuple(range(len(shape)))
  if rule is None:
    return FactorDims(averaging=everything)
  if rule is HEURISTIC_RULE:
    if len(shape) > 2:
      raise ValueError(
          f'parameter {path} of shape {tuple(shape)} has no factor rule, '
          'expected one since its rank is above 2: give '
          'adafactor.Adafactor.logical_factor_rules (for instance '
          '@adafactor.standard_logical_factor_rules()) or a factor_map'
      )
    return _size_heuristic(shape, min_dim_size_to_factor=min_dim_size_to_factor)
  if len(rule) != len(shape):
    raise ValueError(
        f'factor rule {rule} of parameter {path} has {len(rule)} entries, '
        f'expected {len(shape)} since its shape is {tuple(shape)}: give one '
        'entry per dimension'
    )
  batch = _positions(rule, FactorDim.BATCH)
  if len(shape) <= 2 and not batch:
    return _size_heuristic(shape, min_dim_size_to_factor=min_dim_size_to_factor)
  averaging = tuple(d for d in everything if d not in batch)
  row = _positions(rule, FactorDim.ROW)
  column = _positions(rule, FactorDim.COLUMN)
  if not row and not column:
    return FactorDims(averaging=averaging)
  return FactorDims(averaging=averaging, row=row, column=column)


def _positions(rule: Sequence[FactorDim], dim: FactorDim) -> tuple[int, ...]:
  return tuple(i for i, d in enumerate(rule) if d == dim)


def _size_heuristic(
    shape: Sequence[int], *, min_dim_size_to_factor: int
) -> FactorDims:
  """Factors a matrix if both sides are large; the longer side is COLUMN."""
  averaging = tuple(range(len(shape)))
  if len(shape) < 2 or min(shape) < min_dim_size_to_factor:
    return FactorDims(averaging=averaging)
  row, column = sorted(averaging, key=lambda d: shape[d])
  return FactorDims(averaging=averaging, row=(row,), column=(column,))


def factor_map_from_axes(
    rules: Mapping[str, Any], param_logical_axes: Any
) -> dict[str, tuple[FactorDim, ...]]:
  """Returns path -> rule from the logical axis names of all parameters.

  A parameter without both a ROW and a COLUMN dimension is not factored; its
  BATCH dimensions stay.

  Raises:
    ValueError: For an axis name without a rule, or a rule that mixes ROW,
      COLUMN and NONE.
  """
  flat_axes = optimizers_base.flatten_to_paths(
      jax.tree.map(tuple, param_logical_axes, is_leaf=_is_axes)
  )
  return {
      path: _rule_from_axes(rules, axes, path=path)
      for path, axes in flat_axes.items()
  }


def _is_axes(x: Any) -> bool:
  return isinstance(x, (tuple, jax.sharding.PartitionSpec))


def _rule_from_axes(
    rules: Mapping[str, Any], axes: Sequence[str], *, path: str
) -> tuple[FactorDim, ...]:
  for axis in axes:
    if axis not in rules:
      close = difflib.get_close_matches(str(axis), list(rules), n=1)
      hint = f' (did you mean {close[0]!r}?)' if close else ''
      raise ValueError(
          f'no factor rule for axis {axis!r} of parameter {path} with axes '
          f'{tuple(axes)}, expected one of {sorted(rules)}{hint}: add '
          f"{{'{axis}': 'row', 'column', 'batch' or 'none'}} to "
          'adafactor.Adafactor.logical_factor_rules'
      )
  rule = tuple(factor_name_to_factordim(rules[axis]) for axis in axes)
  factored = FactorDim.ROW in rule and FactorDim.COLUMN in rule
  if factored and FactorDim.NONE in rule:
    raise ValueError(
        f'factor rule {[d.name for d in rule]} of parameter {path} with axes '
        f'{tuple(axes)} mixes ROW, COLUMN and NONE, expected every dimension '
        'of a factored parameter to be ROW, COLUMN or BATCH: change the rule '
        'of the NONE axis'
    )
  if factored:
    return rule
  return tuple(
      FactorDim.BATCH if d == FactorDim.BATCH else FactorDim.NONE for d in rule
  )
