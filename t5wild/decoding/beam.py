# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Beam search with a brevity penalty, in T5X's scores and order.

Each input has `num_decodes` live beams, sequences still being extended, and as
many finished ones, kept apart. Both are in ascending order of score, fillers
with NEG_INF first. Beams of one input lie side by side on the batch axis of the
cache, which follows the live beams.
"""

import dataclasses

import flax
import jax
from jax import numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from t5wild.decoding import arguments
from t5wild.decoding import gathering
from t5wild.decoding import logits as logits_lib
from t5wild.decoding import state as state_lib

_PADDING_ID = 0
_NEG_INF = logits_lib.NEG_INF_VALUE
# A sequence of fillers scores less than any that a model gives.
_FILLER = _NEG_INF / 2


@flax.struct.dataclass
class _Beams:
  """Sequences of each input.

  Attributes:
    sequences: tokens, the start token first.
    log_probs: summed log probabilities of the decoded tokens, or of finished
      beams the score; NEG_INF for a filler.
    token_scores: log probability of each token; None if not asked for.
  """

  sequences: Int[Array, 'batch beams length_plus_1']
  log_probs: Float[Array, 'batch beams']
  token_scores: Float[Array, 'batch beams length_plus_1'] | None


@flax.struct.dataclass
class _Search:
  """State of the search: number of finished steps, beams and cache."""

  step: Int[Array, '']
  live: _Beams
  finished: _Beams
  cache: state_lib.Cache


def brevity_penalty(
    alpha: float, length: int | Int[Array, '...']
) -> Float[Array, '...']:
  """What a log probability is divided by: ((5 + length) / 6) ** alpha.

  Wu et al. 2016 (arXiv:1609.08144), equation 14.
  """
  return jnp.power((5.0 + length) / 6.0, alpha)


def beam_search(  # noqa: PLR0913 the signature is T5X's
    inputs: Int[Array, 'batch length'],
    cache: state_lib.Cache,
    tokens_to_logits: state_lib.TokensIdsToLogitsCallable,
    eos_id: int,
    num_decodes: int = 4,
    alpha: float = 0.6,
    max_decode_len: int | None = None,
    max_decode_step: int = -1,
    min_log_prob: float = _NEG_INF,
    decode_rng: jax.Array | None = None,
    cache_offset: int = 0,
    initial_index: Int[Array, ' batch'] | None = None,
    *,
    repetition_penalty: float = 1.0,
    return_token_scores: bool = False,
) -> state_lib.Results:
  """Searches for the sequences of the highest scores.

  The score of a finished sequence is its log probability divided by the brevity
  penalty of its length, prompt and end token included. An input of which
  nothing has finished at the last step gives its live beams instead, scored by
  their log probabilities. One beam is greedy decoding, except that it also
  remembers sequences it could have ended. The arguments not named here are
  `state.DecodeFnCallable`'s; an end token in the prompt ends the sequence.

  Args:
    num_decodes: number of beams.
    alpha: exponent of the brevity penalty; 0 = none, more = longer sequences.
    max_decode_len: length of the sequences returned, at most that of the
      inputs; None = that.
    max_decode_step: most steps; below 1 = as many as there is room for.
    min_log_prob: stop when no live beam has a log probability of at least that.
    decode_rng: ignored; nothing is drawn.
    initial_index: position in the inputs of the last token that is known, where
      the search starts, the tokens before it being in the cache (whose indices
      then have a batch axis); None = 0 and an empty cache.
    repetition_penalty: see `logits.penalize_repetitions`; 1 = none.
    return_token_scores: also return the log probability of each token.

  Raises:
    ValueError: an argument is out of its range.
  """
  del decode_rng
  batch_size, length = inputs.shape
  arguments.check_shared(num_decodes=num_decodes, length=length)
  arguments.check_repetition_penalty(repetition_penalty)
  if max_decode_len is None:
    max_decode_len = length
  arguments.check_max_decode_len(max_decode_len, length=length)
  has_prefix = initial_index is not None
  prompt = jnp.pad(jnp.asarray(inputs, jnp.int32), ((0, 0), (0, 1)))
  searcher = _Searcher(
      tokens_to_logits=tokens_to_logits,
      eos_id=eos_id,
      num_beams=num_decodes,
      alpha=alpha,
      max_decode_step=max_decode_step,
      min_log_prob=min_log_prob,
      cache_offset=cache_offset,
      repetition_penalty=repetition_penalty,
      prompt=prompt[:, : max_decode_len + 1],
      initial_index=(
          jnp.asarray(initial_index, jnp.int32)
          if has_prefix
          else jnp.zeros((batch_size,), jnp.int32)
      ),
      has_prefix=has_prefix,
  )
  return searcher.search(cache, with_token_scores=return_token_scores)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Searcher:
  """A search of one batch; see `beam_search` for the fields.

  Attributes:
    prompt: inputs of length max_decode_len + 1.
    initial_index: position where each input's search starts.
    has_prefix: the cache holds what is before those positions.
  """

  tokens_to_logits: state_lib.TokensIdsToLogitsCallable
  eos_id: int
  num_beams: int
  alpha: float
  max_decode_step: int
  min_log_prob: float
  cache_offset: int
  repetition_penalty: float
  prompt: Int[Array, 'batch length_plus_1']
  initial_index: Int[Array, ' batch']
  has_prefix: bool

  def search(
      self, cache: state_lib.Cache, *, with_token_scores: bool
  ) -> state_lib.Results:
    """Searches until no live beam can become better than the finished."""
    start = self._start(cache, with_token_scores=with_token_scores)
    final = jax.lax.while_loop(self._goes_on, self._step, start)
    any_finished = jnp.any(final.finished.log_probs > _FILLER, axis=1)
    best = _where_rows(any_finished, final.finished, final.live)
    results = (best.sequences[:, :, 1:], best.log_probs)
    if with_token_scores:
      results += (best.token_scores[:, :, 1:],)
    return results

  def _start(
      self, cache: state_lib.Cache, *, with_token_scores: bool
  ) -> _Search:
    batch_size, length = self.prompt.shape
    shape = (batch_size, self.num_beams, length)
    sequences = jnp.zeros(shape, jnp.int32)
    if self.has_prefix:
      is_known = jnp.arange(length) <= self.initial_index[:, None]
      known = jnp.where(is_known, self.prompt, _PADDING_ID)
      sequences = jnp.broadcast_to(known[:, None], shape)
    token_scores = jnp.zeros(shape, jnp.float32) if with_token_scores else None
    fillers = _Beams(
        sequences=sequences,
        log_probs=jnp.full(shape[:2], _NEG_INF, jnp.float32),
        token_scores=token_scores,
    )
    # Equal beams would be extended alike: all but one start as fillers.
    log_probs = fillers.log_probs.at[:, 0].set(0.0)
    return _Search(
        step=jnp.zeros((), jnp.int32),
        live=fillers.replace(log_probs=log_probs),
        finished=fillers,
        cache=state_lib.expand_cache(
            cache,
            self.num_beams,
            offset=self.cache_offset,
            apply_to_index=self.has_prefix,
        ),
    )

  def _goes_on(self, search: _Search) -> Bool[Array, '']:
    """Tells whether another step could change what is returned."""
    full = self.prompt.shape[1]
    has_room = search.step + jnp.min(self.initial_index) < full - 1
    # No live beam can score higher than at the largest penalty.
    largest_penalty = brevity_penalty(self.alpha, full)
    best_live = search.live.log_probs[:, -1] / largest_penalty
    worst_finished = jnp.min(search.finished.log_probs, axis=1)
    can_improve = ~jnp.all(worst_finished > best_live)
    is_likely = (search.step == 0) | jnp.any(
        best_live >= self.min_log_prob / largest_penalty
    )
    may_step = (self.max_decode_step < 1) | (search.step < self.max_decode_step)
    return has_room & can_improve & is_likely & may_step

  def _step(self, search: _Search) -> _Search:
    """Extends each live beam by one token."""
    log_probs, cache = self._next_log_probs(search)
    index = self.initial_index + search.step + 1  # [batch]
    candidates, sources = self._extend(search.live, log_probs, index)
    is_next = self._is_at(index)[:, None]  # [batch, 1, length + 1]
    tokens = jnp.sum(jnp.where(is_next, candidates.sequences, 0), axis=-1)
    has_ended = tokens == self.eos_id  # [batch, candidates]

    alive = candidates.replace(
        log_probs=candidates.log_probs + jnp.where(has_ended, _NEG_INF, 0.0)
    )
    live, live_order = self._best(alive)

    scores = candidates.log_probs / brevity_penalty(self.alpha, index)[:, None]
    is_finished = has_ended & (candidates.log_probs > _FILLER)
    finished = jax.tree.map(
        lambda *parts: jnp.concatenate(parts, axis=1),
        search.finished,
        candidates.replace(log_probs=jnp.where(is_finished, scores, _NEG_INF)),
    )
    finished, _ = self._best(finished)

    # An input that is full waits for the others as it is.
    has_room = index < self.prompt.shape[1]
    cache = self._reorder(
        cache, gathering.take_beams(sources, live_order)
    )
    return _Search(
        step=search.step + 1,
        live=_where_rows(has_room, live, search.live),
        finished=_where_rows(has_room, finished, search.finished),
        cache=state_lib.with_structure_of(search.cache, cache),
    )

  def _best(
      self, beams: _Beams
  ) -> tuple[_Beams, Int[Array, 'batch beams']]:
    """The beams of the highest scores, and their numbers."""
    order = gathering.best_beams(beams.log_probs, self.num_beams)
    return _take(beams, order), order

  def _is_at(self, index: Int[Array, ' batch']) -> Bool[Array, 'batch length']:
    return jnp.arange(self.prompt.shape[1]) == index[:, None]

  def _next_log_probs(
      self, search: _Search
  ) -> tuple[Float[Array, 'batch beams vocab'], state_lib.Cache]:
    """Log probabilities of the token after the current one of each beam."""
    sequences = state_lib.flatten_beam_dim(search.live.sequences)
    index = jnp.repeat(self.initial_index + search.step, self.num_beams)
    index = jnp.minimum(index, sequences.shape[1] - 1)
    logits, cache = self.tokens_to_logits(
        state_lib.DecodingState(
            cur_index=index,
            sequences=sequences[:, :-1],
            cur_token=jnp.take_along_axis(sequences, index[:, None], axis=1),
            cache=search.cache,
        )
    )
    logits = jnp.asarray(logits, jnp.float32)
    arguments.check_beams(
        num_decodes=self.num_beams, vocab_size=logits.shape[-1]
    )
    if not arguments.is_one(self.repetition_penalty):
      seen = logits_lib.tokens_seen(
          sequences, index, vocab_size=logits.shape[-1]
      )
      logits = logits_lib.penalize_repetitions(
          logits, seen, penalty=self.repetition_penalty
      )
    log_probs = state_lib.unflatten_beam_dim(
        jax.nn.log_softmax(logits), self.prompt.shape[0], self.num_beams
    )
    return log_probs, cache

  def _extend(
      self,
      live: _Beams,
      log_probs: Float[Array, 'batch beams vocab'],
      index: Int[Array, ' batch'],
  ) -> tuple[_Beams, Int[Array, 'batch candidates']]:
    """The best sequences one token longer, and the beams they come from.

    Twice as many as beams, so that enough stay alive if the best all end.
    Inside the prompt only the first is alive, with the prompt's token.
    """
    vocab_size = log_probs.shape[-1]
    summed = live.log_probs[:, :, None] + log_probs
    num_candidates = min(2 * self.num_beams, self.num_beams * vocab_size)
    best, chosen = jax.lax.top_k(
        summed.reshape(summed.shape[0], -1), num_candidates
    )  # [batch, candidates]
    sources, tokens = chosen // vocab_size, chosen % vocab_size
    is_next = self._is_at(index)
    forced = jnp.sum(jnp.where(is_next, self.prompt, 0), axis=1, keepdims=True)
    is_decoded = forced == _PADDING_ID  # [batch, 1]
    inside_prompt = jnp.where(jnp.arange(num_candidates) == 0, 0.0, _NEG_INF)
    tokens = jnp.where(is_decoded, tokens, forced)
    candidates = _take(live, sources)
    token_scores = candidates.token_scores
    if token_scores is not None:
      score = jnp.where(is_decoded, best - candidates.log_probs, 0.0)
      token_scores = jnp.where(
          is_next[:, None], score[:, :, None], token_scores
      )
    candidates = _Beams(
        sequences=jnp.where(
            is_next[:, None], tokens[:, :, None], candidates.sequences
        ),
        log_probs=jnp.where(is_decoded, best, inside_prompt),
        token_scores=token_scores,
    )
    return candidates, sources

  def _reorder(
      self, cache: state_lib.Cache, sources: Int[Array, 'batch beams']
  ) -> state_lib.Cache:
    """Gives each live beam the cache of the beam it comes from."""
    if self.num_beams == 1:
      return cache
    batch_size, offset = self.prompt.shape[0], self.cache_offset

    def reorder(x):
      beams = state_lib.unflatten_beam_dim(
          x, batch_size, self.num_beams, offset
      )
      beams = gathering.take_beams(beams, sources, offset=offset)
      return state_lib.flatten_beam_dim(beams, offset)

    return state_lib.cache_map(reorder, cache)


def _take(beams: _Beams, numbers: gathering.Chosen) -> _Beams:
  return jax.tree.map(lambda x: gathering.take_beams(x, numbers), beams)


def _where_rows(
    condition: Bool[Array, ' batch'], x: _Beams, y: _Beams
) -> _Beams:
  return jax.tree.map(
      lambda a, b: jnp.where(
          condition.reshape(-1, *(1,) * (a.ndim - 1)), a, b
      ),
      x,
      y,
  )
