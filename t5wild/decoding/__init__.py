# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Decoding: from a step function that gives logits to whole sequences."""

from t5wild.decoding.beam import beam_search as beam_search
from t5wild.decoding.beam import brevity_penalty as brevity_penalty
from t5wild.decoding.gathering import cache_gather_beams as cache_gather_beams
from t5wild.decoding.greedy import greedy_decode as greedy_decode
from t5wild.decoding.logits import NEG_INF as NEG_INF
from t5wild.decoding.sampling import SamplingLoopState as SamplingLoopState
from t5wild.decoding.sampling import temperature_sample as temperature_sample
from t5wild.decoding.state import add_beam_dim as add_beam_dim
from t5wild.decoding.state import cache_map as cache_map
from t5wild.decoding.state import DecodingState as DecodingState
from t5wild.decoding.state import (
    flat_batch_beam_expand as flat_batch_beam_expand,
)
from t5wild.decoding.state import flatten_beam_dim as flatten_beam_dim
from t5wild.decoding.state import unflatten_beam_dim as unflatten_beam_dim
