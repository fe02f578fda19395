# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Inference over a data set: every example once, in order, on every mesh."""

import types

import jax
from jax import numpy as jnp
from jax.sharding import PartitionSpec
import numpy as np
import pytest

from t5wild import inference
from t5wild import partitioning

STATE = types.SimpleNamespace(params={'scale': np.float32(2)}, flax_mutables={})
AXES = types.SimpleNamespace(
    params={'scale': PartitionSpec()}, flax_mutables={}
)
MESHES = (
    {'data': 1, 'model': 8},
    {'data': 8},
    {'data': 4, 'model': 2},
    {'replica': 2, 'data': 2, 'model': 2},
)


def _examples(count):
  # Indices as seqio numbers them, which need not be those of the list.
  return [
      (np.int64(i + 100), {'x': np.arange(3, dtype=np.int32) + i})
      for i in range(count)
  ]


def _double(params, batch):
  return (batch['x'] * params['scale']).astype(jnp.int32)


def _infer(infer_step, count, *, mesh=None, rng=None, **kwargs):
  partitioner = partitioning.PjitPartitioner(mesh_shape=mesh or {'data': 8})
  infer_fn = inference.get_infer_fn(infer_step, 8, AXES, partitioner, **kwargs)
  return infer_fn(_examples(count), STATE, rng=rng)


@pytest.mark.parametrize('mesh', MESHES, ids=str)
@pytest.mark.parametrize('count', [1, 8, 43])
def test_every_example_comes_once_and_in_order(mesh, count):
  expected = [
      (i + 100, [2 * i, 2 * i + 2, 2 * i + 4]) for i in range(count)
  ]
  assert _infer(_double, count, mesh=mesh) == expected


def test_no_examples_give_no_outputs():
  assert _infer(_double, 0) == []


def test_auxiliary_values_lie_beside_the_outputs():
  def step(params, batch):
    return _double(params, batch), {'sum': batch['x'].sum(axis=1)}

  outputs, aux = _infer(step, 9)
  assert [index for index, _ in outputs] == list(range(100, 109))
  assert aux == {'sum': [3 * i + 3 for i in range(9)]}
  _, aux = _infer(step, 9, keep_aux_as_numpy=True)
  assert isinstance(aux['sum'][0], np.integer)


def test_each_batch_has_its_own_key_and_the_same_on_every_mesh():
  def step(params, batch, rng):
    del params
    return jax.random.uniform(rng, batch['x'].shape)

  runs = [
      _infer(step, 16, mesh=mesh, rng=jax.random.PRNGKey(0)) for mesh in MESHES
  ]
  assert runs[1:] == runs[:-1]
  assert runs[0][0][1] != runs[0][8][1]


def test_other_variables_reach_a_step_that_takes_them():
  def step(params, batch, flax_mutables):
    assert flax_mutables == {}
    return _double(params, batch)

  assert len(_infer(step, 3)) == 3


def test_a_batch_that_does_not_divide_is_refused():
  with pytest.raises(ValueError, match='Expected a multiple of 8'):
    inference.get_infer_fn(
        _double, 6, AXES, partitioning.PjitPartitioner(mesh_shape={'data': 8})
    )


def test_hosts_with_unequal_data_are_told(monkeypatch):
  monkeypatch.setattr(
      inference.distributed, 'meet', lambda name, *, value: [value, value + 1]
  )
  with pytest.raises(ValueError, match=r'\[3, 4\] examples'):
    _infer(_double, 3)


def test_what_was_inferred_is_taken_apart_in_the_order_of_the_examples():
  pairs = [(2, 'c'), (0, 'a'), (1, 'b')]
  assert inference.tokens_and_aux_values(pairs) == (['a', 'b', 'c'], {})
  aux = {'scores': [0.2, 0.0, 0.1], 'each': {'x': np.arange(3)}}
  tokens, ordered = inference.tokens_and_aux_values((pairs, aux))
  assert tokens == ['a', 'b', 'c']
  assert ordered == {'scores': [0.0, 0.1, 0.2], 'each': {'x': [1, 2, 0]}}
