# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Configurations have the published sizes, and impossible ones are refused."""

import math

import jax
import jax.numpy as jnp
import pytest

from t5wild.networks import decoder_only
from tests.networks import decoders

LLAMA = {
    'positions': 'rotary', 'mlp_activations': ('silu', 'linear'),
    'head_dim': 128,
}  # fmt: skip
GEMMA = {
    'positions': 'rotary', 'norm': 'rms_from_one', 'head_dim': 256,
    'logits_via_embedding': True, 'embedding_scale': 'inputs',
    'vocab_size': 256_000,
}  # fmt: skip


@pytest.mark.parametrize(
    ('changes', 'count'),
    [
        # The parameters of the published checkpoints.
        (  # Llama 2 7B
            LLAMA | {
                'vocab_size': 32_000, 'emb_dim': 4096, 'num_heads': 32,
                'mlp_dim': 11_008, 'num_layers': 32,
            },
            6_738_415_616,
        ),
        (  # Llama 3 8B
            LLAMA | {
                'vocab_size': 128_256, 'emb_dim': 4096, 'num_heads': 32,
                'num_kv_heads': 8, 'mlp_dim': 14_336, 'num_layers': 32,
            },
            8_030_261_248,
        ),
        (  # Gemma 2B
            GEMMA | {
                'emb_dim': 2048, 'num_heads': 8, 'num_kv_heads': 1,
                'mlp_dim': 16_384, 'num_layers': 18,
            },
            2_506_172_416,
        ),
        (  # Gemma 2 2B
            GEMMA | {
                'emb_dim': 2304, 'num_heads': 8, 'num_kv_heads': 4,
                'mlp_dim': 9216, 'num_layers': 26, 'post_norms': True,
            },
            2_614_341_888,
        ),
        (  # Gemma 3 1B
            GEMMA | {
                'vocab_size': 262_144, 'emb_dim': 1152, 'num_heads': 4,
                'num_kv_heads': 1, 'mlp_dim': 6912, 'num_layers': 26,
                'post_norms': True, 'normalize_heads': True,
            },
            999_885_952,
        ),
        (  # Qwen 2.5 0.5B
            LLAMA | {
                'vocab_size': 151_936, 'emb_dim': 896, 'num_heads': 14,
                'num_kv_heads': 2, 'head_dim': 64, 'mlp_dim': 4864,
                'num_layers': 24, 'attention_bias': 'inputs',
                'logits_via_embedding': True,
            },
            494_032_768,
        ),
    ],
)  # fmt: skip
def test_published_sizes_have_the_published_number_of_parameters(
    changes, count
):
  network = decoder_only.DecoderWrapper(
      decoders.TINY.replace(scan_layers=True, **changes)  # quicker to trace
  )
  tokens = jax.ShapeDtypeStruct((1, 4), jnp.int32)
  params = jax.eval_shape(
      lambda key, x: network.init(key, x, x, enable_dropout=False)['params'],
      jax.random.key(0),
      tokens,
  )
  assert sum(math.prod(x.shape) for x in jax.tree.leaves(params)) == count


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'num_kv_heads': 3}, 'num_kv_heads is 3.*divisor of num_heads = 4'),
        ({'num_kv_heads': 0}, 'num_kv_heads is 0.*divisor'),
        ({'positions': 'rotary', 'head_dim': 3}, 'head_dim is 3.*even'),
        ({'positions': 'rope'}, "'rope'.*'rotary'"),
        ({'norm': 'batch'}, "'batch'.*'rms'"),
        ({'embedding_scale': True}, "True.*'logits'"),
        ({'logits_softcap': 0.0}, r'logits_softcap is 0\.0.*above 0.*None'),
        ({'norm_epsilon': -1.0}, r'norm_epsilon is -1\.0.*above 0'),
        ({'rotary_factor': 0.0}, r'rotary_factor is 0\.0.*above 0'),
        ({'rotary_turns': (4.0, 1.0)}, r'rotary_turns is \(4\.0.*smaller'),
        ({'attention_bias': True}, "attention_bias is True.*'inputs'"),
        ({'layer_pattern': 'local'}, "layer_pattern is 'local'.*sequence"),
        ({'layer_pattern': ('near',)}, "'near'.*'local'"),
        ({'layer_pattern': ('local',)}, 'local_window is None.*how far'),
        ({'num_layers': 0}, 'TransformerConfig.num_layers is 0.*at least 1'),
        ({'mlp_activations': ()}, r'mlp_activations is \(\).*at least one'),
    ],
)
def test_impossible_configuration_is_refused_when_built(change, message):
  with pytest.raises(ValueError, match=message):
    decoder_only.DecoderWrapper(decoders.TINY.replace(**change))
