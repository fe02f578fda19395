# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a model hands to a decoding function, and what it makes of its results.

A decoding function is injected (`decoding.state.DecodeFnCallable`), so a model
knows no more of it than its signature.
"""

from collections.abc import Callable, Mapping
import inspect
from typing import Any

import jax
from jax import numpy as jnp

_DEFAULT_EOS_ID = 1


def make_decoder_params(
    decoder_params: Mapping[str, Any] | None,
    *,
    rng: jax.Array | None,
    eos_id: int | None,
) -> dict[str, Any]:
  """The decoding function's arguments with the end token and the key.

  Args:
    decoder_params: what the caller of `predict_batch` passes on; kept.
    rng: key to decode with, or None.
    eos_id: the vocabulary's end token; none or 0 means 1.

  Raises:
    ValueError: two keys are given.
  """
  made = {'eos_id': eos_id or _DEFAULT_EOS_ID, **(decoder_params or {})}
  if rng is None:
    return made
  if made.get('decode_rng') is not None:
    raise ValueError(
        'two keys were given to decode with:\n'
        f'  rng                          {rng}\n'
        f"  decoder_params['decode_rng'] {made['decode_rng']}\n"
        'expected one; leave the other out'
    )
  made['decode_rng'] = rng
  return made


def starts_anywhere(decode_fn: Callable[..., Any]) -> bool:
  """Whether it can go on from a prompt that is in the cache already."""
  parameters = inspect.signature(decode_fn).parameters.values()
  return any(
      p.name == 'initial_index' or p.kind is p.VAR_KEYWORD for p in parameters
  )


def choose_results(
    results: tuple[jax.Array, ...], *, return_all_decodes: bool
) -> tuple[jax.Array, dict[str, jax.Array]]:
  """The best decode of each input, or all of them.

  Args:
    results: tokens [batch, decodes, length], scores [batch, decodes] and, if
      the decoding function was asked for them, scores of the tokens [batch,
      decodes, length]; the best decode is the last.
    return_all_decodes: whether to keep all.

  Returns:
    (tokens, {'scores': scores, 'token_scores': ...}), without the axis of
    decodes unless all are kept.
  """
  if not return_all_decodes:
    results = tuple(x[:, -1] for x in results)
  tokens, *scores = results
  names = ('scores', 'token_scores')[: len(scores)]
  return tokens, dict(zip(names, scores, strict=True))


def remove_prefix(
    sequences: jax.Array, prefix_lengths: jax.Array
) -> jax.Array:
  """Shifts each sequence left by its prefix; zeros follow.

  Args:
    sequences: [batch, ..., length].
    prefix_lengths: [batch].
  """
  length = sequences.shape[-1]
  middle = (1,) * (sequences.ndim - 2)
  index = jnp.arange(length) + prefix_lengths[:, None]  # [batch, length]
  index = index.reshape(-1, *middle, length)
  shifted = jnp.take_along_axis(
      sequences, jnp.minimum(index, length - 1), axis=-1
  )
  return jnp.where(index < length, shifted, jnp.zeros_like(shifted))
