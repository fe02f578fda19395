# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The prefix language model: inputs seen in both directions, then targets."""

from collections.abc import Callable
from typing import Any

from flax import linen as nn

from t5wild import losses
from t5wild.decoding import sampling
from t5wild.decoding import state as decoding_state
from t5wild.models import decoder_only
from t5wild.models import seqio_class


class PrefixLanguageModel(decoder_only.DecoderOnlyModel):
  """A decoder-only model whose inputs always see each other in both directions.

  The task has 'inputs' and 'targets'.
  """

  FEATURE_CONVERTER_CLS = seqio_class.LazySeqioClass('PrefixLMFeatureConverter')

  def __init__(
      self,
      module: nn.Module,
      vocabulary: Any,
      optimizer_def: Any,
      decode_fn: decoding_state.DecodeFnCallable = sampling.temperature_sample,
      feature_converter_cls: Callable[..., Any] | None = None,
      label_smoothing: float = 0.0,
      z_loss: float = 0.0,
      loss_normalizing_factor: losses.LossNormalizingFactor = None,
  ):
    """Joins the parts; see `decoder_only.DecoderOnlyModel`."""
    super().__init__(
        module,
        vocabulary,
        optimizer_def,
        decode_fn=decode_fn,
        inputs_bidirectional_attention=True,
        feature_converter_cls=feature_converter_cls,
        label_smoothing=label_smoothing,
        z_loss=z_loss,
        loss_normalizing_factor=loss_normalizing_factor,
    )
