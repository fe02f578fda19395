# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Greedy decoding: at each position the likeliest token."""

from typing import Any

import jax
from jaxtyping import Array, Int

from t5wild.decoding import sampling
from t5wild.decoding import state as state_lib


def greedy_decode(
    inputs: Int[Array, 'batch length'],
    cache: state_lib.Cache,
    tokens_to_logits: state_lib.TokensIdsToLogitsCallable,
    eos_id: int,
    decode_rng: jax.Array | None = None,
    num_decodes: int = 1,
    cache_offset: int = 0,
    **kwargs: Any,
) -> state_lib.Results:
  """Decodes the likeliest token at each position, ties to the lowest id.

  It is `temperature_sample` with temperature = 0, scored by the model's own
  log probabilities.

  Args:
    inputs: prompt, shifted right; see `temperature_sample`.
    cache: the model's cache.
    tokens_to_logits: one step of the model.
    eos_id: token that ends a sequence.
    decode_rng: ignored; nothing is drawn.
    num_decodes: 1, since there is one greedy answer.
    cache_offset: ignored; the cache is not rearranged.
    **kwargs: other arguments of `temperature_sample`.

  Raises:
    ValueError: more than one decode is asked for, or as `temperature_sample`.
  """
  del decode_rng, cache_offset
  if num_decodes != 1:
    raise ValueError(
        f'num_decodes is {num_decodes!r}: expected 1, as greedy decoding gives '
        '1 sequence per input; set num_decodes = 1, or give the model a '
        'decode_fn that samples or searches'
    )
  return sampling.temperature_sample(
      inputs,
      cache,
      tokens_to_logits,
      eos_id,
      **{'temperature': 0.0, 'rescale_log_probs': False, **kwargs},
  )
