# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The function of a batch that a mode stands for."""

from collections.abc import Callable, Mapping, Sequence
import functools
import inspect
from typing import Any

from t5wild import gin_utils
from t5wild.decoding import beam
from t5wild.decoding import greedy
from t5wild.decoding import sampling
from t5wild.inferring import inputs
from t5wild.inferring import writing
from t5wild.models import base as models_base
from t5wild.models import decoder_only

_NUM_DECODES = 'num_decodes'
_DECODE_FNS = {
    'beam_search': beam.beam_search,
    'greedy_decode': greedy.greedy_decode,
    'temperature_sample': sampling.temperature_sample,
}


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
  _check_num_decodes(model)
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


def _check_num_decodes(model: models_base.BaseModel) -> None:
  """Refuses a number of decodes that the model would pass over, as T5X's do."""
  predict = model.predict_batch_with_aux
  if not _is_bound(model.decode_fn, _NUM_DECODES) or _is_bound(
      predict, _NUM_DECODES
  ):
    return
  name = getattr(model.decode_fn, '__name__', repr(model.decode_fn))
  raise ValueError(
      f'{name}.{_NUM_DECODES} is set, and {type(model).__name__}.'
      'predict_batch_with_aux sets another: 1, unless told. Expected it to be '
      f'set there: models.{type(model).__name__}.predict_batch_with_aux.'
      f'{_NUM_DECODES} = 4.'
  )


def check_decoding_flags(
    model: models_base.BaseModel, gin_bindings: Sequence[str]
) -> None:
  """Refuses flags about a decoding function that the model does not call.

  Args:
    model: The model.
    gin_bindings: `NAME = VALUE` each, as given.

  Raises:
    ValueError: What to give beside it.
  """
  decode_fn = getattr(model, 'decode_fn', None)
  decode_fn = getattr(decode_fn, 'func', decode_fn)  # of functools.partial
  for binding in gin_bindings:
    *_, function, argument = ['', *binding.partition('=')[0].split('.')]
    function = function.rpartition('/')[2]
    wanted = _DECODE_FNS.get(function)
    # gin's own wrapper reads bindings; a model's default is no wrapper.
    if wanted is None or (
        decode_fn is not wanted
        and inspect.unwrap(decode_fn) is inspect.unwrap(wanted)
    ):
      continue
    name = type(model).__name__
    raise ValueError(
        f'{binding.strip()} is given, and {name} does not decode by '
        f'@decoding.{function}: {argument.strip()} would not be read. Expected '
        'that it does. Give also '
        f'--gin.models.{name}.decode_fn=@decoding.{function}'
    )


def _is_bound(decode_fn: Callable[..., Any], name: str) -> bool:
  """Whether a recipe, or `functools.partial`, sets an argument."""
  if name in getattr(decode_fn, 'keywords', {}):
    return True
  return gin_utils.is_bound(getattr(decode_fn, 'func', decode_fn), name)
