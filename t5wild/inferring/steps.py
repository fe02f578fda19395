# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The function of a batch that a mode stands for."""

from collections.abc import Callable, Mapping
import functools
from typing import Any

import gin

from t5wild.inferring import inputs
from t5wild.inferring import writing
from t5wild.models import base as models_base
from t5wild.models import decoder_only


def make_infer_step(
    model: models_base.BaseModel,
    *,
    mode: str,
    lengths: Mapping[str, Any],
    token_scores: bool,
) -> Callable[..., Any]:
  """Returns the function that `inference.get_infer_fn` applies to batches.

  Args:
    model: The model.
    mode: One of `inputs.MODES`.
    lengths: Full length of each task feature.
    token_scores: Whether 'score' gives the score of each token, too.

  Raises:
    ValueError: Unknown mode.
  """
  if mode not in inputs.MODES:
    raise ValueError(
        f'mode is {mode!r}: expected one of {inputs.MODES}. Set infer.mode.'
    )
  if mode == inputs.SCORE:
    takes = models_base.takes_argument(
        model.score_batch, 'return_intermediates'
    )
    if token_scores and takes:
      return functools.partial(_score_tokens, model.score_batch)
    return model.score_batch
  if not isinstance(model, decoder_only.DecoderOnlyModel):
    is_plain = mode == inputs.PREDICT
    return model.predict_batch if is_plain else model.predict_batch_with_aux
  return _continue_so_far(model, mode, num_tokens=lengths['targets'])


def _score_tokens(score_batch, params, batch):
  """Scores, and beside them those of the tokens where the model gives them."""
  scores, intermediates = score_batch(
      params, batch, return_intermediates=True
  )
  found = intermediates.get('decoder', {})
  if 'token_scores' not in found:
    return scores, {}
  return scores, {
      writing.TOKEN_SCORES: found['token_scores'][0],
      writing.TOKEN_WEIGHTS: found['loss_weights'][0],
  }


def _continue_so_far(
    model: models_base.BaseModel, mode: str, *, num_tokens: int
) -> Callable[..., Any]:
  """Decodes `num_tokens`, however much room a prompt leaves in its row.

  Else a short prompt would be continued further than a long one, and how far
  would depend on the bucket.
  """
  decode_fn = model.decode_fn
  more = {}
  argument = 'max_decode_steps'
  if models_base.takes_argument(decode_fn, argument) and not _is_bound(
      decode_fn, argument
  ):
    more = {'decoder_params': {argument: num_tokens}}

  def predict(params, batch, rng=None):
    tokens, aux = model.predict_batch_with_aux(params, batch, rng=rng, **more)
    tokens = tokens[..., :num_tokens]
    if mode == inputs.PREDICT:
      return tokens
    if writing.TOKEN_SCORES in aux:
      scores = aux[writing.TOKEN_SCORES][..., :num_tokens]
      aux = {**aux, writing.TOKEN_SCORES: scores}
    return tokens, aux

  return predict


def _is_bound(decode_fn: Callable[..., Any], name: str) -> bool:
  """Whether a recipe, or `functools.partial`, sets an argument."""
  if name in getattr(decode_fn, 'keywords', {}):
    return True
  try:
    return name in gin.get_bindings(decode_fn, resolve_references=False)
  except ValueError:
    return False  # gin knows no such function
