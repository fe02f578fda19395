# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""How the next token is chosen: the likeliest, or drawn."""

import dataclasses
from typing import Any

import jax
from jax import numpy as jnp
from jaxtyping import Array, Float, Int
import numpy as np

from t5wild.decoding import arguments
from t5wild.decoding import logits as logits_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class Choice:
  """How the next token is chosen from its logits.

  Attributes:
    temperature: divides the logits; a vector has one for each row.
    topk: draw among so many likeliest tokens; 0 = all.
    topp: draw among the likeliest of this probability together; 0 = all.
    repetition_penalty: see `logits.penalize_repetitions`; 1 = none.
    rescale_log_probs: score by the distribution drawn from, not the model's.
  """

  temperature: float | Array
  topk: int | Array
  topp: float | Array
  repetition_penalty: float
  rescale_log_probs: bool

  def __post_init__(self):
    """Refuses distributions that nothing can be drawn from."""
    arguments.check_sampling(
        temperature=self.temperature,
        topk=self.topk,
        topp=self.topp,
        repetition_penalty=self.repetition_penalty,
    )

  def repeated(self, num_decodes: int) -> 'Choice':
    """The same for `num_decodes` rows in the place of each."""
    temperature = repeat_rows(self.temperature, num_rows=num_decodes)
    return dataclasses.replace(self, temperature=temperature)

  @property
  def _is_greedy(self) -> bool:
    """Whether every row takes the likeliest token, as far as is known now."""
    is_cold = arguments.is_known(self.temperature) and np.all(
        np.asarray(self.temperature) <= logits_lib.MIN_TEMPERATURE
    )
    return bool(is_cold) or (arguments.is_known(self.topk) and self.topk == 1)

  def __call__(
      self,
      logits: Float[Array, 'rows vocab'],
      key: jax.Array,
      *,
      sequences: Int[Array, 'rows length'],
      cur_index: Int[Array, ' rows'],
  ) -> tuple[Int[Array, ' rows'], Float[Array, ' rows']]:
    """Chooses a token for each row.

    Args:
      logits: of the next token.
      key: key of what is drawn.
      sequences: tokens of each row.
      cur_index: position in them of the last token before the next.

    Returns:
      (tokens, their log probabilities).
    """
    weighed = logits
    if not arguments.is_one(self.repetition_penalty):
      seen = logits_lib.tokens_seen(
          sequences, cur_index, vocab_size=logits.shape[-1]
      )
      weighed = logits_lib.penalize_repetitions(
          logits, seen, penalty=self.repetition_penalty
      )
    likeliest = jnp.argmax(weighed, axis=-1).astype(jnp.int32)
    if self._is_greedy:
      tokens, scores = likeliest, jnp.zeros(likeliest.shape, jnp.float32)
    else:
      tokens, scores = self._draw(weighed, likeliest, key)
    if not self.rescale_log_probs:
      scores = logits_lib.log_probs_of(logits, tokens)
    return tokens, scores

  def _draw(self, logits, likeliest, key):
    """Draws; where the temperature is low, takes the likeliest for certain."""
    logits = logits_lib.scale_by_temperature(logits, self.temperature)
    logits = logits_lib.keep_top_k(logits, self.topk)
    if not (arguments.is_known(self.topp) and not np.any(self.topp)):
      logits = logits_lib.keep_top_p(logits, self.topp)
    drawn = jax.random.categorical(key, logits).astype(jnp.int32)
    is_warm = jnp.asarray(self.temperature) > logits_lib.MIN_TEMPERATURE
    tokens = jnp.where(is_warm, drawn, likeliest)
    scores = jnp.where(is_warm, logits_lib.log_probs_of(logits, drawn), 0.0)
    return tokens, scores


def repeat_rows(value: Any, *, num_rows: int) -> Any:
  """Repeats each row of an array side by side; numbers and None stay."""
  if value is None or np.ndim(value) == 0:
    return value
  return jnp.repeat(jnp.asarray(value), num_rows, axis=0)
