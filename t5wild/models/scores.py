# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The log likelihood that a model gives to the targets of a batch."""

from collections.abc import Callable
from typing import Any

from flax import core as flax_core
import jax

from t5wild import losses
from t5wild.models import base


def score_targets(
    compute_logits: Callable[..., Any],
    params: base.PyTree,
    batch: base.Batch,
    *,
    return_intermediates: bool,
) -> Any:
  """Log likelihood of each row's targets, in nats: [batch].

  The z-loss and the label smoothing are left out, the loss weights counted.

  Args:
    compute_logits: a model's `_compute_logits`.
    params: parameters of the network.
    batch: features; without `decoder_loss_weights` every target that is not
      padding counts one.
    return_intermediates: also give what the network sows into the collection
      'intermediates', and under 'decoder' beside it the target tokens, the loss
      weights and the scores of the tokens.

  Returns:
    scores, or (scores, intermediates).
  """
  targets = batch['decoder_target_tokens']
  weights = batch.get('decoder_loss_weights')
  if weights is None:
    weights = targets != 0
  if not return_intermediates:
    logits = compute_logits(params, batch)
    return _score_tokens(logits, targets, weights).sum(axis=-1)
  logits, variables = compute_logits(params, batch, mutable=['intermediates'])
  token_scores = _score_tokens(logits, targets, weights)
  intermediates = flax_core.unfreeze(variables.get('intermediates', {}))
  # Flax keeps a tuple of all values sown under a name; these have one each.
  intermediates.setdefault('decoder', {}).update(
      target_tokens=(targets,),
      loss_weights=(weights,),
      token_scores=(token_scores,),
  )
  return token_scores.sum(axis=-1), intermediates


def _score_tokens(logits, targets, weights) -> jax.Array:
  """Weighted log probability of each target: [batch, length]."""
  losses_per_token, _ = losses.cross_entropy_with_labels(logits, targets)
  return -losses_per_token * weights
