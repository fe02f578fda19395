# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Decoding: from a step function that gives logits to whole sequences."""

from t5wild.decoding.greedy import greedy_decode
from t5wild.decoding.logits import NEG_INF
from t5wild.decoding.sampling import SamplingLoopState
from t5wild.decoding.sampling import temperature_sample
from t5wild.decoding.state import cache_map
from t5wild.decoding.state import DecodingState
from t5wild.decoding.state import flat_batch_beam_expand
from t5wild.decoding.state import flatten_beam_dim
from t5wild.decoding.state import unflatten_beam_dim

__all__ = [
    'DecodingState', 'NEG_INF', 'SamplingLoopState', 'cache_map',
    'flat_batch_beam_expand', 'flatten_beam_dim', 'greedy_decode',
    'temperature_sample', 'unflatten_beam_dim',
]
