# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Decoders of `transformers` give the same logits here, and ours there."""

import os
import types

import jax
import numpy as np
import pytest

from t5wild import convert
from t5wild.checkpoints import formats
from t5wild.checkpoints import hf
from t5wild.checkpoints import hf_writing
from t5wild.models import decoder_only
from t5wild.networks import decoder_only as network
from tests.checkpoints import t5x_checkpoints

torch = pytest.importorskip(
    'torch', reason='torch is not installed: pip install torch'
)
transformers = pytest.importorskip(
    'transformers', reason='pip install t5wild[hf]'
)
hf_models = pytest.importorskip('tests.checkpoints.hf_models')
pytestmark = pytest.mark.slow

LENGTH = 13
FAMILIES = [name for name in hf_models.FAMILIES if hf_models.is_decoder(name)]


def make_tokens():
  return np.random.default_rng(0).integers(3, 48, (2, LENGTH), np.int32)


def their_logits(model):
  return hf_models.logits(model, None, make_tokens())


def make_module(folder, **changes):
  """Our network, by nothing but config.json."""
  values = hf.read_network(str(folder)) | {'dropout_rate': 0.0} | changes
  return network.DecoderWrapper(network.TransformerConfig(**values))


def restore(folder, module):
  vocabulary = types.SimpleNamespace(eos_id=1, pad_id=0, vocab_size=48)
  shapes = dict.fromkeys(
      ('decoder_input_tokens', 'decoder_target_tokens'), (2, LENGTH)
  )
  model = decoder_only.DecoderOnlyModel(module, vocabulary, None)
  return t5x_checkpoints.Restorer(model, shapes, trains=False).restore(folder)


def our_logits(module, params, tokens):
  return jax.jit(
      lambda p: module.apply(
          {'params': p}, tokens, np.ones_like(tokens), enable_dropout=False
      )
  )(params)


def assert_close(actual, expected):
  # Products of float32 matrices, summed in another order.
  scale = np.abs(expected).max()
  assert np.abs(np.asarray(actual) - expected).max() <= 2e-5 * scale


def _convert(*arguments):
  assert convert.main([str(argument) for argument in arguments]) == 0


@pytest.mark.parametrize('name', FAMILIES)
def test_logits_are_those_of_transformers_both_ways(tmp_path, name):
  theirs = hf_models.make(name)
  theirs.save_pretrained(tmp_path / 'theirs')
  expected = their_logits(theirs)
  module = make_module(tmp_path / 'theirs')
  params = restore(tmp_path / 'theirs', module).params
  assert_close(our_logits(module, params, make_tokens()), expected)
  # Through a checkpoint of ours, scanned, and back without any word of it.
  ours, back = tmp_path / 'ours', tmp_path / 'back'
  _convert('--from', tmp_path / 'theirs', '--to', ours, '--scan')
  scanned = make_module(tmp_path / 'theirs', scan_layers=True)
  params = restore(ours / 'checkpoint_0', scanned).params
  assert_close(our_logits(scanned, params, make_tokens()), expected)
  _convert('--from', ours, '--to', back, '--to_format=hf')
  again, told = transformers.AutoModelForCausalLM.from_pretrained(
      back, output_loading_info=True
  )
  assert type(again) is type(theirs)
  assert not told['missing_keys']
  assert not told['unexpected_keys']
  # Both in one library: the same bits.
  np.testing.assert_array_equal(their_logits(again.eval()), expected)


@pytest.mark.parametrize('name', FAMILIES)
def test_config_of_our_network_alone_gives_the_same_logits(tmp_path, name):
  theirs = hf_models.make(name)
  theirs.save_pretrained(tmp_path / 'theirs')
  folder = str(tmp_path / 'back')
  hf_writing.write(
      folder,
      formats.read_structure(tmp_path / 'theirs'),
      network=hf.read_network(str(tmp_path / 'theirs')),
  )
  again = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
  np.testing.assert_array_equal(their_logits(again), their_logits(theirs))
  tokens = torch.tensor(make_tokens()[:, :4], dtype=torch.long)
  assert os.path.exists(os.path.join(folder, 'generation_config.json'))
  np.testing.assert_array_equal(
      again.generate(tokens, max_new_tokens=6, do_sample=False),
      theirs.generate(tokens, max_new_tokens=6, do_sample=False, eos_token_id=1,
                      pad_token_id=0),
  )  # fmt: skip
