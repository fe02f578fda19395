# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Factor rules: from axis names, from patterns, from sizes."""

import jax
import pytest

from t5wild.optimizers import factor_rules

FactorDim = factor_rules.FactorDim
PartitionSpec = jax.sharding.PartitionSpec


def _dims(rule, shape, minimum=4):
  return factor_rules.parse_rule(
      rule, shape, path='a/kernel', min_dim_size_to_factor=minimum
  )


def _map(*axes):
  rules = factor_rules.standard_logical_factor_rules()
  return factor_rules.factor_map_from_axes(rules, {'w': PartitionSpec(*axes)})


def test_heuristic_takes_the_longer_side_as_column():
  dims = _dims(factor_rules.HEURISTIC_RULE, (8, 4))
  assert (dims.row, dims.column, dims.averaging) == ((1,), (0,), (0, 1))


@pytest.mark.parametrize('shape', [(), (8,), (8, 3)])
def test_heuristic_leaves_small_shapes_whole(shape):
  assert not _dims(factor_rules.HEURISTIC_RULE, shape).factored


def test_matrix_rules_without_batch_give_way_to_the_heuristic():
  rule = (FactorDim.ROW, FactorDim.COLUMN)
  assert not _dims(rule, (8, 3)).factored


def test_batch_dimensions_are_never_averaged():
  rule = (FactorDim.ROW, FactorDim.BATCH, FactorDim.COLUMN, FactorDim.COLUMN)
  dims = _dims(rule, (2, 3, 2, 2))
  assert dims == factor_rules.FactorDims(
      averaging=(0, 2, 3), row=(0,), column=(2, 3)
  )
  alone = _dims((FactorDim.NONE, FactorDim.BATCH), (8, 3))
  assert (alone.averaging, alone.factored) == ((0,), False)


def test_parameters_without_both_row_and_column_are_not_factored():
  factor_map = _map('heads', 'layers', 'relpos_buckets')
  assert factor_map['w'] == (FactorDim.NONE, FactorDim.BATCH, FactorDim.NONE)


def test_unknown_axis_offers_a_close_name():
  with pytest.raises(ValueError, match="(?s)'embd'.*did you mean 'embed'"):
    _map('embd', 'mlp')


def test_mixed_rule_is_refused():
  with pytest.raises(ValueError, match='mixes ROW, COLUMN and NONE'):
    _map('embed', 'mlp', 'relpos_buckets')


def test_rule_of_another_rank_is_refused():
  with pytest.raises(ValueError, match='1 entries, expected 3'):
    _dims((FactorDim.ROW,), (2, 3, 4))


def test_high_rank_without_rule_is_refused():
  with pytest.raises(ValueError, match='standard_logical_factor_rules'):
    _dims(factor_rules.HEURISTIC_RULE, (2, 3, 4))


def test_names_of_factor_dims():
  assert factor_rules.factor_name_to_factordim('Col') is FactorDim.COLUMN
  assert factor_rules.factor_name_to_factordim(FactorDim.ROW) is FactorDim.ROW
  with pytest.raises(ValueError, match="'rows'"):
    factor_rules.factor_name_to_factordim('rows')


def test_first_matching_pattern_decides():
  by_path = factor_rules.HParamMap([('scale$', 1), ('a/', 2)])
  assert by_path({'a': {'scale': 0, 'kernel': 0}}) == {
      'a': {'scale': 1, 'kernel': 2}
  }
  with pytest.raises(KeyError, match='no rule matches parameter'):
    by_path['b/kernel']
