# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Greedy decoding: at each position the likeliest token."""

import flax
import jax
from jax import numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from t5wild.decoding import state as state_lib

_PADDING_ID = 0


@flax.struct.dataclass
class _Loop:
  """State of the loop over positions. `sequences` has one token more than the

  prompt: position 0 holds the start token, which is not returned.
  """

  index: Int[Array, '']
  sequences: Int[Array, 'batch length_plus_1']
  cur_token: Int[Array, 'batch 1']
  ended: Bool[Array, ' batch']
  log_prob: Float[Array, ' batch']
  cache: state_lib.Cache


def greedy_decode(
    inputs: Int[Array, 'batch length'],
    cache: state_lib.Cache,
    tokens_to_logits: state_lib.TokensIdsToLogitsCallable,
    eos_id: int,
    decode_rng: jax.Array | None = None,
    num_decodes: int = 1,
    cache_offset: int = 0,
) -> tuple[Int[Array, 'batch 1 length'], Float[Array, 'batch 1']]:
  """Decodes the likeliest token at each position, ties to the lowest id.

  Stops as soon as every sequence has ended; after its end token a sequence has
  only padding.

  Args:
    inputs: forced prompt, shifted right. Position 0 is not read (a 0 starts the
      sequence); tokens after it that are not 0 are kept and not scored, and an
      end token among them does not end the sequence.
    cache: the model's empty cache.
    tokens_to_logits: one step of the model.
    eos_id: token that ends a sequence.
    decode_rng: ignored; nothing is drawn.
    num_decodes: 1, since there is one greedy answer.
    cache_offset: ignored; the cache is not rearranged.

  Returns:
    (tokens, scores): tokens follow the start token, so the first is the one at
    position 1 of the inputs; scores are the summed log probabilities in nats of
    the decoded tokens, the end token included.

  Raises:
    ValueError: more than one decode is asked for.
  """
  del decode_rng, cache_offset
  if num_decodes != 1:
    raise ValueError(
        f'num_decodes is {num_decodes!r}: greedy decoding gives 1 sequence per '
        'input; set num_decodes = 1, or give the model a decode_fn that '
        'samples or searches'
    )
  batch_size, length = inputs.shape
  start = jnp.zeros((batch_size, 1), inputs.dtype)
  initial = _Loop(
      index=jnp.zeros((), jnp.int32),
      sequences=jnp.concatenate([start, inputs[:, 1:], start], axis=1),
      cur_token=start,
      ended=jnp.zeros((batch_size,), bool),
      log_prob=jnp.zeros((batch_size,), jnp.float32),
      cache=cache,
  )

  def goes_on(loop: _Loop) -> Bool[Array, '']:
    return (loop.index < length) & ~jnp.all(loop.ended)

  def step(loop: _Loop) -> _Loop:
    return _step(loop, tokens_to_logits, eos_id)

  final = jax.lax.while_loop(goes_on, step, initial)
  return final.sequences[:, None, 1:], final.log_prob[:, None]


def _step(
    loop: _Loop,
    tokens_to_logits: state_lib.TokensIdsToLogitsCallable,
    eos_id: int,
) -> _Loop:
  """Decodes the token after `loop.index`."""
  batch_size = loop.sequences.shape[0]
  logits, cache = tokens_to_logits(
      state_lib.DecodingState(
          cur_index=jnp.broadcast_to(loop.index, (batch_size,)),
          sequences=loop.sequences[:, :-1],
          cur_token=loop.cur_token,
          cache=loop.cache,
      )
  )
  logits = logits.astype(jnp.float32)
  likeliest = jnp.argmax(logits, axis=-1).astype(loop.sequences.dtype)
  log_prob = jnp.max(logits, axis=-1) - jax.nn.logsumexp(logits, axis=-1)

  prompt = jax.lax.dynamic_index_in_dim(
      loop.sequences, loop.index + 1, axis=1, keepdims=False
  )
  is_decoded = prompt == _PADDING_ID
  token = jnp.where(is_decoded, likeliest, prompt)
  token = jnp.where(loop.ended, _PADDING_ID, token)
  return _Loop(
      index=loop.index + 1,
      sequences=jax.lax.dynamic_update_index_in_dim(
          loop.sequences, token, loop.index + 1, axis=1
      ),
      cur_token=token[:, None],
      ended=loop.ended | (is_decoded & (token == eos_id)),
      log_prob=loop.log_prob + jnp.where(is_decoded & ~loop.ended, log_prob, 0),
      # A loop's state keeps its structure: a model may hand back a dict for a
      # FrozenDict.
      cache=jax.tree.unflatten(
          jax.tree.structure(loop.cache), jax.tree.leaves(cache)
      ),
  )
