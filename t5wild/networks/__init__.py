# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Flax networks; they know nothing of t5wild, gin plugs them into models."""

from t5wild.networks.decoder_only import DecoderWrapper
from t5wild.networks.decoder_only import TransformerConfig
from t5wild.networks.transformer import T5Config
from t5wild.networks.transformer import Transformer

__all__ = [
    'DecoderWrapper', 'T5Config', 'Transformer', 'TransformerConfig',
]
