# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The networks that T5X's numbers were written with, and models over them."""

from t5wild.models import encoder_decoder
from t5wild.networks import transformer

PLAIN = transformer.T5Config(
    vocab_size=384,
    emb_dim=32,
    num_heads=4,
    head_dim=16,
    mlp_dim=64,
    num_encoder_layers=2,
    num_decoder_layers=2,
    mlp_activations=('gelu', 'linear'),
    dropout_rate=0.1,
)
# By the name of the fixture: what is not as in PLAIN.
CHANGES = {
    'encoder_decoder': {},
    'encoder_decoder_scanned': {
        'scan_layers': True,
        'remat_policy': 'minimal',
        'num_encoder_layers': 3,
        'num_decoder_layers': 3,
    },
}


class Vocabulary:
  """The least a vocabulary can be."""

  eos_id = 1
  pad_id = 0
  vocab_size = PLAIN.vocab_size


def make_model(*, config_changes=None, optimizer_def=None, **model_arguments):
  """A model over PLAIN with changes; the rest goes to the model."""
  return encoder_decoder.EncoderDecoderModel(
      transformer.Transformer(PLAIN.replace(**(config_changes or {}))),
      Vocabulary(),
      Vocabulary(),
      optimizer_def=optimizer_def,
      **model_arguments,
  )
