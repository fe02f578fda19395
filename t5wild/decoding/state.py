# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a decoding function and a model say to each other.

A decoding function gets a prompt, a cache and a `tokens_to_logits` function of
the model; it hands the model a `DecodingState` per position and gets the next
token's logits and the new cache. Several decodes of one input lie side by side
on the batch axis: [a, b] with two decodes each is [a, a, b, b].
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import flax
from flax import traverse_util
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

# Cache entries that have no batch axis, by the last part of their name.
_INDEX_NAME = 'cache_index'
_UNBATCHED_NAMES = ('cached_bias', 'position_embedder_index')

Cache = Mapping[str, Any]
Decodes = Int[Array, 'batch decodes length']
Scores = Float[Array, 'batch decodes']
TokenScores = Float[Array, 'batch decodes length']
# The token scores only if they are asked for.
Results = tuple[Decodes, Scores] | tuple[Decodes, Scores, TokenScores]


@flax.struct.dataclass
class DecodingState:
  """Where the decoding of each sequence stands. `rows` is batch * num_decodes.

  Attributes:
    cur_index: [rows] position of the current token.
    sequences: [rows, length] tokens so far, position 0 being the start token.
    cur_token: [rows, 1] token at that position, whose successor is asked for.
    cache: the model's cache (keys and values of the tokens before).
  """

  cur_index: Int[Array, ' rows']
  sequences: Int[Array, 'rows length']
  cur_token: Int[Array, 'rows 1']
  cache: Cache


@runtime_checkable
class TokensIdsToLogitsCallable(Protocol):
  """One step of a model: from current tokens to the next tokens' logits."""

  def __call__(
      self, decoding_state: DecodingState
  ) -> tuple[Float[Array, 'rows vocab'], Cache]:
    """Gives (logits, cache after the current token)."""


@runtime_checkable
class DecodeFnCallable(Protocol):
  """A decoding function. A model calls it by keywords, with these names."""

  def __call__(
      self,
      *,
      inputs: Int[Array, 'batch length'],
      cache: Cache,
      tokens_to_logits: TokensIdsToLogitsCallable,
      eos_id: int,
      num_decodes: int,
      decode_rng: jax.Array | None,
      cache_offset: int,
      **kwargs: Any,
  ) -> Results:
    """Decodes a batch.

    Args:
      inputs: prompt, shifted right. Position 0 is not read (a 0 starts the
        sequence); tokens after it that are not 0 are kept and score 0; a 0 is
        a position to decode.
      cache: the model's empty cache for a batch of `batch` rows.
      tokens_to_logits: one step of the model, on batch * num_decodes rows.
      eos_id: token that ends a sequence.
      num_decodes: how many sequences to return per input.
      decode_rng: key of a decoding that samples.
      cache_offset: number of axes before the cache's batch axis (1 where layers
        are scanned).
      **kwargs: what the caller of `predict_batch` passes on.

    Returns:
      (tokens, scores), the scores ascending: the best decode is the last. The
      first token is the one after the start token; after its end token a
      sequence has only padding. With `return_token_scores` a third: the log
      probability, in nats, of each token decoded, the end token included.
    """


def flatten_beam_dim(
    x: Shaped[Array, '...'], offset: int = 0
) -> Shaped[Array, '...']:
  """Merges the axes (batch, decodes) after `offset` axes into one."""
  before, (batch, decodes) = x.shape[:offset], x.shape[offset : offset + 2]
  return x.reshape(*before, batch * decodes, *x.shape[offset + 2 :])


def unflatten_beam_dim(
    x: Shaped[Array, '...'], batch_size: int, beam_size: int, offset: int = 0
) -> Shaped[Array, '...']:
  """Splits the axis after `offset` axes into (batch_size, beam_size)."""
  return x.reshape(
      *x.shape[:offset], batch_size, beam_size, *x.shape[offset + 1 :]
  )


def add_beam_dim(
    x: Shaped[Array, '...'], beam_size: int, offset: int = 0
) -> Shaped[Array, '...']:
  """Adds an axis of `beam_size` equal decodes after the batch axis."""
  shape = list(x.shape)
  shape.insert(offset + 1, beam_size)
  return jnp.broadcast_to(jnp.expand_dims(x, offset + 1), shape)


def flat_batch_beam_expand(
    x: Shaped[Array, '...'], beam_size: int, offset: int = 0
) -> Shaped[Array, '...']:
  """Repeats each row of the batch axis `beam_size` times, side by side."""
  return flatten_beam_dim(add_beam_dim(x, beam_size, offset), offset)


def cache_map(
    fn: Callable[[jax.Array], jax.Array],
    cache: Cache,
    apply_to_index: bool = False,
) -> Cache:
  """Applies `fn` to the cache's arrays that have a batch axis.

  Args:
    fn: function of one array.
    cache: nested mapping; the same kind (dict or FrozenDict) is given back.
    apply_to_index: also apply it to the indices of the next position: they have
      a batch axis once prompts of different lengths have filled the cache.
  """
  is_frozen = isinstance(cache, flax.core.FrozenDict)
  flat = traverse_util.flatten_dict(flax.core.unfreeze(cache))
  left_out = _UNBATCHED_NAMES + (() if apply_to_index else (_INDEX_NAME,))
  mapped = traverse_util.unflatten_dict({
      path: value if path[-1] in left_out else jax.tree.map(fn, value)
      for path, value in flat.items()
  })
  return flax.core.freeze(mapped) if is_frozen else mapped


def expand_cache(
    cache: Cache, beam_size: int, *, offset: int, apply_to_index: bool
) -> Cache:
  """Repeats each row of a cache `beam_size` times, side by side.

  Args:
    cache: the cache.
    beam_size: number of decodes per row.
    offset: number of axes before the batch axis.
    apply_to_index: the indices of the next position have a batch axis.
  """
  if beam_size == 1:
    return cache
  return cache_map(
      lambda x: flat_batch_beam_expand(x, beam_size, offset),
      cache,
      apply_to_index=apply_to_index,
  )


def with_structure_of(like: Cache, cache: Cache) -> Cache:
  """The cache in the containers of another: a loop's state keeps its own.

  A model may hand back a dict for a FrozenDict.
  """
  return jax.tree.unflatten(jax.tree.structure(like), jax.tree.leaves(cache))
