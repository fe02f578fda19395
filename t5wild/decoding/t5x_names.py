# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of T5X's decoding that code outside calls and nothing here needs."""

from typing import Any

import jax
from jax import Array
import jax.numpy as jnp
from jaxtyping import Float, Int

from t5wild.decoding import gathering
from t5wild.decoding import sampling

Tokens = Int[Array, 'batch length']


def temperature_sample_single_trial(  # noqa: PLR0913 the signature is T5X's
    inputs: Tokens,
    cache: Any,
    tokens_to_logits: Any,
    eos_id: int,
    prng_key: jax.Array,
    num_decodes: int = 1,
    temperature: Any = 1.0,
    topk: Any = 20,
    topp: Any = 0.0,
    initial_index: Any = None,
    max_decode_steps: Any = None,
    rescale_log_probs: bool = True,
    state_callback_fn: Any = None,
    logit_callback_fn: Any = None,
) -> tuple[Tokens, Float[Array, ' batch']]:
  """`sampling.temperature_sample` with one decode of each input, as it is.

  Args:
    num_decodes: unused: the inputs are expanded by the caller.

  Returns:
    Tokens `[batch, length]` and log probabilities `[batch]`.
  """
  del num_decodes
  decodes, log_probs = sampling.temperature_sample(
      inputs,
      cache,
      tokens_to_logits,
      eos_id,
      decode_rng=prng_key,
      temperature=temperature,
      topk=topk,
      topp=topp,
      initial_index=initial_index,
      max_decode_steps=max_decode_steps,
      rescale_log_probs=rescale_log_probs,
      state_callback_fn=state_callback_fn,
      logit_callback_fn=logit_callback_fn,
  )
  return decodes[:, 0], log_probs[:, 0]


def top_k_two_stage(x: Float[Array, 'batch number'], k: int):
  """The `k` largest numbers of each row, largest first, and where they are."""
  return jax.lax.top_k(x, k)


def gather_topk_beams(
    nested: Any,
    score_or_log_prob: Float[Array, 'batch beams'],
    batch_size: int,
    new_beam_size: int,
) -> Any:
  """The beams of the highest scores, the lowest of these first."""
  _, best = jax.lax.top_k(score_or_log_prob, k=new_beam_size)
  return gathering.gather_beams(
      nested,
      jnp.flip(best, axis=1),
      batch_size,
      score_or_log_prob.shape[1],
      new_beam_size,
  )


def right_align_prompts(prompts: Tokens) -> Tokens:
  """Rows moved right until their last token that is not 0 is at the end."""
  length = prompts.shape[1]
  last = jnp.argmax((prompts != 0) * jnp.arange(length), axis=1)
  return _shifted(prompts, last - (length - 1))


def left_align_prompts(prompts: Tokens) -> Tokens:
  """Rows moved left until their first token that is not 0 is at the start."""
  return _shifted(prompts, jnp.argmax(prompts != 0, axis=1))


def _shifted(prompts: Tokens, left: Int[Array, ' batch']) -> Tokens:
  """Each row moved left by so many places (right: below 0), 0 coming in."""
  source = jnp.arange(prompts.shape[1]) + left[:, None]
  moved = jnp.take_along_axis(
      prompts, jnp.clip(source, 0, prompts.shape[1] - 1), axis=1
  )
  is_inside = (source >= 0) & (source < prompts.shape[1])
  return jnp.where(is_inside, moved, 0)
