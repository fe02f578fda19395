# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Decoding token by token: drawn at a temperature, or the likeliest."""

from collections.abc import Callable
import dataclasses
import functools

import flax
import jax
from jax import numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from t5wild.decoding import arguments
from t5wild.decoding import choice as choice_lib
from t5wild.decoding import state as state_lib

_PADDING_ID = 0
# The last position of the sequences takes what rows draw that are full while
# others are not.
_NUM_EXTRA_TOKENS = 2



@flax.struct.dataclass
class SamplingLoopState:
  """State of the loop over positions; `rows` is batch * num_decodes.

  Attributes:
    step: number of finished steps.
    cur_index: [rows] position of the current token.
    sequences: [rows, length + 2] start token, prompt and decoded tokens; the
      last position is scratch.
    cache: the model's cache.
    cur_token: [rows, 1] token at the current position.
    ended: [rows, 1] sequence has ended or is full.
    rng: key of the steps to come.
    log_prob: [rows] summed log probabilities of the decoded tokens.
    token_scores: [rows, length + 2] log probability of each decoded token at
      its position in `sequences`; None if not asked for.
  """

  step: Int[Array, '']
  cur_index: Int[Array, ' rows']
  sequences: Int[Array, 'rows length_plus_2']
  cache: state_lib.Cache
  cur_token: Int[Array, 'rows 1']
  ended: Bool[Array, 'rows 1']
  rng: jax.Array
  log_prob: Float[Array, ' rows']
  token_scores: Float[Array, 'rows length_plus_2'] | None = None


StateCallbackFn = Callable[[SamplingLoopState], SamplingLoopState]
LogitCallbackFn = Callable[
    [Float[Array, 'rows vocab'], SamplingLoopState], Float[Array, 'rows vocab']
]


def temperature_sample(  # noqa: PLR0913 the signature is T5X's
    inputs: Int[Array, 'batch length'],
    cache: state_lib.Cache,
    tokens_to_logits: state_lib.TokensIdsToLogitsCallable,
    eos_id: int,
    decode_rng: jax.Array | None = None,
    num_decodes: int = 1,
    temperature: float | Float[Array, ''] | Float[Array, ' batch'] = 1.0,
    topk: int | Int[Array, ''] = 1,
    topp: float | Float[Array, ''] = 0.0,
    cache_offset: int = 0,
    initial_index: Int[Array, ' batch'] | None = None,
    max_decode_steps: int | Int[Array, ''] | None = None,
    max_decode_steps_hard_limit: int | None = None,
    rescale_log_probs: bool = True,
    state_callback_fn: StateCallbackFn | None = None,
    logit_callback_fn: LogitCallbackFn | None = None,
    *,
    repetition_penalty: float = 1.0,
    return_token_scores: bool = False,
) -> state_lib.Results:
  """Draws sequences token by token; by default, the likeliest tokens.

  With topk = 1 or temperature = 0 nothing is left to chance: ties go to the
  lowest token. Stops as soon as every sequence has ended. The arguments not
  named here are `state.DecodeFnCallable`'s.

  Args:
    decode_rng: key of what is drawn; None is the key of seed 0.
    temperature: divides the logits; a vector has one for each input.
    topk: draw among so many likeliest tokens; 0 = no cut-off.
    topp: draw among the likeliest tokens of this probability together; 0 = no
      cut-off.
    initial_index: position in the inputs of the last token that is known, where
      decoding starts, the tokens before it being in the cache (whose indices
      then have a batch axis); None = 0 and an empty cache.
    max_decode_steps: most tokens to decode after the prompt; None = as many as
      the inputs have room for.
    max_decode_steps_hard_limit: most that max_decode_steps may be; 0 or None =
      any.
    rescale_log_probs: score by the distribution that was drawn from (in which
      the likeliest token alone scores 0), not by the model's.
    state_callback_fn: changes the loop's state before each step and at the end.
    logit_callback_fn: changes the logits before anything else does.
    repetition_penalty: see `logits.penalize_repetitions`; 1 = none.
    return_token_scores: also return the log probability of each token.

  Raises:
    ValueError: an argument is out of its range.
  """
  choice = choice_lib.Choice(
      temperature=temperature,
      topk=topk,
      topp=topp,
      repetition_penalty=repetition_penalty,
      rescale_log_probs=rescale_log_probs,
  )
  loop = _Loop(
      tokens_to_logits=tokens_to_logits,
      eos_id=eos_id,
      choice=choice.repeated(num_decodes),
      state_callback_fn=state_callback_fn,
      logit_callback_fn=logit_callback_fn,
  )
  return loop.decode(
      jnp.asarray(inputs),
      cache,
      rng=jax.random.PRNGKey(0) if decode_rng is None else decode_rng,
      num_decodes=num_decodes,
      cache_offset=cache_offset,
      initial_index=initial_index,
      max_steps=_limit(max_decode_steps, max_decode_steps_hard_limit),
      with_token_scores=return_token_scores,
  )


def _limit(max_decode_steps, hard_limit: int | None):
  """Lowers the number of steps to a limit above 0."""
  if max_decode_steps is None or not hard_limit or hard_limit < 0:
    return max_decode_steps
  if isinstance(max_decode_steps, int):
    return min(max_decode_steps, hard_limit)
  return jnp.minimum(max_decode_steps, hard_limit)


def _in_order_of_score(results: list[Array]) -> tuple[Array, ...]:
  """Sorts the decodes of each input by the second result, ascending."""
  order = jnp.argsort(results[1], axis=-1)  # [batch, decodes]
  return tuple(
      jnp.take_along_axis(
          x, order.reshape(*order.shape, *(1,) * (x.ndim - 2)), axis=1
      )
      for x in results
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Loop:
  """The loop over positions, the same whatever chooses the tokens."""

  tokens_to_logits: state_lib.TokensIdsToLogitsCallable
  eos_id: int
  choice: choice_lib.Choice
  state_callback_fn: StateCallbackFn | None
  logit_callback_fn: LogitCallbackFn | None

  def decode(
      self,
      inputs: Int[Array, 'batch length'],
      cache: state_lib.Cache,
      *,
      rng: jax.Array,
      num_decodes: int,
      cache_offset: int,
      initial_index: Int[Array, ' batch'] | None,
      max_steps: int | Array | None,
      with_token_scores: bool,
  ) -> state_lib.Results:
    """Decodes each input `num_decodes` times, in order of score."""
    batch_size, length = inputs.shape
    arguments.check_shared(num_decodes=num_decodes, length=length)
    arguments.check_max_decode_steps(max_steps, length=length)
    repeat = functools.partial(choice_lib.repeat_rows, num_rows=num_decodes)
    cache = state_lib.expand_cache(
        cache,
        num_decodes,
        offset=cache_offset,
        apply_to_index=initial_index is not None,
    )
    start = _make_start(
        repeat(inputs),
        cache,
        rng=rng,
        initial_index=repeat(initial_index),
        with_token_scores=with_token_scores,
    )
    final = self._run(start, repeat(max_steps))
    results = [final.sequences[:, 1:-1], final.log_prob]
    if with_token_scores:
      results.append(final.token_scores[:, 1:-1])
    return _in_order_of_score([
        state_lib.unflatten_beam_dim(x, batch_size, num_decodes)
        for x in results
    ])

  def _run(
      self, start: SamplingLoopState, max_steps: int | Array | None
  ) -> SamplingLoopState:
    """Decodes until every row has ended or is full."""
    rows, full = start.sequences.shape
    end = jnp.full((rows,), full - _NUM_EXTRA_TOKENS)  # where a row is full
    if max_steps is not None:
      num_prompt_tokens = jnp.sum(start.sequences != _PADDING_ID, axis=1)
      end = jnp.minimum(end, num_prompt_tokens + max_steps)
    # An end token counts when it is one more than the prompt has.
    num_prompt_ends = self._count_ends(start.sequences)
    final = jax.lax.while_loop(
        lambda loop: ~jnp.all(loop.ended),
        functools.partial(self._step, end=end, num_prompt_ends=num_prompt_ends),
        start,
    )
    return self._call_back(final)

  def _call_back(self, loop: SamplingLoopState) -> SamplingLoopState:
    return self.state_callback_fn(loop) if self.state_callback_fn else loop

  def _count_ends(self, sequences: Array) -> Int[Array, 'rows 1']:
    return jnp.sum(sequences == self.eos_id, axis=1, keepdims=True)

  def _step(
      self,
      loop: SamplingLoopState,
      *,
      end: Int[Array, ' rows'],
      num_prompt_ends: Int[Array, 'rows 1'],
  ) -> SamplingLoopState:
    """Decodes the token after the current one of each row."""
    loop = self._call_back(loop)
    key, next_rng = jax.random.split(loop.rng)
    logits, cache = self.tokens_to_logits(
        state_lib.DecodingState(
            cur_index=loop.cur_index,
            sequences=loop.sequences[:, :-_NUM_EXTRA_TOKENS],
            cur_token=loop.cur_token,
            cache=loop.cache,
        )
    )
    if self.logit_callback_fn is not None:
      logits = self.logit_callback_fn(logits, loop)
    chosen, score = self.choice(
        jnp.asarray(logits, jnp.float32),
        key,
        sequences=loop.sequences,
        cur_index=loop.cur_index,
    )
    # Rows that are full write to the scratch position until all have ended.
    index = jnp.minimum(loop.cur_index, end)  # [rows]
    positions = jnp.arange(loop.sequences.shape[1])
    is_next = positions == index[:, None] + 1  # [rows, length + 2]
    forced = jnp.sum(jnp.where(is_next, loop.sequences, 0), axis=1)
    is_scored = (forced == _PADDING_ID) & ~loop.ended[:, 0]
    score = jnp.where(is_scored, score, 0.0)
    token = jnp.where(forced == _PADDING_ID, chosen, forced)[:, None]
    token = jnp.where(loop.ended, _PADDING_ID, token)  # [rows, 1]
    token = token.astype(loop.sequences.dtype)
    sequences = jnp.where(is_next, token, loop.sequences)
    has_ended = self._count_ends(sequences) > num_prompt_ends
    token_scores = loop.token_scores
    if token_scores is not None:
      token_scores = jnp.where(is_next, score[:, None], token_scores)
    return SamplingLoopState(
        step=loop.step + 1,
        cur_index=index + 1,
        sequences=sequences,
        cache=state_lib.with_structure_of(loop.cache, cache),
        cur_token=token,
        ended=loop.ended | has_ended | (index >= end - 1)[:, None],
        rng=next_rng,
        log_prob=loop.log_prob + score,
        token_scores=token_scores,
    )


def _make_start(
    inputs: Int[Array, 'rows length'],
    cache: state_lib.Cache,
    *,
    rng: jax.Array,
    initial_index: Int[Array, ' rows'] | None,
    with_token_scores: bool,
) -> SamplingLoopState:
  """The state before the first step."""
  rows = inputs.shape[0]
  sequences = jnp.pad(inputs, ((0, 0), (0, _NUM_EXTRA_TOKENS)))
  cur_index = jnp.zeros((rows,), jnp.int32)
  cur_token = jnp.zeros((rows, 1), inputs.dtype)
  if initial_index is not None:
    cur_index = jnp.asarray(initial_index, jnp.int32)
    cur_token = jnp.take_along_axis(sequences, cur_index[:, None], axis=1)
  token_scores = None
  if with_token_scores:
    token_scores = jnp.zeros(sequences.shape, jnp.float32)
  return SamplingLoopState(
      step=jnp.zeros((), jnp.int32),
      cur_index=cur_index,
      sequences=sequences,
      cache=cache,
      cur_token=cur_token,
      ended=jnp.zeros((rows, 1), bool),
      rng=rng,
      log_prob=jnp.zeros((rows,), jnp.float32),
      token_scores=token_scores,
  )
