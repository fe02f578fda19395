# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A network gives the same numbers however it lies on a mesh."""

import contextlib
import functools
import re

import flax
from flax.linen import partitioning
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec
import numpy as np
import pytest

from t5wild.networks import layers
from t5wild.networks import transformer
from tests import t5x_network
from tests.networks import decoders

RULES = (
    ('batch', 'data'),
    ('vocab', 'model'),
    ('mlp', 'model'),
    ('heads', 'model'),
    ('joined_kv', 'model'),
    ('kv', None),
    ('length', 'sequence'),
)
FULLY_SHARDED = (*RULES, ('embed', 'data'))
HALVES = np.array([[1, 1, 1, 1, 2, 2, 2, 2]] * 8)  # two examples in a row
QUICK = {'xla_backend_optimization_level': 0}  # to compile
AXES = ('data', 'model', 'sequence')


def make_mesh(*shape):
  return jax.sharding.Mesh(np.array(jax.devices()).reshape(shape), AXES)


def make_batch(network):
  """What the network takes: the encoder's tokens first, if it has one."""
  random = np.random.RandomState(0)
  encoder = random.randint(3, 300, (8, 16)).astype(np.int32)
  vocab_size = network.config.vocab_size
  decoder = random.randint(3, vocab_size, (8, 8)).astype(np.int32)
  encoder[0, -3:] = 0
  of_decoder = decoders.shift(decoder), decoder
  if isinstance(network, transformer.Transformer):
    return encoder, *of_decoder
  return of_decoder


def loss_fn(params, batch, network, **features):
  logits = network.apply(
      {'params': params},
      *batch,
      **features,
      enable_dropout=True,
      dropout_rows=jnp.arange(8),
      rngs={'dropout': jax.random.PRNGKey(1)},
  )
  log_p = jax.nn.log_softmax(logits)
  return -jnp.mean(jnp.take_along_axis(log_p, batch[-1][..., None], -1))


@functools.cache
def init(network):
  return jax.jit(
      lambda key: network.init(
          key, *make_batch(network), enable_dropout=False
      ),
      compiler_options=QUICK,
  )(jax.random.PRNGKey(0))


@contextlib.contextmanager
def on_mesh(mesh, rules):
  with jax.set_mesh(mesh), partitioning.axis_rules(rules):
    yield


def compile_step(network, mesh, rules, **features):
  """Returns the compiled loss and gradients, and their sharded arguments."""
  variables = init(network)
  axes = partitioning.get_axis_names(variables['params_axes'])
  specs = flax.core.unfreeze(axes)
  shardings = jax.tree.map(
      lambda spec: NamedSharding(
          mesh, partitioning.logical_to_mesh_axes(spec, rules)
      ),
      specs,
      is_leaf=lambda x: isinstance(x, PartitionSpec),
  )
  params = jax.device_put(variables['params'], shardings)
  batch = jax.device_put(
      make_batch(network), NamedSharding(mesh, PartitionSpec('data'))
  )
  step = jax.jit(
      jax.value_and_grad(lambda p, b: loss_fn(p, b, network, **features)),
      out_shardings=(None, shardings),
      compiler_options=QUICK,
  )
  with on_mesh(mesh, rules):
    return step.lower(params, batch).compile(), (params, batch)


@pytest.mark.parametrize(
    ('shape', 'rules', 'scan_layers'),
    [
        ((8, 1, 1), FULLY_SHARDED, True),
        ((2, 2, 2), FULLY_SHARDED, False),
    ],
)
def test_loss_and_gradients_are_the_same_on_every_mesh(
    config, shape, rules, scan_layers
):
  network = transformer.Transformer(config.replace(scan_layers=scan_layers))
  assert_same_on_mesh(network, make_mesh(*shape), rules)


@pytest.mark.parametrize(
    ('name', 'shape', 'scan_layers'),
    [
        # Fewer heads of keys than devices, and as many.
        ('palm', (2, 4, 1), False), ('llama', (2, 2, 2), False),
        ('llama', (4, 2, 1), True), ('llama 3.1', (2, 2, 2), True),
    ],
)  # fmt: skip
def test_decoders_give_the_same_numbers_on_every_mesh(
    name, shape, scan_layers
):
  network = decoders.make(name, scan_layers=scan_layers)
  assert_same_on_mesh(network, make_mesh(*shape), FULLY_SHARDED)


def test_a_packed_prefix_lm_gives_the_same_numbers_on_every_mesh():
  assert_same_on_mesh(
      decoders.make('t5x'),
      make_mesh(2, 2, 2),
      FULLY_SHARDED,
      decoder_causal_attention=np.array([[1, 1, 0, 0, 1, 0, 0, 0]] * 8),
      decoder_segment_ids=HALVES,
  )


def assert_same_on_mesh(network, mesh, rules, **features):
  """Returns the program whose numbers were compared."""
  compiled, arguments = compile_step(network, mesh, rules, **features)
  loss, gradients = compiled(*arguments)
  params = init(network)['params']
  expected_loss, expected = jax.jit(
      jax.value_and_grad(
          lambda p: loss_fn(p, make_batch(network), network, **features)
      ),
      compiler_options=QUICK,
  )(params)
  np.testing.assert_allclose(loss, expected_loss, rtol=1e-6)
  jax.tree.map(
      # Sums over other groups of devices, of numbers up to the largest.
      lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5 * abs(b).max()),
      jax.device_get(gradients),
      jax.device_get(expected),
  )
  return compiled


ENCODER_DECODER = (
    transformer.Transformer(
        t5x_network.PLAIN.replace(
            num_encoder_layers=1,
            num_decoder_layers=1,
            head_dim=4,
            scan_layers=True,
        )
    ),
    {
        'encoder_segment_ids': np.repeat(HALVES, 2, axis=1),
        'decoder_segment_ids': HALVES,
    },
)
PREFIX_LM = (
    decoders.make('t5x', head_dim=4),
    {
        'decoder_causal_attention': np.array([[1, 1, 0, 0, 1, 0, 0, 0]] * 8),
        'decoder_segment_ids': HALVES,
    },
)
DECODER = decoders.make('llama', head_dim=4), {'decoder_segment_ids': HALVES}


@pytest.mark.slow
@pytest.mark.parametrize(
    ('network_and_features', 'shape'),
    [(ENCODER_DECODER, (4, 1, 2)), (DECODER, (1, 2, 4))],
    ids=['t5 by 2', 'decoder by 4'],
)
def test_packed_rows_in_pieces_give_the_same_numbers(
    network_and_features, shape
):
  network, features = network_and_features
  assert_same_on_mesh(network, make_mesh(*shape), FULLY_SHARDED, **features)


@pytest.mark.slow
@pytest.mark.parametrize(
    ('network_and_features', 'pairs'),
    [
        (ENCODER_DECODER, [(8, 8), (16, 16), (8, 16)]),
        (PREFIX_LM, [(8, 8)]),
    ],
    ids=['t5', 'prefix lm'],
)
def test_a_sequence_axis_cuts_every_array_of_pairs_and_changes_no_number(
    network_and_features, pairs
):
  network, features = network_and_features
  text = assert_same_on_mesh(
      network, make_mesh(2, 1, 4), FULLY_SHARDED, **features
  ).as_text()
  for queries, keys in pairs:
    # Of a batch and heads. A head has 4 features, so that arrays of other
    # things have no such end.
    array = rf'f32\[\d+,\d+,%d,{keys}\]'
    assert re.search(array % (queries // 4), text)
    assert not re.search(array % queries, text)


def test_data_parallel_step_moves_nothing_but_sums(config):
  network = transformer.Transformer(config)
  compiled, _ = compile_step(network, make_mesh(8, 1, 1), RULES)
  moves = set(
      re.findall(
          r'(all-[\w-]+|collective-[\w-]+|reduce-scatter)\(', compiled.as_text()
      )
  )
  assert moves <= {'all-reduce'}


def test_length_counts_as_sharded_only_on_a_mesh_that_splits_it():
  assert not layers.is_axis_sharded('length')
  with on_mesh(make_mesh(8, 1, 1), RULES):
    assert not layers.is_axis_sharded('length')
  with on_mesh(make_mesh(4, 1, 2), RULES):
    assert layers.is_axis_sharded('length')
