# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Decoding: from a step function that gives logits to whole sequences."""

from t5wild.decoding.greedy import greedy_decode as greedy_decode
from t5wild.decoding.state import (
  cache_map as cache_map,
  DecodeFnCallable as DecodeFnCallable,
  DecodingState as DecodingState,
  flat_batch_beam_expand as flat_batch_beam_expand,
  flatten_beam_dim as flatten_beam_dim,
  TokensIdsToLogitsCallable as TokensIdsToLogitsCallable,
  unflatten_beam_dim as unflatten_beam_dim,
)
