# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The cache that an encoder-decoder begins to decode with: empty, or prompts.

Prompts go in at once where the network can do that: T5's own cannot, users'
networks may.
"""

from collections.abc import Callable, Mapping
import inspect
from typing import Any

from flax import linen as nn
import jax
import jax.numpy as jnp

Cache = Mapping[str, Any]


def make_empty(
    module: nn.Module,
    params: Any,
    *,
    encoder_input_tokens: jax.Array,
    decoder_input_tokens: jax.Array,
) -> Cache:
  """Makes an empty cache for tokens of these shapes.

  Compiled, this costs only the cache's zeros: nothing else is read of the
  forward pass.
  """
  targets = jnp.ones_like(decoder_input_tokens)
  _, variables = module.apply(
      {'params': params},
      encoder_input_tokens=jnp.ones_like(encoder_input_tokens),
      decoder_input_tokens=targets,
      decoder_target_tokens=targets,
      mutable=['cache'],
      decode=True,
      enable_dropout=False,
  )
  return variables['cache']


def fill(
    module: nn.Module,
    params: Any,
    cache: Cache,
    *,
    encoded_inputs: jax.Array,
    encoder_input_tokens: jax.Array,
    decoder_input_tokens: jax.Array,
) -> tuple[Cache, jax.Array]:
  """Puts prompts into an empty cache.

  Args:
    module: a network whose `decode` has `prefill` and `prefill_lengths`.
    params: its parameters.
    cache: what `make_empty` made.
    encoded_inputs: what the encoder made of the inputs.
    encoder_input_tokens: these inputs.
    decoder_input_tokens: [batch, length] prompts, 0 after them.

  Returns:
    (cache, [batch] lengths of the prompts).
  """
  lengths = jnp.sum(decoder_input_tokens != 0, axis=1)
  _, variables = module.apply(
      {'params': params, 'cache': cache},
      encoded=encoded_inputs,
      encoder_input_tokens=encoder_input_tokens,
      decoder_input_tokens=decoder_input_tokens,
      decoder_target_tokens=jnp.ones_like(decoder_input_tokens),
      mutable=['cache'],
      enable_dropout=False,
      prefill=True,
      prefill_lengths=lengths,
      method=module.decode,
  )
  return _at_positions(variables['cache'], lengths), lengths


def _at_positions(cache: Cache, positions: jax.Array) -> Cache:
  """The cache, a counter of positions in it set: a prompt does not move it."""
  decoder = cache.get('decoder', {})
  if 'position_embedder' not in decoder:
    return cache
  counter = {'position_embedder_index': positions}
  embedder = {**decoder['position_embedder'], **counter}
  return {**cache, 'decoder': {**decoder, 'position_embedder': embedder}}


def can_fill(module: nn.Module, decode_fn: Callable[..., Any]) -> bool:
  """Whether the network takes prompts at once and decoding can start there."""
  return (
      'initial_index' in inspect.signature(decode_fn).parameters
      and 'prefill' in inspect.signature(module.decode).parameters
  )
