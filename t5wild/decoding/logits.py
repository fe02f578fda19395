# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Transformations of the next token's logits before one is chosen.

A logit that is ruled out becomes NEG_INF, finite so that sums and differences
of such logits stay numbers.
"""

import jax
from jax import numpy as jnp
from jaxtyping import Array, Bool, Float, Int
import numpy as np

# T5X's "effective negative infinity".
NEG_INF_VALUE = -1.0e7
NEG_INF = np.array(NEG_INF_VALUE)

# A temperature this low or lower means the likeliest token.
MIN_TEMPERATURE = np.array(1e-4)

_PADDING_ID = 0

Logits = Float[Array, 'rows vocab']
Fraction = float | Float[Array, ''] | Float[Array, ' rows']


def _as_column(x: Fraction) -> Float[Array, '#rows 1']:
  return jnp.reshape(jnp.asarray(x, jnp.float32), (-1, 1))


def scale_by_temperature(logits: Logits, temperature: Fraction) -> Logits:
  """Divides by the temperature, a low one being taken as MIN_TEMPERATURE."""
  return logits / jnp.maximum(_as_column(temperature), MIN_TEMPERATURE)


def keep_top_k(logits: Logits, k: int | Int[Array, '']) -> Logits:
  """Keeps each row's k largest logits and those equal to the k-th.

  Args:
    logits: any logits.
    k: how many; 0, or as many as there are tokens, keeps all.
  """
  vocab = logits.shape[-1]
  if isinstance(k, int):
    if k == 0 or k >= vocab:
      return logits
    threshold = jax.lax.top_k(logits, k)[0][:, -1:]
  else:
    kept = jnp.where(k > 0, jnp.minimum(k, vocab), vocab)
    ascending = jnp.sort(logits, axis=-1)
    threshold = jax.lax.dynamic_slice_in_dim(
        ascending, vocab - kept, 1, axis=-1
    )
  return jnp.where(logits >= threshold, logits, NEG_INF_VALUE)


def keep_top_p(logits: Logits, p: Fraction) -> Logits:
  """Keeps each row's fewest logits whose probabilities add up to at least p.

  Nucleus sampling (Holtzman et al. 2019, arXiv:1904.09751). Logits equal to the
  smallest one kept are kept too.

  Args:
    logits: logits, scaled by the temperature.
    p: probability to keep; 0 and 1 keep all.
  """
  p = _as_column(p)
  probabilities = jax.nn.softmax(logits, axis=-1)
  descending = -jnp.sort(-probabilities, axis=-1)
  # [rows, vocab]: the sum of all that are larger.
  before = jnp.pad(jnp.cumsum(descending, axis=-1)[:, :-1], ((0, 0), (1, 0)))
  is_kept = (before < p) | (p == 0) | (p == 1)
  threshold = jnp.min(
      jnp.where(is_kept, descending, jnp.inf), axis=-1, keepdims=True
  )
  return jnp.where(probabilities >= threshold, logits, NEG_INF_VALUE)


def tokens_seen(
    sequences: Int[Array, 'rows length'],
    last: Int[Array, ' rows'],
    *,
    vocab_size: int,
) -> Bool[Array, 'rows vocab']:
  """Tells which tokens each row has up to position `last`, padding apart."""
  is_past = jnp.arange(sequences.shape[1]) <= last[:, None]
  past = jnp.where(is_past, sequences, _PADDING_ID)

  def mark(tokens):
    return jnp.zeros((vocab_size,), bool).at[tokens].set(True, mode='drop')

  return jax.vmap(mark)(past).at[:, _PADDING_ID].set(False)


def penalize_repetitions(
    logits: Logits, seen: Bool[Array, 'rows vocab'], *, penalty: float
) -> Logits:
  """Makes tokens seen before less likely.

  Keskar et al. 2019 (arXiv:1909.05858), section 4.1, with negative logits
  multiplied where positive ones are divided.

  Args:
    logits: logits of the model, before the temperature.
    seen: the tokens to penalise.
    penalty: above 1 makes them less likely, 1 changes nothing.
  """
  penalized = jnp.where(logits > 0, logits / penalty, logits * penalty)
  return jnp.where(seen, penalized, logits)


def log_probs_of(
    logits: Logits, tokens: Int[Array, ' rows']
) -> Float[Array, ' rows']:
  """Log probability, in nats, of one token per row."""
  chosen = jnp.take_along_axis(logits, tokens[:, None], axis=-1)[:, 0]
  return chosen - jax.nn.logsumexp(logits, axis=-1)
