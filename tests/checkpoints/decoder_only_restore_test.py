# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A decoder alone is restored from T5X's native format in either layout."""

import types

import jax
import numpy as np
import pytest

from t5wild import convert
from t5wild.checkpoints import transforms
from t5wild.models import decoder_only
from t5wild.networks import decoder_only as network
from tests.checkpoints import t5x_checkpoints

pytestmark = pytest.mark.slow  # Each compiles a network.

_VOCABULARY = types.SimpleNamespace(eos_id=1, pad_id=0, vocab_size=96)
_CONFIG = network.TransformerConfig(
    vocab_size=96, emb_dim=32, num_heads=4, num_kv_heads=2, head_dim=16,
    mlp_dim=64, num_layers=3, dropout_rate=0.0,
    mlp_activations=('silu', 'linear'),
)  # fmt: skip
_SHAPES = {
    name: (4, 12) for name in ('decoder_input_tokens', 'decoder_target_tokens')
}
# T5X's own network has relative biases; a Llama-like one has none.
_POSITIONS = {'plain': 'relative_bias_per_layer', 'stacked': 'relative_bias'}


def _restorer(layout, positions=None):
  module = network.DecoderWrapper(
      _CONFIG.replace(
          scan_layers=layout == 'stacked',
          positions=positions or _POSITIONS[layout],
      )
  )
  model = decoder_only.DecoderOnlyModel(
      module, _VOCABULARY, t5x_checkpoints.make_adafactor()
  )
  return t5x_checkpoints.Restorer(model, _SHAPES)


def _logits(restorer, params):
  random = np.random.default_rng(0)
  targets = random.integers(2, 96, (4, 12), np.int32)
  return jax.jit(
      lambda p: restorer.model.module.apply(
          {'params': p}, np.roll(targets, 1, 1), targets, enable_dropout=False
      )
  )(params)


def _save_native(path, state):
  numbers = {
      key: np.asarray(leaf)
      for key, leaf in transforms.flatten(state.state_dict()).items()
  }
  t5x_checkpoints.write_native(path, transforms.unflatten(numbers))


@pytest.mark.parametrize(
    ('layout', 'positions'), [('plain', 'rotary'), ('stacked', None)]
)
def test_decoder_in_the_other_layout_gives_the_same_logits(
    tmp_path, layout, positions
):
  other = {'plain': 'stacked', 'stacked': 'plain'}[layout]
  saved, model = _restorer(layout, positions), _restorer(other, positions)
  state = saved.states.from_scratch(jax.random.PRNGKey(3))
  path = tmp_path / 'theirs' / 'checkpoint_0'
  _save_native(path, state)
  same = saved.restore(path)
  jax.tree.map(np.testing.assert_array_equal, same.params, state.params)
  expected = _logits(saved, state.params)
  restored = model.restore(path)
  np.testing.assert_allclose(
      _logits(model, restored.params), expected, rtol=1e-5, atol=1e-5
  )
  flags = ['--scan', '--num_heads=4'] if other == 'stacked' else ['--unscan']
  to = tmp_path / 'ours'
  assert convert.main(['--from', str(path), '--to', str(to), *flags]) == 0
  converted = model.restore(to, mode='latest')
  jax.tree.map(np.testing.assert_array_equal, converted, restored)
