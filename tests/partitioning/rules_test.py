# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Laws of the rule table."""

from flax.linen import partitioning as flax_partitioning
import jax
from jax.sharding import PartitionSpec as P
import numpy as np
import pytest

from t5wild.partitioning import mesh as mesh_lib
from t5wild.partitioning import rules as rules_lib

# Every name that T5X's networks and its mixture-of-experts layers use.
T5X_NAMES = {
    'batch', 'vocab', 'embed', 'mlp', 'heads', 'kv', 'joined_kv',
    'relpos_buckets', 'abspos_buckets', 'length', 'layers', 'stack',
    'mlp_activations', 'expert', 'expert_mlp', 'expert_group',
    'expert_replicas', 'unmodeled',
}


def make_mesh(**shape):
  devices = jax.devices()
  sizes = mesh_lib.mesh_sizes(len(devices), mesh_shape=shape)
  return mesh_lib.make_mesh(devices, sizes=sizes)


def spec(axes, rules):
  return rules_lib.spec_of_axes(axes, rules=rules, name='p')


@pytest.mark.parametrize('activations', [1, 2])
@pytest.mark.parametrize('parameters', [1, 2])
def test_every_t5x_name_has_a_rule(activations, parameters):
  rules = rules_lib.standard_logical_axis_rules(activations, parameters)
  assert {name for name, _ in rules} >= T5X_NAMES


@pytest.mark.parametrize(
    'activations, parameters, kernel, embedding, activation',
    [
        # As T5X lays out (embed, mlp), (vocab, embed), (batch, length, embed).
        (1, 1, (None, 'model'), ('model', None), ('data', None, None)),
        (2, 1, (None, 'model'), ('model', None), ('data', None, 'model')),
        (1, 2, ('data', 'model'), ('model', 'data'), ('data', None, None)),
        (2, 2, ('data', 'model'), ('model', 'data'), ('data', None, 'model')),
    ],
)
def test_the_four_standard_tables_lay_out_as_t5x(
    activations, parameters, kernel, embedding, activation
):
  rules = rules_lib.checked_rules(
      rules_lib.standard_logical_axis_rules(activations, parameters)
  )
  assert spec(('embed', 'mlp'), rules) == P(*kernel)
  assert spec(('vocab', 'embed'), rules) == P(*embedding)
  assert spec(('batch', 'length', 'embed'), rules) == P(*activation)


def test_additional_rules_come_last():
  extra = [('mine', 'data'), ('other', None)]
  plain = rules_lib.standard_logical_axis_rules()
  rules = rules_lib.standard_logical_axis_rules(additional_rules=extra)
  assert rules[: len(plain)] == plain and rules[len(plain) :] == extra


@pytest.mark.parametrize('dims', [0, 3, None])
def test_other_numbers_of_dimensions_are_refused(dims):
  with pytest.raises(ValueError, match='Expected 1 or 2'):
    rules_lib.standard_logical_axis_rules(activation_partitioning_dims=dims)


def test_rules_from_gin_may_be_lists():
  rules = rules_lib.checked_rules([['batch', ['replica', 'data']]])
  assert rules == (('batch', ('replica', 'data')),)


@pytest.mark.parametrize('rule', ['embed', ('embed',), (1, 'data')])
def test_a_rule_that_is_no_pair_is_refused(rule):
  with pytest.raises(ValueError, match='Expected pairs'):
    rules_lib.checked_rules([rule])


def test_an_unknown_mesh_axis_is_refused_with_the_close_name():
  with pytest.raises(ValueError, match="did you mean 'model'"):
    rules_lib.checked_rules([('embed', 'modle')])


@pytest.mark.parametrize(
    'shape, batch',
    [
        ({'model': 2}, 'data'),
        ({'replica': 2}, ('replica', 'data')),
        ({'expert': 2}, ('data', 'expert')),
        ({'replica': 2, 'expert': 2}, ('replica', 'data', 'expert')),
    ],
)
def test_a_batch_goes_over_every_axis_that_holds_different_rows(shape, batch):
  rules = rules_lib.rules_for_mesh(
      rules_lib.standard_logical_axis_rules(), mesh=make_mesh(**shape)
  )
  assert dict(rules)['batch'] == batch


def test_a_batch_rule_of_ones_own_is_kept():
  rules = (('batch', ('data', 'model')),)
  assert (
      rules_lib.rules_for_mesh(rules, mesh=make_mesh(replica=2, model=2))
      == rules
  )


def test_a_sequence_axis_splits_length():
  table = rules_lib.standard_logical_axis_rules()
  rules = rules_lib.rules_for_mesh(table, mesh=make_mesh(sequence=2))
  assert dict(rules)['length'] == 'sequence'
  rules = rules_lib.rules_for_mesh(
      [*table, ('mine', 'sequence')], mesh=make_mesh(sequence=2)
  )
  assert dict(rules)['length'] is None


def test_axes_that_a_smaller_mesh_lacks_are_left_out():
  mesh = jax.sharding.Mesh(
      np.array(jax.devices()).reshape(4, 2), ('data', 'model')
  )
  rules = rules_lib.rules_for_mesh(
      rules_lib.standard_logical_axis_rules(), mesh=mesh
  )
  assert dict(rules)['expert'] is None and dict(rules)['batch'] == 'data'


def test_a_missing_rule_names_parameter_axes_and_the_line_to_add():
  rules = rules_lib.checked_rules(rules_lib.standard_logical_axis_rules())
  with pytest.raises(ValueError) as caught:
    rules_lib.spec_of_axes(
        ('embed', 'mpl'), rules=rules, name='encoder/wi/kernel', shape=(8, 32)
    )
  message = str(caught.value)
  for part in (
      "'encoder/wi/kernel'",
      "('embed', 'mpl')",
      '(8, 32)',
      "'mpl' -> 'mlp'",
      "additional_rules = [('mpl', None)]",
  ):
    assert part in message
  # The line it tells to add is the mend.
  mended = rules_lib.checked_rules(
      rules_lib.standard_logical_axis_rules(additional_rules=[('mpl', None)])
  )
  assert spec(('embed', 'mpl'), mended) == P(None, None)


def test_an_unnamed_dimension_needs_no_rule():
  assert spec((None, 'mlp'), (('mlp', 'model'),)) == P(None, 'model')


@pytest.mark.parametrize(
    'given, shape, fitted, num_dropped',
    [
        (P('data', 'model'), (8, 4), P('data', 'model'), 0),
        (P('data', 'model'), (8, 3), P('data', None), 1),
        (P('model'), (1,), P(None), 1),
        (P(None, 'model'), (1,), P(), 0),
        (P(None, 'model'), (8,), P(), 1),
        (P(('replica', 'data')), (2,), P('replica'), 1),
        (P(('replica', 'data'),), (4,), P(('replica', 'data')), 0),
        (P('model'), (), P(), 0),
    ],
)
def test_what_does_not_divide_stays_whole(given, shape, fitted, num_dropped):
  mesh = make_mesh(replica=2, data=2, model=2)
  found, dropped = rules_lib.fitted_spec(given, shape=shape, mesh=mesh)
  assert found == fitted
  assert len(dropped) == num_dropped
  # And so it is a sharding JAX takes.
  jax.sharding.NamedSharding(mesh, found).shard_shape(shape)


def test_priorities_are_flaxs():
  rules = (('heads', 'model'), ('mlp', 'model'), ('mlp', 'data'))
  for axes in (('heads', 'mlp'), ('mlp', 'heads'), ('mlp',)):
    assert spec(axes, rules) == flax_partitioning.logical_to_mesh_axes(
        axes, rules
    )
