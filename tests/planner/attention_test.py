# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a plan takes the kernels of attention to be."""

import dataclasses

import jax.numpy as jnp
import pytest

from t5wild.networks import config as network_config
from t5wild.planner import attention

_T5 = network_config.T5Config(
    vocab_size=384, dtype=jnp.bfloat16, emb_dim=64, num_heads=2,
    num_encoder_layers=1, num_decoder_layers=1, head_dim=64, mlp_dim=64,
)  # fmt: skip
_BATCH = {
    'encoder_input_tokens': (8, 512), 'decoder_target_tokens': (8, 128),
    'encoder_segment_ids': (8, 512),
}  # fmt: skip


@pytest.mark.parametrize(
    ('changes', 'platform', 'expected'),
    [
        ({}, 'gpu', 16),  # that tell packed examples apart
        ({}, 'cpu', None),
        ({'dtype': jnp.float32}, 'gpu', None),
        ({'attention_implementation': 'xla'}, 'gpu', None),
        ({'head_dim': 256}, 'gpu', None),
    ],
)
def test_attention_is_fused_where_the_networks_choose_so(
    changes, platform, expected
):
  config = dataclasses.replace(_T5, **changes)
  assert attention.fused_features(config, _BATCH, platform) == expected


def test_examples_that_are_not_packed_need_no_features():
  batch = {k: v for k, v in _BATCH.items() if 'segment' not in k}
  assert attention.fused_features(_T5, batch, 'gpu') == 0
