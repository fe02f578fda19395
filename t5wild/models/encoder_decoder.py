# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The encoder-decoder model: targets from inputs (T5)."""

from collections.abc import Callable, Mapping
import dataclasses
import functools
from typing import Any

from flax import core as flax_core
from flax import linen as nn
import jax
from jax import numpy as jnp

from t5wild import losses
from t5wild.decoding import beam
from t5wild.decoding import state as decoding_state
from t5wild.models import base
from t5wild.models import decodes
from t5wild.models import features
from t5wild.models import kept_encoded
from t5wild.models import prompt_cache
from t5wild.models import scores
from t5wild.models import seqio_class

# The network's optional inputs, in the order in which T5X makes them.
_OPTIONAL_FEATURES = (
    'encoder_positions',
    'decoder_positions',
    'encoder_segment_ids',
    'decoder_segment_ids',
)


@dataclasses.dataclass(frozen=True)
class DecoderParams:
  """What `predict_batch` does unless its caller says otherwise.

  Attributes:
    return_all_decodes: give all decodes of an input, not only the best.
    num_decodes: number of decodes to search or draw per input.
  """

  return_all_decodes: bool = False
  num_decodes: int = 1

  def __post_init__(self):
    """Refuses a number of decodes below one."""
    if self.num_decodes < 1:
      raise ValueError(
          f'num_decodes is {self.num_decodes!r}: expected at least 1 decode '
          'per input; set DecoderParams.num_decodes = 1'
      )


class EncoderDecoderModel(base.BaseTransformerModel):
  """A model that scores and decodes targets given inputs.

  The network takes T5X's arguments (see `networks.transformer.Transformer`); it
  may also take `dropout_rows`.
  """

  FEATURE_CONVERTER_CLS = seqio_class.LazySeqioClass('EncDecFeatureConverter')

  def __init__(  # noqa: PLR0913 the signature is T5X's
      self,
      module: nn.Module,
      input_vocabulary: Any,
      output_vocabulary: Any,
      optimizer_def: Any,
      decode_fn: decoding_state.DecodeFnCallable = beam.beam_search,
      feature_converter_cls: Callable[..., Any] | None = None,
      label_smoothing: float = 0.0,
      z_loss: float = 0.0,
      loss_normalizing_factor: losses.LossNormalizingFactor = None,
      default_decoder_params: DecoderParams | None = None,
  ):
    """Joins the parts; see `base.BaseTransformerModel`.

    Args:
      module: the network.
      input_vocabulary: vocabulary of the inputs.
      output_vocabulary: vocabulary of the targets.
      optimizer_def: the optimizer.
      decode_fn: decoding function of `predict_batch`; T5X's default, of one
        beam unless `num_decodes` says otherwise.
      feature_converter_cls: takes the place of FEATURE_CONVERTER_CLS.
      label_smoothing: probability taken from the label.
      z_loss: coefficient of the z-loss.
      loss_normalizing_factor: what the summed loss is divided by.
      default_decoder_params: defaults of `predict_batch`.
    """
    if feature_converter_cls is not None:
      self.FEATURE_CONVERTER_CLS = feature_converter_cls
    self._default_decoder_params = default_decoder_params or DecoderParams()
    super().__init__(
        module=module,
        input_vocabulary=input_vocabulary,
        output_vocabulary=output_vocabulary,
        optimizer_def=optimizer_def,
        decode_fn=decode_fn,
        label_smoothing=label_smoothing,
        z_loss=z_loss,
        loss_normalizing_factor=loss_normalizing_factor,
    )

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
      input_shapes: shape of each feature of a batch; `encoder_input_tokens` and
        `decoder_input_tokens` at least.
      input_types: type of each feature; None, or a feature left out, means
        float32 for tokens, int32 for positions and segment ids.
      flax_mutables: not read; there for models that need it.

    Raises:
      ValueError: a feature is missing that the model needs.
    """
    del flax_mutables
    features.check_features(
        model=type(self).__name__,
        needed=('encoder_input_tokens', 'decoder_input_tokens'),
        found=input_shapes,
        mend=(
            "give a task with 'inputs' and 'targets', and a length for both in "
            'TASK_FEATURE_LENGTHS, or use DecoderOnlyModel for one sequence'
        ),
    )
    types = input_types or {}

    def ones(feature: str, default_type: Any) -> jax.Array:
      return jnp.ones(input_shapes[feature], types.get(feature, default_type))

    decoder_tokens = ones('decoder_input_tokens', jnp.float32)
    optional = {
        feature: ones(feature, jnp.int32) if feature in input_shapes else None
        for feature in _OPTIONAL_FEATURES
    }
    variables = self.module.init(
        rng,
        ones('encoder_input_tokens', jnp.float32),
        decoder_tokens,
        decoder_tokens,
        decode=False,
        enable_dropout=False,
        **optional,
    )
    return flax_core.freeze(variables)

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
    optional = {
        feature: batch.get(feature) for feature in _OPTIONAL_FEATURES
    }
    if base.GLOBAL_ROW in batch:
      optional['dropout_rows'] = batch[base.GLOBAL_ROW]
    return self.module.apply(
        {'params': params, **(other_variables or {})},
        batch['encoder_input_tokens'],
        batch['decoder_input_tokens'],
        batch['decoder_target_tokens'],
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
      encoded_inputs: jax.Array,
      raw_inputs: jax.Array,
      max_decode_length: int,
  ) -> tuple[jax.Array, decoding_state.Cache]:
    """One step of decoding, on rows = batch * num_decodes rows.

    Args:
      decoding_state: tokens and cache.
      params: parameters of the network.
      encoded_inputs: [rows, input length, embed].
      raw_inputs: [rows, input length] tokens, for their padding.
      max_decode_length: length of the cache.

    Returns:
      (logits [rows, vocab], cache).
    """
    logits, variables = self.module.apply(
        {'params': params, 'cache': decoding_state.cache},
        encoded_inputs,
        raw_inputs,
        decoding_state.cur_token,
        decoding_state.cur_token,
        enable_dropout=False,
        decode=True,
        max_decode_length=max_decode_length,
        mutable=['cache'],
        method=self.module.decode,
    )
    return jnp.squeeze(logits, axis=1), variables['cache']

  def _compute_kv_cache(
      self,
      params: base.PyTree,
      encoded_inputs: jax.Array,
      encoder_input_tokens: jax.Array,
      decoder_input_tokens: jax.Array,
      prefill_decoder_prompt: bool = False,
  ) -> tuple[decoding_state.Cache, jax.Array | None]:
    """A cache for a batch of that shape, empty or filled with the prompts.

    Args:
      params: parameters of the network.
      encoded_inputs: what the encoder made of the inputs.
      encoder_input_tokens: these inputs.
      decoder_input_tokens: [batch, length] prompts, 0 after them.
      prefill_decoder_prompt: fill the cache; see `prompt_cache.fill`.

    Returns:
      (cache, [batch] lengths of the prompts; None where it is empty).
    """
    cache = prompt_cache.make_empty(
        self.module,
        params,
        encoder_input_tokens=encoder_input_tokens,
        decoder_input_tokens=decoder_input_tokens,
    )
    if not prefill_decoder_prompt:
      return cache, None
    return prompt_cache.fill(
        self.module,
        params,
        cache,
        encoded_inputs=encoded_inputs,
        encoder_input_tokens=encoder_input_tokens,
        decoder_input_tokens=decoder_input_tokens,
    )

  def predict_batch_with_aux(
      self,
      params: base.PyTree,
      batch: base.Batch,
      rng: jax.Array | None = None,
      decoder_params: Mapping[str, Any] | None = None,
      return_all_decodes: bool | None = None,
      num_decodes: int | None = None,
      prompt_with_targets: bool = False,
  ) -> tuple[jax.Array, Mapping[str, jax.Array]]:
    """Decodes targets of a batch that is not packed.

    Args:
      params: parameters of the network.
      batch: reads `encoder_input_tokens` and the length (with a prompt, also
        the tokens) of `decoder_input_tokens`.
      rng: key handed to the decoding function as `decode_rng`.
      decoder_params: more arguments of the decoding function.
      return_all_decodes: give all decodes; None means the model's default.
      num_decodes: decodes per input; None means the model's default.
      prompt_with_targets: force the decoder's inputs, end tokens left out.

    Returns:
      (tokens, {'scores': scores}): [batch, length] and [batch] of the best
      decode, or of all, [batch, num_decodes, length] and [batch, num_decodes],
      the best being the last; with `return_token_scores` among
      `decoder_params` also {'token_scores': ...}, of the tokens' shape.

    Raises:
      ValueError: two keys are given.
    """
    defaults = self._default_decoder_params
    if return_all_decodes is None:
      return_all_decodes = defaults.return_all_decodes
    if num_decodes is None:
      num_decodes = defaults.num_decodes
    inputs = batch['encoder_input_tokens']
    prompt = self._make_prompt(batch['decoder_input_tokens'])
    if not prompt_with_targets:
      prompt = jnp.zeros_like(prompt)

    encoded = self.module.apply(
        {'params': params},
        inputs,
        enable_dropout=False,
        method=self.module.encode,
    )
    cache, tokens_to_logits, start = self._start_decoding(
        params, encoded, inputs, prompt, num_decodes=num_decodes
    )
    is_scanned = getattr(self.module, 'scan_layers', False)
    results = self._decode_fn(
        inputs=prompt,
        cache=cache,
        tokens_to_logits=tokens_to_logits,
        num_decodes=num_decodes,
        cache_offset=1 if is_scanned else 0,
        **decodes.make_decoder_params(
            {**(decoder_params or {}), **start},
            rng=rng,
            eos_id=self.output_vocabulary.eos_id,
        ),
    )
    return decodes.choose_results(
        results, return_all_decodes=return_all_decodes
    )

  def _start_decoding(
      self,
      params: base.PyTree,
      encoded: jax.Array,
      inputs: jax.Array,
      prompt: jax.Array,
      *,
      num_decodes: int,
  ) -> tuple[
      decoding_state.Cache,
      decoding_state.TokensIdsToLogitsCallable,
      dict[str, Any],
  ]:
    """The cache, the step that the decoding function calls, where it starts."""
    if self._has_own_steps or not kept_encoded.is_kept_by(self.module):
      expand = functools.partial(
          decoding_state.flat_batch_beam_expand, beam_size=num_decodes
      )
      step = functools.partial(
          self._compute_logits_from_slice,
          params=params,
          encoded_inputs=expand(encoded),
          raw_inputs=expand(inputs),
          max_decode_length=prompt.shape[1],
      )
      cache, index = self._compute_kv_cache(
          params,
          encoded_inputs=encoded,
          encoder_input_tokens=inputs,
          decoder_input_tokens=prompt,
          prefill_decoder_prompt=prompt_cache.can_fill(
              self.module, self._decode_fn
          ),
      )
      return cache, step, {} if index is None else {'initial_index': index}
    decoding = kept_encoded.Decoding(
        module=self.module,
        params=params,
        encoded_inputs=encoded,
        raw_inputs=inputs,
        max_decode_length=prompt.shape[1],
    )
    cache, kept = decoding.start()
    step = functools.partial(
        decoding.step, kept=kept, num_decodes=num_decodes
    )
    return cache, step, {}

  @property
  def _has_own_steps(self) -> bool:
    """Whether a subclass changes T5X's steps, which are then called."""
    return any(
        getattr(type(self), name) is not getattr(EncoderDecoderModel, name)
        for name in ('_compute_logits_from_slice', '_compute_kv_cache')
    )

  def _make_prompt(self, decoder_input_tokens: jax.Array) -> jax.Array:
    """The decoder's inputs without end tokens: they would end the decoding."""
    is_eos = decoder_input_tokens == self.output_vocabulary.eos_id
    return jnp.where(is_eos, 0, decoder_input_tokens)

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
