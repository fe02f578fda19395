# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Flax networks; they know nothing of t5wild, gin plugs them into models."""

from t5wild.networks.transformer import T5Config
from t5wild.networks.transformer import Transformer

__all__ = ['T5Config', 'Transformer']
