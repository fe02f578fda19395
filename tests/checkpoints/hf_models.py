# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Small models of `transformers`, of every family that is read and written."""

import torch
import transformers

_T5 = {
    'vocab_size': 48, 'd_model': 16, 'd_kv': 8, 'd_ff': 24, 'num_heads': 2,
    'num_layers': 2, 'num_decoder_layers': 2, 'dropout_rate': 0.0,
    'decoder_start_token_id': 0,
}  # fmt: skip
_DECODER = {
    'vocab_size': 48, 'hidden_size': 32, 'intermediate_size': 24,
    'num_hidden_layers': 3, 'num_attention_heads': 4, 'num_key_value_heads': 2,
    'head_dim': 8, 'eos_token_id': 1, 'pad_token_id': 0, 'bos_token_id': 2,
}  # fmt: skip
_LLAMA_31 = {
    'rope_type': 'llama3', 'rope_theta': 100.0, 'factor': 8.0,
    'low_freq_factor': 1.0, 'high_freq_factor': 4.0,
    'original_max_position_embeddings': 32,
}  # fmt: skip
_GATED = {'feed_forward_proj': 'gated-gelu', 'tie_word_embeddings': False}
# By name: transformers' classes, and what is not as above.
FAMILIES = {
    't5_1_0': (
        'T5', {'feed_forward_proj': 'relu', 'tie_word_embeddings': True}
    ),
    't5_1_1': ('T5', _GATED),  # Flan-T5 too
    'mt5': ('MT5', _GATED),
    'byt5_depths': ('T5', _GATED | {'num_layers': 3, 'num_decoder_layers': 1}),
    'umt5': ('UMT5', _GATED),
    'ul2': ('T5', _GATED | {'feed_forward_proj': 'gated-silu'}),
    'llama_2': ('Llama', {}),
    'llama_3_1': ('Llama', {'rope_parameters': _LLAMA_31}),
    'llama_3_2': (
        'Llama',
        {
            'rope_parameters': _LLAMA_31, 'tie_word_embeddings': True,
            'num_key_value_heads': 1,
        },
    ),
    'llama_with_biases': (
        'Llama',
        {'attention_bias': True, 'mlp_bias': True, 'num_key_value_heads': 4},
    ),
    'mistral': ('Mistral', {'sliding_window': 3}),
    'mistral_without_a_window': ('Mistral', {'sliding_window': None}),
    'qwen2': ('Qwen2', {}),
    'qwen3': (
        'Qwen3',
        {
            'use_sliding_window': True, 'sliding_window': 4,
            'max_window_layers': 1, 'tie_word_embeddings': True,
        },
    ),
    'gemma': ('Gemma', {'num_key_value_heads': 1}),
    'gemma_2': (
        'Gemma2',
        {
            'sliding_window': 4, 'query_pre_attn_scalar': 24,
            'attn_logit_softcapping': 3.0, 'final_logit_softcapping': 5.0,
        },
    ),
    'gemma_3': (
        'Gemma3Text',
        {
            'sliding_window': 4, 'query_pre_attn_scalar': 16,
            'layer_types': [
                'sliding_attention', 'full_attention', 'sliding_attention',
            ],
            'rope_parameters': {
                'full_attention': {
                    'rope_type': 'linear', 'factor': 8.0, 'rope_theta': 1e4,
                },
                'sliding_attention': {
                    'rope_type': 'default', 'rope_theta': 100.0,
                },
            },
        },
    ),
}  # fmt: skip


def is_decoder(name):
  """Whether it is a decoder alone."""
  return 'T5' not in FAMILIES[name][0]


def make(name):
  """A model with random weights."""
  family, changes = FAMILIES[name]
  common = _DECODER if is_decoder(name) else _T5
  config = getattr(transformers, f'{family}Config')(**common | changes)
  family = family.removesuffix('Text')
  kind = 'CausalLM' if is_decoder(name) else 'ConditionalGeneration'
  torch.manual_seed(0)
  model = getattr(transformers, f'{family}For{kind}')(config).eval()
  if not changes.get('tie_word_embeddings', True) and hasattr(model, 'encoder'):
    # transformers 5 ties what it makes, and unties what it loads.
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.clone())
  with torch.no_grad():
    for parameter in model.parameters():
      parameter.copy_(torch.randn_like(parameter) * 0.2)
  return model


def logits(model, encoder_tokens, decoder_tokens):
  """Logits of a decoder alone, or of one with an encoder; 0 is padding."""
  decoder = torch.tensor(decoder_tokens, dtype=torch.long)
  inputs = {'input_ids': decoder}
  if model.config.is_encoder_decoder:
    encoder = torch.tensor(encoder_tokens, dtype=torch.long)
    inputs = {
        'input_ids': encoder,
        'attention_mask': (encoder > 0).long(),
        'decoder_input_ids': decoder,
    }
  with torch.no_grad():
    return model(**inputs).logits.numpy()
