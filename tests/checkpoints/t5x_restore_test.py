# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that T5X wrote give its logits, decodes and next update here."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild import convert
from t5wild import exit_codes
from t5wild.checkpoints import configs
from t5wild.checkpoints import layer_stacks
from t5wild.checkpoints import load
from t5wild.checkpoints import manager as manager_lib
from t5wild.checkpoints import stored
from t5wild.checkpoints import transforms
from t5wild.decoding import beam
from tests import t5x_network
from tests.checkpoints import t5x_checkpoints

pytestmark = pytest.mark.slow  # Each compiles a network.

PLAIN, SCANNED = sorted(t5x_network.CHANGES)
# The network of the other fixture, as large as this one. T5X's scanned one
# has a relative bias in every layer.
OTHER_LAYOUT = {
    PLAIN: (SCANNED, {'num_encoder_layers': 2, 'num_decoder_layers': 2}),
    SCANNED: (
        PLAIN,
        {
            'num_encoder_layers': 3,
            'num_decoder_layers': 3,
            'positions': 'relative_bias_per_layer',
        },
    ),
}


@pytest.fixture(scope='module', params=[PLAIN, SCANNED])
def t5x(t5x_fixtures, request):
  """What T5X wrote and computed."""
  folder = t5x_fixtures / request.param
  outputs = dict(np.load(folder / 'outputs.npz'))

  def batch(name):
    return {
        key.removeprefix(f'{name}/'): jnp.asarray(value)
        for key, value in outputs.items()
        if key.startswith(f'{name}/')
    }

  return types.SimpleNamespace(
      name=request.param,
      folder=folder,
      native=folder / 'ckpt_legacy' / 'checkpoint_300',
      orbax=folder / 'ckpt_orbax' / 'checkpoint_300',
      outputs=outputs,
      batch=batch('batch'),
      decode_batch=batch('decode_batch'),
      gradients=dict(np.load(folder / 'grads_nodropout.npz')),
      after=dict(np.load(folder / 'state_after_apply_gradient_lr0.01.npz')),
  )


def _logits(model, params, batch):
  return jax.jit(lambda p: model.model._compute_logits(p, batch))(params)


def _assert_close(actual, expected, name=''):
  """The issue's tolerance: 1e-5 of the largest number."""
  actual = np.asarray(actual, np.float32)
  difference = np.abs(actual - expected).max()
  assert difference <= 1e-5 * np.abs(expected).max(), (name, difference)


def _updated(state, gradients):
  nested = transforms.unflatten(gradients)
  after = jax.jit(lambda s, g: s.apply_gradient(g, learning_rate=0.01))(
      state, nested
  )
  return transforms.flatten(after.state_dict())


@pytest.mark.parametrize(
    ('kind', 'mesh'),
    [('native', {'data': 2, 'model': 4}), ('orbax', {'data': 8})],
)
def test_logits_and_next_update_are_those_of_t5x(t5x, kind, mesh):
  model = t5x_checkpoints.Model(t5x.name, mesh=mesh)
  state = model.restore(getattr(t5x, kind))
  _assert_close(
      _logits(model, state.params, t5x.batch), t5x.outputs['logits']
  )
  after = _updated(state, t5x.gradients)
  assert after.keys() == t5x.after.keys()
  for key, expected in t5x.after.items():
    _assert_close(after[key], expected, key)
  assert int(after['state/step']) == 301


def test_decodes_are_those_of_t5x(t5x):
  model = t5x_checkpoints.Model(
      t5x.name, trains=False, decode_fn=beam.beam_search
  )
  params = model.restore(t5x.native).params
  tokens, _ = jax.jit(
      lambda p: model.model.predict_batch_with_aux(
          p, t5x.decode_batch, num_decodes=4, return_all_decodes=True
      )
  )(params)
  np.testing.assert_array_equal(tokens, t5x.outputs['decode/beam4_all/tokens'])


@pytest.mark.parametrize('kind', ['native', 'orbax'])
def test_other_layout_of_layers_gives_the_same_logits_and_update(t5x, kind):
  network, changes = OTHER_LAYOUT[t5x.name]
  model = t5x_checkpoints.Model(
      network, mesh={'data': 2, 'model': 4}, **changes
  )
  state = model.restore(getattr(t5x, kind))
  _assert_close(
      _logits(model, state.params, t5x.batch), t5x.outputs['logits']
  )
  wanted = transforms.flatten(state.state_dict())
  gradients = _laid_out(
      {f'target/{k}': v for k, v in t5x.gradients.items()}, wanted
  )
  after = _updated(
      state, {k.removeprefix('target/'): v for k, v in gradients.items()}
  )
  expected = _laid_out(t5x.after, wanted)
  assert after.keys() == expected.keys()
  for key in expected:
    # A bias that all layers shared is updated by the sum of their gradients.
    if t5x.name == SCANNED or 'relpos_bias' not in key:
      _assert_close(after[key], expected[key], key)


def _laid_out(flat, wanted):
  arrays = {k: stored.InMemory(v, key=k) for k, v in flat.items()}
  adapted = layer_stacks.adapt(arrays, wanted)
  kept = {k: v for k, v in flat.items() if k not in adapted.used}
  return kept | {k: np.asarray(v) for k, v in adapted.arrays.items()}


def test_bfloat16_checkpoint_is_as_saved_or_as_asked(t5x):
  path = t5x.folder / 'ckpt_legacy_bf16' / 'checkpoint_300'
  model = t5x_checkpoints.Model(t5x.name)
  key = ('decoder', 'logits_dense', 'kernel')
  exact = load.load_t5x_checkpoint(t5x.native)['target']
  for name in key:
    exact = exact[name]
  for dtype, expected in ((None, jnp.bfloat16), ('float32', jnp.float32)):
    state = model.restore(path, dtype=dtype)
    leaf = state.params
    moment = state.param_states
    for name in key:
      leaf, moment = leaf[name], moment[name]
    assert leaf.dtype == expected
    assert moment.v_row.dtype == jnp.float32
    np.testing.assert_array_equal(
        np.asarray(leaf, np.float32),
        exact.astype(jnp.bfloat16).astype(np.float32),
    )


def test_run_goes_on_at_t5xs_step_in_its_own_directory(t5x, tmp_path):
  (tmp_path / 'checkpoint_300').symlink_to(t5x.native)
  model = t5x_checkpoints.Model(t5x.name)
  begun = model.begin(tmp_path)
  assert begun.step == int(begun.train_state.step) == 300
  manager = manager_lib.CheckpointManager(
      tmp_path, config=configs.SaveCheckpointConfig()
  )
  manager.save(301, begun.train_state.replace_step(jnp.int32(301)))
  manager.close()
  assert manager.all_steps() == [300, 301]
  again = model.begin(tmp_path)
  assert again.step == 301
  jax.tree.map(
      np.testing.assert_array_equal,
      again.train_state.params,
      begun.train_state.params,
  )


def test_weights_alone_are_restored_and_the_rest_begins_anew(t5x):
  model = t5x_checkpoints.Model(t5x.name)
  state = model.restore(
      t5x.native,
      assignment_map=((r'state/param_states/.*', None),),
      fallback_to_scratch=True,
  )
  loaded = load.load_t5x_checkpoint(t5x.native)
  flat = transforms.flatten(state.state_dict())
  for key, value in transforms.flatten(loaded).items():
    if key.startswith('state/param_states/'):
      assert not np.asarray(flat[key]).any(), key
    else:
      np.testing.assert_array_equal(flat[key], value, key)


def test_names_are_mapped_across_layouts(t5x):
  """Patterns name the model's keys, whatever the checkpoint's layout."""
  network, changes = OTHER_LAYOUT[t5x.name]
  model = t5x_checkpoints.Model(network, trains=False, **changes)
  tower = 'encoder/layers_0' if network == PLAIN else 'encoder/encoder'
  state = model.restore(
      t5x.native,
      assignment_map=(
          (rf'(target/{tower}/mlp)/wi_0/kernel', r'\1/wi_1/kernel'),
      ),
      strict=False,
  )
  plain = model.restore(t5x.native)
  first, second = (
      transforms.flatten(s.state_dict()) for s in (state, plain)
  )
  mapped = f'target/{tower}/mlp/wi_0/kernel'
  np.testing.assert_array_equal(
      first[mapped], second[mapped.replace('wi_0', 'wi_1')]
  )
  for key in first.keys() - {mapped}:
    np.testing.assert_array_equal(first[key], second[key], key)


def test_scanned_biases_are_not_given_to_a_model_that_shares_one(t5x_fixtures):
  path = t5x_fixtures / SCANNED / 'ckpt_legacy' / 'checkpoint_300'
  model = t5x_checkpoints.Model(
      PLAIN, trains=False, num_encoder_layers=3, num_decoder_layers=3
  )
  with pytest.raises(transforms.DifferentModelError) as caught:
    model.restore(path)
  assert "positions = 'relative_bias_per_layer'" in str(caught.value)


def _convert(*arguments):
  return convert.main([str(argument) for argument in arguments])


def test_converted_checkpoint_is_an_ordinary_one(t5x, tmp_path, capsys):
  network, changes = OTHER_LAYOUT[t5x.name]
  flag = '--scan' if network == SCANNED else '--unscan'
  code = _convert('--from', t5x.native.parent, '--to', tmp_path, flag)
  assert code == exit_codes.DONE.code
  assert str(tmp_path / 'checkpoint_300') in capsys.readouterr().out
  model = t5x_checkpoints.Model(network, **changes)
  on_the_fly = model.restore(t5x.native)
  converted = model.restore(tmp_path, mode='latest')
  jax.tree.map(np.testing.assert_array_equal, converted, on_the_fly)


def test_conversion_keeps_every_bit_unless_told_otherwise(t5x, tmp_path):
  assert _convert('--from', t5x.native, '--to', tmp_path / 'same') == 0
  theirs = transforms.flatten(load.load_t5x_checkpoint(t5x.native))
  ours = transforms.flatten(load.load_t5x_checkpoint(tmp_path / 'same'))
  assert theirs.keys() == ours.keys()
  for key, value in theirs.items():
    assert ours[key].dtype == value.dtype
    np.testing.assert_array_equal(ours[key], value, key)
  weights = tmp_path / 'weights'
  _convert(
      '--from', t5x.orbax, '--to', weights, '--dtype=bfloat16', '--weights_only'
  )
  ours = transforms.flatten(load.load_t5x_checkpoint(weights))
  assert {str(v.dtype) for v in ours.values()} == {'bfloat16', 'int32'}
  assert ours.keys() == {
      k for k in theirs if not k.startswith('state/param_states/')
  }
