# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Models of `transformers` give the same logits here, and ours there."""

import flax.core
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild import convert
from tests.checkpoints import t5x_checkpoints

torch = pytest.importorskip(
    'torch', reason='torch is not installed: pip install torch'
)
transformers = pytest.importorskip(
    'transformers', reason='pip install t5wild[hf]'
)
pytestmark = pytest.mark.slow

# By name: transformers' class, its arguments, and what our network changes.
FAMILIES = {
    't5_1_0': (
        'T5', {'feed_forward_proj': 'relu', 'tie_word_embeddings': True},
        {'mlp_activations': ('relu',), 'logits_via_embedding': True},
    ),
    't5_1_1': (
        'T5',
        {'feed_forward_proj': 'gated-gelu', 'tie_word_embeddings': False}, {},
    ),
    'mt5': (
        'MT5',
        {'feed_forward_proj': 'gated-gelu', 'tie_word_embeddings': False}, {},
    ),
    'byt5_depths': (
        'T5',
        {
            'feed_forward_proj': 'gated-gelu', 'tie_word_embeddings': False,
            'num_layers': 3, 'num_decoder_layers': 1,
        },
        {'num_encoder_layers': 3, 'num_decoder_layers': 1},
    ),
    'umt5': (
        'UMT5',
        {'feed_forward_proj': 'gated-gelu', 'tie_word_embeddings': False},
        {'positions': 'relative_bias_per_layer'},
    ),
    'ul2': (
        'T5',
        {'feed_forward_proj': 'gated-silu', 'tie_word_embeddings': False},
        {'mlp_activations': ('silu', 'linear')},
    ),
}  # fmt: skip


def _make_theirs(name):
  family, changes, _ = FAMILIES[name]
  arguments = {
      'vocab_size': 384, 'd_model': 32, 'd_kv': 16, 'd_ff': 64, 'num_heads': 4,
      'num_layers': 2, 'num_decoder_layers': 2, 'dropout_rate': 0.0,
      'decoder_start_token_id': 0, **changes,
  }  # fmt: skip
  config = getattr(transformers, f'{family}Config')(**arguments)
  torch.manual_seed(0)
  model = getattr(transformers, f'{family}ForConditionalGeneration')(config)
  if not changes.get('tie_word_embeddings', True) and hasattr(model, 'encoder'):
    # transformers 5 ties what it makes, and unties what it loads.
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.clone())
  with torch.no_grad():
    for parameter in model.parameters():
      parameter.copy_(torch.randn_like(parameter) * 0.3)
  return model.eval()


def _batch():
  rng = np.random.default_rng(0)
  inputs = rng.integers(2, 384, (2, 9), np.int32)
  inputs[1, 6:] = 0
  return inputs, rng.integers(2, 384, (2, 7), np.int32)


def _their_logits(model):
  inputs, decoder_inputs = (torch.tensor(x, dtype=torch.long) for x in _batch())
  with torch.no_grad():
    return model(
        input_ids=inputs,
        attention_mask=(inputs > 0).long(),
        decoder_input_ids=decoder_inputs,
    ).logits.numpy()


def _our_logits(restorer, params):
  inputs, decoder_inputs = map(jnp.asarray, _batch())
  return jax.jit(
      lambda p: restorer.model.module.apply(
          {'params': p}, inputs, decoder_inputs, jnp.ones_like(decoder_inputs),
          enable_dropout=False,
      )
  )(params)  # fmt: skip


def _assert_close(actual, expected):
  # Products of float32 matrices, summed in another order.
  scale = np.abs(expected).max()
  assert np.abs(np.asarray(actual) - expected).max() <= 2e-5 * scale


@pytest.mark.parametrize('name', FAMILIES)
def test_logits_are_those_of_transformers_both_ways(tmp_path, name):
  theirs = _make_theirs(name)
  theirs.save_pretrained(tmp_path / 'theirs')
  expected = _their_logits(theirs)
  restorer = t5x_checkpoints.Model(trains=False, **FAMILIES[name][2])
  params = restorer.restore(tmp_path / 'theirs').params
  _assert_close(_our_logits(restorer, params), expected)
  # Through a checkpoint of ours, and back.
  ours, back = str(tmp_path / 'ours'), str(tmp_path / 'back')
  assert convert.main(['--from', str(tmp_path / 'theirs'), '--to', ours]) == 0
  flags = ['--activation=silu'] if name == 'ul2' else []
  flags += ['--family=mt5'] if name == 'mt5' else []
  assert convert.main(
      ['--from', ours, '--to', back, '--to_format=hf', *flags]
  ) == 0
  again, told = transformers.AutoModelForSeq2SeqLM.from_pretrained(
      back, output_loading_info=True
  )
  assert type(again) is type(theirs)
  assert not told['missing_keys']
  assert not told['unexpected_keys']
  # Both in one library: the same bits.
  np.testing.assert_array_equal(_their_logits(again.eval()), expected)


@pytest.mark.parametrize('name', ['t5_1_1', 'umt5'])
def test_scanned_checkpoint_is_exported(tmp_path, name):
  changes = {'num_encoder_layers': 2, 'num_decoder_layers': 2}
  restorer = t5x_checkpoints.Model('encoder_decoder_scanned', **changes)
  state = restorer.states.from_scratch(jax.random.PRNGKey(1))
  params = jax.tree.map(np.asarray, flax.core.unfreeze(state.params))
  if name == 't5_1_1':  # One bias in all layers.
    for tower in ('encoder', 'decoder'):
      bias = params[tower][tower]['relpos_bias']
      first = bias['rel_embedding'][:, :1]
      bias['rel_embedding'] = np.repeat(first, 2, 1)
  t5x_checkpoints.write_native(
      tmp_path / 'checkpoint_5',
      {'target': params, 'state': {'step': np.int32(5)}},
  )
  out = str(tmp_path / 'hf')
  assert convert.main(
      ['--from', str(tmp_path), '--to', out, '--to_format=hf']
  ) == 0
  theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(out)
  assert type(theirs).__name__.startswith('UMT5' if name == 'umt5' else 'T5')
  _assert_close(_their_logits(theirs.eval()), _our_logits(restorer, params))
