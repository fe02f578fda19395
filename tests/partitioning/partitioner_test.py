# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Laws of partitioners: one result on every mesh, constraints that apply."""

from absl import logging
import flax
import flax.linen as nn
from flax.linen import partitioning as flax_partitioning
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P
import numpy as np
import pytest

from t5wild import partitioning
from t5wild.partitioning import partitioned_function

NUM_STEPS = 5
BATCH, LENGTH, EMBED, HEADS, KV, MLP, VOCAB = 8, 6, 8, 2, 4, 16, 24


class Block(nn.Module):
  """One attention and one MLP layer with T5X's axis names."""

  heads: int = HEADS

  def weight(self, name, shape, axes):
    return flax_partitioning.param_with_axes(
        name, nn.initializers.normal(0.3), shape, axes=axes
    )

  @nn.compact
  def __call__(self, tokens):
    constrain = flax_partitioning.with_sharding_constraint
    table = self.weight('token', (VOCAB, EMBED), ('vocab', 'embed'))
    scale = self.weight('scale', (EMBED,), ('embed',))
    x = constrain(table[tokens] * scale, ('batch', 'length', 'embed'))
    qkv = [
        constrain(
            jnp.einsum(
                'ble,ehd->blhd',
                x,
                self.weight(
                    n, (EMBED, self.heads, KV), ('embed', 'heads', 'kv')
                ),
            ),
            ('batch', 'length', 'heads', 'kv'),
        )
        for n in ('query', 'key', 'value')
    ]
    scores = jnp.einsum('bqhd,bkhd->bhqk', qkv[0], qkv[1])
    bias = self.weight('bias', (self.heads, 4), ('heads', 'relpos_buckets'))
    probabilities = jax.nn.softmax(scores + bias[None, :, :1, None])
    y = jnp.einsum('bhqk,bkhd->bqhd', probabilities, qkv[2])
    out = self.weight('out', (self.heads, KV, EMBED), ('heads', 'kv', 'embed'))
    x = constrain(
        x + jnp.einsum('blhd,hde->ble', y, out), ('batch', 'length', 'embed')
    )
    hidden = jnp.tanh(x @ self.weight('wi', (EMBED, MLP), ('embed', 'mlp')))
    hidden = constrain(hidden, ('batch', 'length', 'mlp'))
    x = x + hidden @ self.weight('wo', (MLP, EMBED), ('mlp', 'embed'))
    return constrain(x @ table.T, ('batch', 'length', 'vocab'))


class State(flax.struct.PyTreeNode):
  """The least a train state must be."""

  params: dict
  step: jax.Array
  slots: dict
  axes: dict = flax.struct.field(pytree_node=False)

  def state_dict(self):
    return {
        'target': self.params,
        'state': {'step': self.step, 'param_states': self.slots},
    }

  def restore_state(self, state_dict):
    return self.replace(
        params=state_dict['target'],
        step=state_dict['state']['step'],
        slots=state_dict['state']['param_states'],
    )

  def as_logical_axes(self):
    return self.replace(
        params=self.axes,
        step=None,
        slots={name: {'v': a, 'v_row': a} for name, a in self.axes.items()},
    )


def make_state(heads=HEADS, seed=0):
  variables = jax.eval_shape(
      lambda: Block(heads).init(
          jax.random.PRNGKey(0), jnp.zeros((BATCH, LENGTH), jnp.int32)
      )
  )
  axes = flax_partitioning.get_axis_names(variables['params_axes'])
  random = np.random.default_rng(seed)
  params = {
      name: 0.3 * random.standard_normal(p.shape).astype(np.float32)
      for name, p in variables['params'].items()
  }
  slots = {
      name: {'v': np.zeros_like(p), 'v_row': np.zeros(1, np.float32)}
      for name, p in params.items()
  }
  return State(
      params=params, step=np.int32(0), slots=slots,
      axes=flax.core.unfreeze(axes),
  )


def make_shapes():
  return jax.tree.map(
      lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), make_state()
  )


def make_host_batch():
  random = np.random.default_rng(0)
  return {
      name: random.integers(0, VOCAB, (BATCH, LENGTH))
      for name in ('tokens', 'targets')
  }


def loss_fn(params, batch, heads):
  logits = Block(heads).apply({'params': params}, batch['tokens'])
  chosen = jnp.take_along_axis(
      jax.nn.log_softmax(logits), batch['targets'][..., None], axis=-1
  )
  return -jnp.sum(chosen) / batch['targets'].size


def train(partitioner, num_steps=NUM_STEPS, heads=HEADS):
  """Losses of a few steps of momentum SGD, and the last state."""
  state = make_state(heads)
  specs = partitioner.get_mesh_axes(state)
  state = partitioner.move_params_to_devices(state, specs)
  batch = partitioner.global_batch(make_host_batch())

  def step_fn(state, batch):
    loss, grads = jax.value_and_grad(loss_fn)(state.params, batch, heads)
    slots = {
        name: {'v': 0.9 * s['v'] + grads[name], 'v_row': s['v_row']}
        for name, s in state.slots.items()
    }
    params = {name: p - 0.1 * slots[name]['v'] for name, p in
              state.params.items()}
    return state.replace(params=params, slots=slots, step=state.step + 1), loss

  step = partitioner.partition(
      step_fn,
      in_axis_resources=(specs, partitioner.data_partition_spec),
      out_axis_resources=(specs, None),
      donate_argnums=(0,),
  )
  losses = []
  for _ in range(num_steps):
    state, loss = step(state, batch)
    losses.append(float(loss))
  return losses, state


@pytest.fixture(scope='module')
def reference_losses():
  """Of plain jit on one device: no mesh, no rules."""
  params = make_state().params
  momentum = jax.tree.map(np.zeros_like, params)
  batch = make_host_batch()
  gradient = jax.jit(jax.value_and_grad(lambda p: loss_fn(p, batch, HEADS)))
  losses = []
  for _ in range(NUM_STEPS):
    loss, grads = gradient(params)
    losses.append(float(loss))
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
    params = jax.tree.map(lambda p, m: p - 0.1 * m, params, momentum)
  return losses


MESHES = {
    'data parallel': {},
    'tensor parallel': {'num_partitions': 2},
    'only tensor parallel': {'num_partitions': 8},
    'fully sharded': {'parameter_partitioning_dims': 2},
    '2D activations': {
        'num_partitions': 2,
        'activation_partitioning_dims': 2,
    },
    '2D both': {
        'num_partitions': 4,
        'activation_partitioning_dims': 2,
        'parameter_partitioning_dims': 2,
    },
    'replicas of fully sharded': {
        'mesh_shape': {'replica': 2},
        'parameter_partitioning_dims': 2,
    },
    'replicas of 2D': {
        'mesh_shape': {'replica': 2, 'model': 2},
        'parameter_partitioning_dims': 2,
    },
    'DCN replicas': {'ici_mesh_shape': [1, 2, 2], 'dcn_mesh_shape': [2, 1, 1]},
    'sequence': {'mesh_shape': {'sequence': 2, 'model': 2}},
    'expert': {'mesh_shape': {'expert': 2, 'model': 2}},
    'T5X submesh': {'model_parallel_submesh': (2, 1, 1, 2)},
}


@pytest.mark.parametrize('arguments', MESHES.values(), ids=MESHES)
def test_every_mesh_has_the_losses_of_plain_jit(arguments, reference_losses):
  losses, _ = train(partitioning.PjitPartitioner(**arguments))
  # float32 sums in another order: 2e-6 seen.
  np.testing.assert_allclose(losses, reference_losses, rtol=1e-5)


def test_heads_that_the_model_axis_does_not_divide_are_still_right():
  expected, _ = train(partitioning.PjitPartitioner(), 3, heads=3)
  found, state = train(
      partitioning.PjitPartitioner(num_partitions=4), 3, heads=3
  )
  np.testing.assert_allclose(found, expected, rtol=1e-5)
  assert state.params['query'].sharding.spec == P(None, None, None)
  assert state.params['wi'].sharding.spec == P(None, 'model')


def test_fully_sharded_devices_hold_a_part_of_parameters_and_slots():
  _, state = train(
      partitioning.PjitPartitioner(parameter_partitioning_dims=2), 1
  )
  for array in (state.params['wi'], state.slots['wi']['v']):
    shapes = {shard.data.shape for shard in array.addressable_shards}
    assert shapes == {(EMBED // 8, MLP)}


def test_specs_follow_logical_axes_and_scalars_are_whole():
  specs = partitioning.PjitPartitioner(num_partitions=2).get_mesh_axes(
      make_shapes()
  )
  assert specs.params['wi'] == P(None, 'model')
  assert specs.slots['wi'] == {'v': P(None, 'model'), 'v_row': P()}
  assert specs.step == P()


def test_specs_are_the_same_from_shapes_and_from_arrays():
  partitioner = partitioning.PjitPartitioner(num_partitions=2)
  from_shapes = partitioner.get_mesh_axes(make_shapes())
  assert partitioner.get_mesh_axes(make_state()) == from_shapes


def test_a_parameter_that_stays_whole_is_named_in_the_log(monkeypatch):
  said = []
  monkeypatch.setattr(
      logging, 'warning', lambda text, *parts: said.append(text % parts)
  )
  partitioning.PjitPartitioner(num_partitions=4).get_mesh_axes(make_state(3))
  (text,) = said
  assert "target/query (8, 3, 4): 3 over 'model' (4)" in text
  assert 'v_row' not in text and 'target/wi' not in text


def test_a_missing_rule_names_the_parameter():
  partitioner = partitioning.PjitPartitioner(
      logical_axis_rules=[('batch', 'data'), ('embed', None)]
  )
  with pytest.raises(ValueError, match="'target/bias'.*shape") as caught:
    partitioner.get_mesh_axes(make_state())
  assert "additional_rules = [('heads', None)" in str(caught.value)


def test_logical_constraints_of_a_network_apply_inside():
  partitioner = partitioning.PjitPartitioner(num_partitions=2)

  def fn(x):
    return flax_partitioning.with_sharding_constraint(
        jnp.tanh(x), ('batch', 'mlp')
    )

  partitioned = partitioner.partition(
      fn, in_axis_resources=None, out_axis_resources=None
  )
  x = jax.ShapeDtypeStruct((8, 4), jnp.float32)
  assert '[{"data"}, {"model"}]' in partitioned.lower(x).as_text()
  # And outside nothing is left behind.
  assert jax.jit(fn)(jnp.ones((8, 4))).shape == (8, 4)
  assert not flax_partitioning.get_axis_rules()


def test_constraints_by_mesh_axis_apply_inside_too():
  partitioner = partitioning.PjitPartitioner(num_partitions=2)
  partitioned = partitioner.partition(
      lambda x: jax.lax.with_sharding_constraint(x * 2, P('data', 'model')),
      in_axis_resources=None,
      out_axis_resources=P('data', 'model'),
  )
  assert partitioned(np.ones((8, 4))).sharding.spec == P('data', 'model')


def test_on_one_device_no_constraint_is_traced():
  mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ('data',))
  partitioned = partitioned_function.PartitionedFunction(
      jax.jit(
          lambda x: flax_partitioning.with_sharding_constraint(x, ('batch',))
      ),
      mesh=mesh,
      logical_axis_rules=(('batch', 'data'),),
  )
  assert 'constraint' not in partitioned.lower(jnp.ones(4)).as_text()


def test_a_compiled_function_gives_what_the_called_one_gives():
  partitioner = partitioning.PjitPartitioner()
  spec = partitioner.data_partition_spec
  partitioned = partitioner.partition(lambda x: x * 2, spec, spec)
  x = partitioner.global_batch({'x': np.arange(8.0)})['x']
  compiled = partitioner.compile(
      partitioned, jax.ShapeDtypeStruct(x.shape, x.dtype)
  )
  np.testing.assert_array_equal(compiled(x), partitioned(x))


def test_donated_state_gives_its_memory_away():
  partitioner = partitioning.PjitPartitioner()
  spec = partitioner.data_partition_spec
  partitioned = partitioner.partition(
      lambda x: x + 1, spec, spec, donate_argnums=(0,)
  )
  x = partitioner.global_batch({'x': np.arange(8.0)})['x']
  partitioned(x)
  assert x.is_deleted()


def test_the_constructor_starts_no_backend(monkeypatch):
  monkeypatch.setattr(jax, 'devices', lambda *_: pytest.fail('too early'))
  partitioning.PjitPartitioner(num_partitions=2, platform='gpu')


def test_numbers_of_dimensions_beside_rules_are_not_ignored():
  with pytest.raises(ValueError, match='standard_logical_axis_rules.param'):
    partitioning.PjitPartitioner(
        logical_axis_rules=partitioning.standard_logical_axis_rules(),
        parameter_partitioning_dims=2,
    )


@pytest.mark.parametrize(
    'arguments',
    [
        {'num_partitions': 3},
        {'mesh_shape': {'data': 3, 'model': 2}},
        {'ici_mesh_shape': [1, 3], 'dcn_mesh_shape': [2, 1]},
        {'model_parallel_submesh': [3, 1, 1, 1]},
    ],
)
def test_a_mesh_that_does_not_fit_is_given_up_for_data_parallelism(
    arguments, caplog
):
  partitioner = partitioning.PjitPartitioner(**arguments)
  with caplog.at_level('WARNING', logger='absl'):
    partitioner.fall_back_to_data_parallelism()
  assert partitioner.mesh.shape['data'] == partitioner.data_mesh_size == 8
  (record,) = caplog.records
  assert 'does not fit the 8 device(s)' in record.getMessage()
  assert '8 device(s) are data parallel' in record.getMessage()


def test_a_mesh_that_fits_is_kept(caplog):
  partitioner = partitioning.PjitPartitioner(num_partitions=2)
  partitioner.fall_back_to_data_parallelism()
  assert partitioner.mesh.shape['model'] == 2
  assert not caplog.records


def test_a_platform_that_is_not_there_is_refused_when_the_mesh_is_made():
  with pytest.raises(ValueError, match="asks for 'tpu'"):
    _ = partitioning.PjitPartitioner(platform='tpu').mesh


def test_t5x_properties_agree_with_each_other():
  partitioner = partitioning.PjitPartitioner(
      num_partitions=2, use_cpu_pjit=True, params_on_devices=True
  )
  assert partitioner.mesh.axis_names == partitioning.MESH_AXES
  assert partitioner.data_partition_spec == P('data')
  assert partitioner.data_mesh_size == 4
  assert partitioner.data_shards == 1 and partitioner.data_shard_id == 0
  assert partitioner.get_data_layout(8) == partitioning.DataLayout(
      batch_size=8, shard_id=0, num_shards=1, is_first_host_in_replica_set=True
  )
  assert partitioner.get_data_layout().batch_size == 4
