# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Layers stacked or plain hold the same numbers, the optimizer's too."""

import jax
import numpy as np
import pytest

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import layer_stacks
from t5wild.checkpoints import relayout
from t5wild.checkpoints import stored
from t5wild.checkpoints import transforms

EMBED, HEADS, KV, MLP, LAYERS = 6, 4, 5, 8, 3
# Of one layer: name, shape as T5X stacks it (without layers), plain shape, and
# the dimension of the first that is 'embed', which is the row.
KERNELS = (
    ('self_attention/query/kernel', (EMBED, HEADS, KV), (EMBED, HEADS * KV), 0),
    ('self_attention/out/kernel', (HEADS, KV, EMBED), (HEADS * KV, EMBED), 2),
    ('mlp/wi_0/kernel', (EMBED, MLP), (EMBED, MLP), 0),
    ('mlp/wo/kernel', (MLP, EMBED), (MLP, EMBED), 1),
)
NORM = 'pre_mlp_layer_norm/scale'
BIAS = 'relpos_bias/rel_embedding'
BUCKETS = 7


def _gradients(seed=0):
  """Squared gradients of every layer, in the stacked shapes without layers."""
  rng = np.random.default_rng(seed)
  shapes = {name: shape for name, shape, _, _ in KERNELS}
  shapes |= {NORM: (EMBED,), BIAS: (HEADS, BUCKETS)}
  return [
      {n: rng.random(s).astype(np.float32) for n, s in shapes.items()}
      for _ in range(LAYERS)
  ]


def _unused():
  return np.zeros(1, np.float32)


def _slots(whole, row=None, column=None, momentum=False):
  """Adafactor's slots: two means, or the whole second moment."""
  m = whole * 2 if momentum else _unused()
  if row is None:
    return {'v': whole, 'v_row': _unused(), 'v_col': _unused(), 'm': m}
  return {'v': _unused(), 'v_row': row, 'v_col': column, 'm': m}


def _add(state, key, value, slots):
  state[f'target/{key}'] = value
  state |= {f'state/param_states/{key}/{k}': v for k, v in slots.items()}


def _plain(squares, *, factored=True, momentum=False):
  """A plain checkpoint, as the plain Adafactor would have it."""
  state = {'state/step': np.int32(3)}
  for number, layer in enumerate(squares):
    head = f'decoder/layers_{number}'
    for name, _, shape, _ in KERNELS:
      value = layer[name].reshape(shape)
      small = int(np.argmin(shape))  # The shorter side is the row.
      means = (value.mean(1 - small), value.mean(small)) if factored else ()
      slots = _slots(value, *means, momentum=momentum)
      _add(state, f'{head}/{name}', -value, slots)
    for name in (NORM, BIAS):
      value = layer[name]
      _add(state, f'{head}/{name}', -value, _slots(value, momentum=momentum))
  return _with_outer(state)


def _stacked(squares, *, axis=1, momentum=False):
  """A stacked checkpoint, as T5X's rules for scanned layers would have it."""
  state = {'state/step': np.int32(3)}
  for name, shape, _, row in KERNELS:
    at = min(axis, len(shape))
    values = [layer[name] for layer in squares]
    others = tuple(d for d in range(len(shape)) if d != row)
    rows = np.stack([v.mean(others) for v in values], int(row < at))
    columns = np.stack(
        [v.mean(row) for v in values], sum(d < at for d in others)
    )
    whole = np.stack(values, at)
    _add(
        state, f'decoder/decoder/{name}', -whole,
        _slots(whole, rows, columns, momentum=momentum),
    )
  for name in (NORM, BIAS):
    whole = np.stack([layer[name] for layer in squares], axis)
    _add(
        state, f'decoder/decoder/{name}', -whole,
        _slots(whole, momentum=momentum),
    )
  return _with_outer(state)


def _with_outer(state):
  """What both have alike."""
  value = np.arange(EMBED, dtype=np.float32)
  _add(state, 'decoder/decoder_norm/scale', value, _slots(value))
  return state


def _stored(state):
  return {k: stored.InMemory(np.asarray(v), key=k) for k, v in state.items()}


def _wanted(state):
  return jax.tree.map(
      lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), dict(state)
  )


def _adapt(have, want):
  """The checkpoint under the model's names, all of it read."""
  adapted = layer_stacks.adapt(_stored(have), _wanted(want))
  kept = {k: v for k, v in have.items() if k not in adapted.used}
  return kept | {k: np.asarray(v) for k, v in adapted.arrays.items()}


def _assert_same(actual, expected):
  assert sorted(actual) == sorted(expected)
  for key, value in expected.items():
    # Means of float32 numbers, taken in another order.
    np.testing.assert_allclose(actual[key], value, rtol=1e-6, err_msg=key)


@pytest.mark.parametrize('momentum', [False, True])
@pytest.mark.parametrize('axis', [0, 1])
def test_stack_taken_apart_is_what_plain_layers_would_have(axis, momentum):
  squares = _gradients()
  stacked = _stacked(squares, axis=axis, momentum=momentum)
  plain = _plain(squares, momentum=momentum)
  _assert_same(_adapt(stacked, plain), plain)


@pytest.mark.parametrize('momentum', [False, True])
@pytest.mark.parametrize('axis', [0, 1])
@pytest.mark.parametrize('factored', [False, True])
def test_layers_stacked_are_what_a_scanned_network_would_have(
    axis, momentum, factored
):
  squares = _gradients()
  stacked = _stacked(squares, axis=axis, momentum=momentum)
  plain = _plain(squares, factored=factored, momentum=momentum)
  _assert_same(_adapt(plain, stacked), stacked)


def test_any_shard_of_a_stack_is_read_from_its_layers():
  squares = _gradients()
  plain, stacked = _plain(squares), _stacked(squares)
  adapted = layer_stacks.adapt(_stored(plain), _wanted(stacked))
  key = 'target/decoder/decoder/self_attention/query/kernel'
  part = (slice(2, 4), slice(1, 3), slice(1, 2), slice(2, 5))
  np.testing.assert_array_equal(
      adapted.arrays[key].read(part), stacked[key][part]
  )


def test_same_layout_is_left_as_it_is():
  plain = _plain(_gradients())
  assert not layer_stacks.adapt(_stored(plain), _wanted(plain)).arrays


def test_moments_of_each_kind_of_optimizer_go_with_the_parameters():
  squares = _gradients()
  states = []
  for state in (_plain(squares), _stacked(squares)):
    targets = {k: v for k, v in state.items() if k.startswith('target/')}
    states.append(
        targets
        | {k.replace('target', 'state/param_states/0/mu'): v * 3
           for k, v in targets.items()}
    )  # fmt: skip
  plain, stacked = states
  _assert_same(_adapt(plain, stacked), stacked)
  _assert_same(_adapt(stacked, plain), plain)


def test_moment_of_two_means_is_not_made_whole():
  squares = _gradients()
  want = _plain(squares, factored=False)
  adapted = _adapt(_stacked(squares), want)
  lost = want.keys() - adapted.keys()
  assert lost
  assert all(key.endswith('/v') for key in lost)


def _shared(squares):
  """A plain checkpoint with one relative bias for all layers."""
  state = _plain(squares)
  for key in [k for k in state if BIAS in k]:
    value = state.pop(key)
    if 'layers_0' in key:
      state[key.replace('layers_0/', '')] = value
  return state


def test_shared_bias_is_in_every_layer_of_a_stack():
  squares = _gradients()
  plain = _shared(squares)
  made = _adapt(plain, _stacked(squares))
  key = f'target/decoder/decoder/{BIAS}'
  assert made[key].shape == (HEADS, LAYERS, BUCKETS)
  for number in range(LAYERS):
    np.testing.assert_array_equal(
        made[key][:, number], plain[f'target/decoder/{BIAS}']
    )
  # The gradient of a shared bias is the sum of the layers'.
  moment = made[f'state/param_states/decoder/decoder/{BIAS}/v']
  np.testing.assert_allclose(
      moment.sum(1), plain[f'state/param_states/decoder/{BIAS}/v'], rtol=1e-6
  )
  # And back again.
  _assert_same(_adapt(made, plain), plain)


def test_different_biases_are_not_shared_in_silence():
  squares = _gradients()
  with pytest.raises(transforms.DifferentModelError) as caught:
    _adapt(_stacked(squares), _shared(squares))
  assert "positions = 'relative_bias_per_layer'" in str(caught.value)
  assert f'{LAYERS} layers' in str(caught.value)


def test_another_number_of_layers_is_told_as_such():
  squares = _gradients()
  few = _wanted(_plain(squares[:2]))
  adapted = layer_stacks.adapt(_stored(_stacked(squares)), few)
  with pytest.raises(transforms.DifferentModelError, match='layers_2/mlp'):
    transforms.check_same_model(adapted.arrays, few, path='p')
  stack = _wanted(_stacked(squares))
  adapted = layer_stacks.adapt(_stored(_plain(squares[:2])), stack)
  with pytest.raises(
      transforms.DifferentModelError,
      match=r'wo/kernel: float32\[8, 3, 6\] \| float32\[8, 2, 6\]',
  ):
    transforms.check_same_model(adapted.arrays, stack, path='p')


def test_other_sizes_are_told_by_both_shapes():
  squares = _gradients()
  want = _wanted(_plain(squares))
  key = 'target/decoder/layers_1/mlp/wi_0/kernel'
  want[key] = jax.ShapeDtypeStruct((EMBED, 2 * MLP), np.float32)
  for number in (0, 2):
    want[key.replace('1', str(number))] = want[key]
  adapted = layer_stacks.adapt(_stored(_stacked(squares)), want)
  with pytest.raises(transforms.DifferentModelError) as caught:
    transforms.check_same_model(adapted.arrays, want, path='p')
  assert f'{key}: float32[6, 16] | float32[6, 8]' in str(caught.value)


@pytest.mark.parametrize('momentum', [False, True])
def test_whole_checkpoint_is_converted_without_a_model(momentum):
  squares = _gradients()
  plain = _plain(squares, momentum=momentum)
  stacked = _stacked(squares, momentum=momentum)
  made = relayout.unstack(_stored(stacked), where='p')
  _assert_same({k: np.asarray(v) for k, v in made.items()}, plain)
  assert relayout.lost(_stored(stacked), made) == []
  made = relayout.stack(_stored(plain), where='p', num_heads=HEADS)
  _assert_same({k: np.asarray(v) for k, v in made.items()}, stacked)
  assert relayout.lost(_stored(plain), made) == []


def test_number_of_heads_is_told_by_the_bias_or_asked_for():
  plain = _plain(_gradients())
  relayout.stack(_stored(plain), where='p')
  bare = {k: v for k, v in plain.items() if BIAS not in k}
  with pytest.raises(steps.NotACheckpointError, match='--num_heads'):
    relayout.stack(_stored(bare), where='p')
  with pytest.raises(steps.NotACheckpointError, match='divisor of 20'):
    relayout.stack(_stored(bare), where='p', num_heads=3)
  relayout.stack(_stored(bare), where='p', num_heads=HEADS)


def test_layers_that_are_so_already_are_not_converted():
  squares = _gradients()
  with pytest.raises(steps.NotACheckpointError, match='stacked'):
    relayout.stack(_stored(_stacked(squares)), where='p')
  with pytest.raises(steps.NotACheckpointError, match='plain'):
    relayout.unstack(_stored(_plain(squares)), where='p')
