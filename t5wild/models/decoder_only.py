# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The decoder-only model: language models, causal or with a prefix."""

from collections.abc import Callable, Mapping
import functools
from typing import Any

from flax import core as flax_core
from flax import linen as nn
import jax
from jax import numpy as jnp

from t5wild import losses
from t5wild.decoding import sampling
from t5wild.decoding import state as decoding_state
from t5wild.models import base
from t5wild.models import decodes
from t5wild.models import features
from t5wild.models import scores
from t5wild.models import seqio_class

_PREFIX = 'decoder_causal_attention'


class DecoderOnlyModel(base.BaseTransformerModel):
  """A model that scores and continues one sequence.

  A task has 'targets' alone, or 'inputs' and 'targets', which are joined to one
  sequence; the loss is then on the targets only (seqio's converter sets the
  weights). Attention is causal, or in both directions among the inputs ("prefix
  LM", Raffel et al. 2020, arXiv:1910.10683, section 3.2.1).

  The network takes T5X's arguments (see `networks.decoder_only.DecoderWrapper`
  and its masks); it may also take `dropout_rows`.
  """

  FEATURE_CONVERTER_CLS = seqio_class.LazySeqioClass('DecoderFeatureConverter')
  _inputs_bidirectional_attention = False

  def __init__(  # noqa: PLR0913 the signature is T5X's
      self,
      module: nn.Module,
      vocabulary: Any,
      optimizer_def: Any,
      decode_fn: decoding_state.DecodeFnCallable = sampling.temperature_sample,
      inputs_bidirectional_attention: bool = False,
      feature_converter_cls: Callable[..., Any] | None = None,
      label_smoothing: float = 0.0,
      z_loss: float = 0.0,
      loss_normalizing_factor: losses.LossNormalizingFactor = None,
  ):
    """Joins the parts; see `base.BaseTransformerModel`.

    Args:
      module: the network.
      vocabulary: vocabulary of inputs and targets.
      optimizer_def: the optimizer.
      decode_fn: decoding function of `predict_batch`.
      inputs_bidirectional_attention: the inputs see each other in both
        directions; the task then needs 'inputs'.
      feature_converter_cls: takes the place of FEATURE_CONVERTER_CLS.
      label_smoothing: probability taken from the label.
      z_loss: coefficient of the z-loss.
      loss_normalizing_factor: what the summed loss is divided by.

    Raises:
      ValueError: the decoding function can not start after a prefix.
    """
    if feature_converter_cls is not None:
      self.FEATURE_CONVERTER_CLS = feature_converter_cls
    self._inputs_bidirectional_attention = inputs_bidirectional_attention
    if inputs_bidirectional_attention and not decodes.starts_anywhere(
        decode_fn
    ):
      raise ValueError(
          f'decode_fn {decode_fn!r} takes no `initial_index`; expected one '
          'that starts after a prefix, which attention in both directions puts '
          'into the cache at once: use decoding.temperature_sample or '
          'decoding.beam_search'
      )
    super().__init__(
        module=module,
        input_vocabulary=vocabulary,
        output_vocabulary=vocabulary,
        optimizer_def=optimizer_def,
        decode_fn=decode_fn,
        label_smoothing=label_smoothing,
        z_loss=z_loss,
        loss_normalizing_factor=loss_normalizing_factor,
    )

  @property
  def _prefills(self) -> bool:
    """Whether the prefix goes into the cache at once; subclasses may set
    another `_decode_fn`."""
    return decodes.starts_anywhere(self._decode_fn)

  def get_initial_variables(
      self,
      rng: jax.Array,
      input_shapes: Mapping[str, tuple[int, ...]],
      input_types: Mapping[str, Any] | None = None,
      flax_mutables: base.PyTree | None = None,
  ) -> Mapping[str, base.PyTree]:
    """Initial variables of the network.

    Args:
      rng: key of the initialisers.
      input_shapes: shape of each feature of a batch.
      input_types: type of each feature; None, or a feature left out, means
        float32.
      flax_mutables: not read; there for models that need it.

    Raises:
      ValueError: a feature is missing that the model needs.
    """
    del flax_mutables
    self._check_features(input_shapes)
    tokens = jnp.ones(
        input_shapes['decoder_input_tokens'],
        (input_types or {}).get('decoder_input_tokens', jnp.float32),
    )
    variables = self.module.init(rng, tokens, tokens, enable_dropout=False)
    return flax_core.freeze(variables)

  def _check_features(self, found: Mapping[str, Any]) -> None:
    needed = ['decoder_input_tokens']
    mend = (
        "give a task with 'targets', and no feature converter that splits them "
        'between an encoder and a decoder'
    )
    if self._inputs_bidirectional_attention:
      needed.append(_PREFIX)
      mend = (
          "give a task with 'inputs' and 'targets', and a length for both in "
          'TASK_FEATURE_LENGTHS, or use DecoderOnlyModel without '
          'inputs_bidirectional_attention'
      )
    features.check_features(
        model=type(self).__name__, needed=needed, found=found, mend=mend
    )

  def _get_decoder_causal_attention(
      self, batch: base.Batch
  ) -> jax.Array | None:
    """1 on the inputs, [batch, length], where they see each other; or None."""
    if not self._inputs_bidirectional_attention:
      return None
    self._check_features(batch)
    return batch[_PREFIX]

  def _compute_logits(
      self,
      params: base.PyTree,
      batch: base.Batch,
      dropout_rng: jax.Array | None = None,
      mutable: Any = False,
      other_variables: base.PyTree | None = None,
  ) -> Any:
    """Logits [batch, length, vocab]; with `mutable`, (logits, variables)."""
    rngs = None if dropout_rng is None else {'dropout': dropout_rng}
    optional = {}
    if base.GLOBAL_ROW in batch:
      optional['dropout_rows'] = batch[base.GLOBAL_ROW]
    return self.module.apply(
        {'params': params, **(other_variables or {})},
        batch['decoder_input_tokens'],
        batch['decoder_target_tokens'],
        decoder_segment_ids=batch.get('decoder_segment_ids'),
        decoder_positions=batch.get('decoder_positions'),
        decoder_causal_attention=self._get_decoder_causal_attention(batch),
        decode=False,
        enable_dropout=rngs is not None,
        rngs=rngs,
        mutable=mutable,
        **optional,
    )

  def _compute_logits_from_slice(
      self,
      decoding_state: decoding_state.DecodingState,
      params: base.PyTree,
      max_decode_length: int,
  ) -> tuple[jax.Array, decoding_state.Cache]:
    """One step of decoding, on rows = batch * num_decodes rows.

    Args:
      decoding_state: tokens and cache.
      params: parameters of the network.
      max_decode_length: length of the cache.

    Returns:
      (logits [rows, vocab], cache).
    """
    logits, variables = self.module.apply(
        {'params': params, 'cache': decoding_state.cache},
        decoding_state.cur_token,
        decoding_state.cur_token,
        enable_dropout=False,
        decode=True,
        max_decode_length=max_decode_length,
        mutable=['cache'],
    )
    return jnp.squeeze(logits, axis=1), variables['cache']

  def _compute_kv_cache(
      self,
      params: base.PyTree,
      inputs: jax.Array,
      causal_attention_mask: jax.Array,
  ) -> tuple[decoding_state.Cache, jax.Array]:
    """A cache filled with the prompts, at once and not token by token.

    The last token of each prompt is seen but not counted as cached: the first
    decoding step reads it again, for its logits.

    Args:
      params: parameters of the network.
      inputs: [batch, length] prompts, shifted right by one, 0 after them.
      causal_attention_mask: [batch, length], 1 on the start token and the
        prompt.

    Returns:
      (cache, length of each prompt [batch]).
    """
    lengths = jnp.sum(inputs[:, 1:] != 0, axis=-1)
    cache = self._make_empty_cache(params, inputs)
    _, variables = self.module.apply(
        {'params': params, 'cache': cache},
        decoder_input_tokens=inputs,
        # What is masked is what comes after the prompt; its start token, a 0,
        # is not, so the inputs themselves will not do here.
        decoder_target_tokens=causal_attention_mask,
        decoder_causal_attention=self._get_decoder_causal_attention(
            {'decoder_input_tokens': inputs, _PREFIX: causal_attention_mask}
        ),
        enable_dropout=False,
        prefill=True,
        prefill_lengths=lengths,
        mutable=['cache'],
    )
    return variables['cache'], lengths

  def _make_empty_cache(
      self, params: base.PyTree, inputs: jax.Array
  ) -> decoding_state.Cache:
    """An empty cache; compiled, this costs only its zeros."""
    tokens = jnp.ones_like(inputs)
    _, variables = self.module.apply(
        {'params': params},
        tokens,
        tokens,
        enable_dropout=False,
        decode=True,
        mutable=['cache'],
    )
    return variables['cache']

  def predict_batch_with_aux(
      self,
      params: base.PyTree,
      batch: base.Batch,
      rng: jax.Array | None = None,
      *,
      return_all_decodes: bool = False,
      num_decodes: int = 1,
      decoder_params: Mapping[str, Any] | None = None,
  ) -> tuple[jax.Array, Mapping[str, jax.Array]]:
    """Continues the inputs of a batch that is not packed.

    With inputs 9 4 6 1 and targets 3 9 1 a batch has

        decoder_input_tokens      0 9 4 6 1 3 9 1 0
        decoder_causal_attention  1 1 1 1 1 0 0 0 0

    and what is decoded after 0 9 4 6 1 is returned, moved to the start.

    Args:
      params: parameters of the network.
      batch: reads `decoder_input_tokens`, of which the targets are ignored, and
        `decoder_causal_attention`.
      rng: key handed to the decoding function as `decode_rng`.
      return_all_decodes: give all decodes, not only the best.
      num_decodes: decodes per input.
      decoder_params: more arguments of the decoding function.

    Returns:
      (tokens, {'scores': scores}): [batch, length] and [batch] of the best
      decode, or of all, [batch, num_decodes, length] and [batch, num_decodes],
      the best being the last; with `return_token_scores` among
      `decoder_params` also {'token_scores': ...}, of the tokens' shape.

    Raises:
      ValueError: the batch does not say where the inputs end, or two keys are
        given.
    """
    features.check_features(
        model=f'{type(self).__name__}.predict_batch',
        needed=['decoder_input_tokens', _PREFIX],
        found=batch,
        mend=(
            "what is predicted continues 'inputs': give a task with 'inputs' "
            "and 'targets', and a length for both in TASK_FEATURE_LENGTHS"
        ),
    )
    prompts = batch['decoder_input_tokens'] * batch[_PREFIX]
    start = {}
    if self._prefills:
      cache, lengths = self._compute_kv_cache(params, prompts, batch[_PREFIX])
      start['initial_index'] = lengths
    else:  # the decoding function reads the prompt, token by token
      cache = self._make_empty_cache(params, prompts)
      lengths = jnp.sum(prompts[:, 1:] != 0, axis=-1)
    is_scanned = getattr(self.module, 'scan_layers', False)
    results = self._decode_fn(
        inputs=prompts,
        cache=cache,
        tokens_to_logits=functools.partial(
            self._compute_logits_from_slice,
            params=params,
            max_decode_length=prompts.shape[1],
        ),
        num_decodes=num_decodes,
        cache_offset=1 if is_scanned else 0,
        **start,
        **decodes.make_decoder_params(
            decoder_params, rng=rng, eos_id=self.output_vocabulary.eos_id
        ),
    )
    tokens, aux = decodes.choose_results(
        results, return_all_decodes=return_all_decodes
    )
    if 'token_scores' in aux:
      aux['token_scores'] = decodes.remove_prefix(aux['token_scores'], lengths)
    return decodes.remove_prefix(tokens, lengths), aux

  def score_batch(
      self,
      params: base.PyTree,
      batch: base.Batch,
      return_intermediates: bool = False,
  ) -> Any:
    """Log likelihood of each row's targets; see `scores.score_targets`."""
    return scores.score_targets(
        self._compute_logits,
        params,
        batch,
        return_intermediates=return_intermediates,
    )
