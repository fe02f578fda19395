# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Specs of the real train state: every parameter and slot has one."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P
import pytest

from t5wild import partitioning
from t5wild import train_state as train_state_lib
from t5wild.networks import transformer
from t5wild.optimizers import adafactor


def make_shapes(scan_layers):
  config = transformer.T5Config(
      vocab_size=32, dtype=jnp.float32, emb_dim=16, num_heads=4,
      num_encoder_layers=2, num_decoder_layers=2, head_dim=8, mlp_dim=32,
      mlp_activations=('gelu', 'linear'), dropout_rate=0.0,
      scan_layers=scan_layers,
  )
  tokens = jnp.ones((8, 4), jnp.int32)
  optimizer = adafactor.Adafactor(
      logical_factor_rules=adafactor.standard_logical_factor_rules()
  )

  def make():
    variables = transformer.Transformer(config).init(
        jax.random.PRNGKey(0), tokens, tokens, tokens, enable_dropout=False
    )
    return train_state_lib.FlaxOptimTrainState.create(optimizer, variables)

  return jax.eval_shape(make)


def is_spec(leaf):
  return isinstance(leaf, P)


@pytest.mark.parametrize('scan_layers', [False, True])
@pytest.mark.parametrize(
    'arguments',
    [
        {'num_partitions': 2, 'parameter_partitioning_dims': 2},
        {'num_partitions': 8},  # more than there are heads
        {'mesh_shape': {'replica': 2, 'model': 2}},
    ],
)
def test_every_array_has_a_spec_that_divides_it(scan_layers, arguments):
  partitioner = partitioning.PjitPartitioner(**arguments)
  shapes = make_shapes(scan_layers)
  specs = partitioner.get_mesh_axes(shapes)
  assert jax.tree.structure(specs, is_leaf=is_spec) == jax.tree.structure(
      shapes
  )
  jax.tree.map(
      lambda leaf, sharding: sharding.shard_shape(leaf.shape),
      shapes,
      partitioner.shardings(specs),
  )


def test_t5x_layouts_of_plain_and_scanned_parameters():
  partitioner = partitioning.PjitPartitioner(
      num_partitions=2, parameter_partitioning_dims=2
  )
  plain = partitioner.get_mesh_axes(make_shapes(scan_layers=False))
  encoder = plain.params['encoder']['layers_0']
  assert encoder['attention']['query']['kernel'] == P('data', 'model')
  assert encoder['mlp']['wo']['kernel'] == P('model', 'data')
  assert plain.params['token_embedder']['embedding'] == P('model', 'data')
  assert plain.step == P()
  scanned = partitioner.get_mesh_axes(make_shapes(scan_layers=True))
  kernel = scanned.params['encoder']['encoder']['attention']['query']['kernel']
  assert kernel == P('data', None, 'model', None)


def test_an_unfactored_slot_lies_as_its_parameter():
  partitioner = partitioning.PjitPartitioner(
      num_partitions=2, parameter_partitioning_dims=2
  )
  specs = partitioner.get_mesh_axes(make_shapes(scan_layers=False))
  slots = specs.param_states['encoder']['layers_0']['mlp']['wo']['kernel']
  assert slots.v == P('model', 'data') and slots.v_row == P()
