# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Our greedy decoding and that of `transformers` give the same tokens."""

import types

import jax
import numpy as np
import pytest

from t5wild import decoding
from t5wild.checkpoints import formats
from t5wild.checkpoints import hf
from t5wild.checkpoints import transforms
from t5wild.models import decoder_only
from t5wild.models import encoder_decoder
from t5wild.networks import decoder_only as decoder_network
from t5wild.networks import transformer

torch = pytest.importorskip(
    'torch', reason='torch is not installed: pip install torch'
)
pytest.importorskip('transformers', reason='pip install t5wild[hf]')
hf_models = pytest.importorskip('tests.checkpoints.hf_models')
pytestmark = pytest.mark.slow

VOCABULARY = types.SimpleNamespace(eos_id=1, pad_id=0, vocab_size=48)
PROMPT, LENGTH = 5, 8
PROMPTS = np.random.RandomState(2).randint(3, 48, (2, PROMPT)).astype(np.int32)


def _make_model(folder):
  """A model that is made of config.json alone, decoding greedily."""
  values = hf.read_network(str(folder)) | {'dropout_rate': 0.0}
  arguments = {'optimizer_def': None, 'decode_fn': decoding.greedy_decode}
  if 'num_layers' in values:
    config = decoder_network.TransformerConfig(**values)
    return decoder_only.DecoderOnlyModel(
        decoder_network.DecoderWrapper(config), VOCABULARY, **arguments
    )
  return encoder_decoder.EncoderDecoderModel(
      transformer.Transformer(transformer.T5Config(**values)),
      VOCABULARY, VOCABULARY, **arguments,
  )  # fmt: skip


def _make_batch(model):
  if isinstance(model, encoder_decoder.EncoderDecoderModel):
    return {
        'encoder_input_tokens': PROMPTS,
        'decoder_input_tokens': np.zeros((2, LENGTH), np.int32),
    }
  shifted = np.pad(PROMPTS, ((0, 0), (1, LENGTH)))
  return {
      'decoder_input_tokens': shifted,
      'decoder_causal_attention': np.pad(
          np.ones_like(PROMPTS), ((0, 0), (1, LENGTH)), constant_values=1
      ) * (np.arange(PROMPT + 1 + LENGTH) <= PROMPT),
  }  # fmt: skip


def _their_tokens(model):
  prompts = PROMPTS
  if not model.config.is_encoder_decoder:  # They begin with a 0, as ours.
    prompts = np.pad(PROMPTS, ((0, 0), (1, 0)))
  prompts = torch.tensor(prompts, dtype=torch.long)
  tokens = model.generate(
      prompts, attention_mask=torch.ones_like(prompts), do_sample=False,
      max_new_tokens=LENGTH, eos_token_id=1, pad_token_id=0,
  ).numpy()  # fmt: skip
  start = 1 if model.config.is_encoder_decoder else PROMPT + 1
  return tokens[:, start:]


@pytest.mark.parametrize(
    'name', ['t5_1_0', 't5_1_1', 'umt5', 'llama_3_1', 'gemma_3', 'qwen2']
)
def test_greedy_tokens_are_those_of_transformers(tmp_path, name):
  theirs = hf_models.make(name)
  theirs.save_pretrained(tmp_path)
  model = _make_model(tmp_path)
  arrays = formats.read_structure(tmp_path)
  params = transforms.unflatten(
      {k: np.asarray(a) for k, a in arrays.items()}
  )['target']
  tokens, _ = jax.jit(model.predict_batch_with_aux)(params, _make_batch(model))
  expected = _their_tokens(theirs)
  actual = np.asarray(tokens)[:, : expected.shape[1]]
  np.testing.assert_array_equal(actual, expected)
