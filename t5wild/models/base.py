# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a trainer, an evaluator and an inference loop may ask of a model.

A model joins a network (a Flax module), vocabularies, a loss and a decoding
function. It is configuration only: parameters are handed to every call.
"""

import abc
from collections.abc import Mapping
import inspect
from typing import Any

from absl import logging
from flax import linen as nn
import jax
from jax import numpy as jnp

from t5wild import losses
from t5wild import metrics as metrics_lib
from t5wild.decoding import state as decoding_state
from t5wild.models import base_metrics

Array = jax.Array
Batch = Mapping[str, jax.Array]
PyTree = Any

# Features that `annotate_global_batch` adds to a batch.
GLOBAL_ROW = 'global_row'
GLOBAL_LOSS_NORMALIZER = 'global_loss_normalizer'

_SEGMENT_IDS_SUFFIX = '_segment_ids'
# A normalizer of None means something: the loss is a sum.
_AS_CONSTRUCTED = object()


class BaseModel(abc.ABC):
  """The contract of all models.

  Attributes:
    FEATURE_CONVERTER_CLS: seqio feature converter (or a callable that makes
      one) that turns the task's features into those of a batch.
    optimizer_def: the optimizer that trains it.
  """

  FEATURE_CONVERTER_CLS: Any

  def __init__(self, optimizer_def: Any):
    """Keeps the optimizer for the trainer."""
    self.optimizer_def = optimizer_def

  @abc.abstractmethod
  def loss_fn(
      self,
      params: PyTree,
      batch: Batch,
      dropout_rng: jax.Array | None,
      flax_mutables: PyTree | None = None,
  ) -> tuple[Array, Any]:
    """Loss of a batch, to be differentiated by `params`.

    Args:
      params: parameters of the network.
      batch: features.
      dropout_rng: key of the dropout; None means no dropout.
      flax_mutables: the network's other variables, None when it has none.

    Returns:
      (loss, metrics), or (loss, (metrics, new flax_mutables)) when
      `flax_mutables` is given.
    """

  def eval_fn(
      self,
      params: PyTree,
      batch: Batch,
      flax_mutables: PyTree | None = None,
  ) -> tuple[Array, metrics_lib.MetricsMap]:
    """(loss, metrics) of a batch, without dropout."""
    if flax_mutables is None:
      return self.loss_fn(params, batch, None)
    loss, (metrics, _) = self.loss_fn(params, batch, None, flax_mutables)
    return loss, metrics

  def predict_batch(
      self,
      params: PyTree,
      batch: Batch,
      rng: jax.Array | None = None,
  ) -> Array:
    """The predictions alone of `predict_batch_with_aux`."""
    return self.predict_batch_with_aux(params=params, batch=batch, rng=rng)[0]

  @abc.abstractmethod
  def predict_batch_with_aux(
      self,
      params: PyTree,
      batch: Batch,
      rng: jax.Array | None = None,
  ) -> tuple[Array, Mapping[str, Array]]:
    """(predictions, what else was computed), a row for each of the batch."""

  @abc.abstractmethod
  def score_batch(
      self,
      params: PyTree,
      batch: Batch,
      return_intermediates: bool = False,
  ) -> Any:
    """Log likelihood of each row's targets: [batch]."""

  @abc.abstractmethod
  def get_initial_variables(
      self,
      rng: jax.Array,
      input_shapes: Mapping[str, tuple[int, ...]],
      input_types: Mapping[str, Any] | None = None,
      flax_mutables: PyTree | None = None,
  ) -> Mapping[str, PyTree]:
    """Initial variables of the network: 'params', 'params_axes', ..."""

  def annotate_global_batch(self, batch: Batch) -> Batch:
    """Adds what a loss needs to know of the whole batch, before it is split.

    This one adds nothing.
    """
    return batch


class BaseTransformerModel(BaseModel):
  """A model whose loss is the cross entropy of target tokens.

  A subclass gives `_compute_logits`, `predict_batch_with_aux`, `score_batch`
  and `get_initial_variables`.
  """

  def __init__(
      self,
      module: nn.Module,
      input_vocabulary: Any,
      output_vocabulary: Any,
      optimizer_def: Any,
      decode_fn: decoding_state.DecodeFnCallable | None = None,
      label_smoothing: float = 0.0,
      z_loss: float = 0.0,
      loss_normalizing_factor: losses.LossNormalizingFactor = None,
  ):
    """Joins the parts.

    Args:
      module: the network.
      input_vocabulary: any object with encode, decode, vocab_size, eos_id and
        pad_id.
      output_vocabulary: the same for the targets.
      optimizer_def: the optimizer.
      decode_fn: decoding function of `predict_batch`.
      label_smoothing: see `losses.compute_weighted_cross_entropy`.
      z_loss: coefficient of the z-loss.
      loss_normalizing_factor: a number, None (the loss is a sum over tokens) or
        a `losses.SpecialLossNormalizingFactor` or its name.

    Raises:
      ValueError: a coefficient of the loss is none.
    """
    super().__init__(optimizer_def=optimizer_def)
    _check_loss_arguments(label_smoothing, z_loss, loss_normalizing_factor)
    self.module = module
    self._input_vocabulary = input_vocabulary
    self._output_vocabulary = output_vocabulary
    self._decode_fn = decode_fn
    self._label_smoothing = label_smoothing
    self._z_loss = z_loss
    self._loss_normalizing_factor = loss_normalizing_factor

  @property
  def input_vocabulary(self) -> Any:
    """Vocabulary of the inputs."""
    return self._input_vocabulary

  @property
  def output_vocabulary(self) -> Any:
    """Vocabulary of the targets."""
    return self._output_vocabulary

  @property
  def decode_fn(self) -> decoding_state.DecodeFnCallable | None:
    """The decoding function."""
    return self._decode_fn

  @abc.abstractmethod
  def _compute_logits(
      self,
      params: PyTree,
      batch: Batch,
      dropout_rng: jax.Array | None = None,
  ) -> Array:
    """Logits of the targets: [batch, length, vocab].

    To serve networks with other variables than parameters it also takes
    `mutable` and `other_variables`, and gives (logits, new variables) when
    `mutable` is given.
    """

  def loss_fn(
      self,
      params: PyTree,
      batch: Batch,
      dropout_rng: jax.Array | None,
      flax_mutables: PyTree | None = None,
      *,
      label_smoothing: float | None = None,
      z_loss: float | None = None,
      loss_normalizing_factor: Any = _AS_CONSTRUCTED,
  ) -> tuple[Array, Any]:
    """Cross entropy of the batch's targets; see `BaseModel.loss_fn`.

    What it is not given of the loss's arguments is the constructor's: recipes
    for the first T5X bind them here.
    """
    if flax_mutables is None:
      logits = self._compute_logits(params, batch, dropout_rng)
    else:
      logits, new_mutables = self._compute_logits(
          params,
          batch,
          dropout_rng,
          mutable=list(flax_mutables),
          other_variables=flax_mutables,
      )
    loss, metrics = self._loss_and_metrics(
        logits,
        batch,
        label_smoothing=label_smoothing,
        z_loss=z_loss,
        loss_normalizing_factor=loss_normalizing_factor,
    )
    return loss, metrics if flax_mutables is None else (metrics, new_mutables)

  def _loss_and_metrics(
      self,
      logits: Array,
      batch: Batch,
      *,
      label_smoothing: float | None,
      z_loss: float | None,
      loss_normalizing_factor: Any,
  ) -> tuple[Array, metrics_lib.MetricsMap]:
    targets = batch['decoder_target_tokens']
    if label_smoothing is None:
      label_smoothing = self._label_smoothing
    if z_loss is None:
      z_loss = self._z_loss
    is_of_model = loss_normalizing_factor is _AS_CONSTRUCTED
    factor = (
        self._loss_normalizing_factor
        if is_of_model
        else loss_normalizing_factor
    )
    _check_loss_arguments(label_smoothing, z_loss, factor)
    normalizer, weights = losses.get_loss_normalizing_factor_and_weights(
        factor, batch
    )
    if is_of_model and GLOBAL_LOSS_NORMALIZER in batch:
      normalizer = batch[GLOBAL_LOSS_NORMALIZER][0]
    loss, z_loss, _ = losses.compute_weighted_cross_entropy(
        logits,
        targets=targets,
        weights=weights,
        label_smoothing=label_smoothing,
        z_loss=z_loss,
        loss_normalizing_factor=normalizer,
    )
    metrics = self._compute_metrics(
        logits=logits,
        targets=targets,
        mask=weights,
        loss=loss,
        z_loss=z_loss,
        segment_ids=_segment_ids_by_feature(batch),
    )
    metrics = base_metrics.undo_normalizer_per_token(metrics, normalizer)
    of_logits = base_metrics.compute_logit_metrics(logits, weights)
    return loss, {**metrics, **of_logits}

  def _compute_metrics(
      self,
      logits: Array,
      targets: Array,
      mask: Array | None,
      loss: Array,
      z_loss: Array | None = None,
      segment_ids: Mapping[str, Array] | None = None,
  ) -> metrics_lib.MetricsMap:
    """Metrics of a batch; a subclass may add to them."""
    return base_metrics.compute_base_metrics(
        logits=logits,
        targets=targets,
        mask=mask,
        loss=loss,
        z_loss=z_loss,
        segment_ids=segment_ids,
    )

  def annotate_global_batch(self, batch: Batch) -> Batch:
    """Adds the normaliser of the whole batch and each row's place in it.

    `loss_fn` reads both, so that neither the loss nor the dropout depends on
    how the batch is split into microbatches.

    Args:
      batch: the whole global batch.

    Returns:
      The batch with `global_loss_normalizer` (float32 [batch], the same value
      in each row), if the normaliser is computed from the batch, and
      `global_row` (int32 [batch]), if the network takes `dropout_rows`.
    """
    batch_size = batch['decoder_target_tokens'].shape[0]
    annotated = dict(batch)
    if takes_argument(self.module.__call__, 'dropout_rows'):
      annotated[GLOBAL_ROW] = jnp.arange(batch_size, dtype=jnp.int32)
    else:
      logging.warning(
          '%s takes no `dropout_rows`: its dropout depends on how a batch is '
          'split into microbatches',
          type(self.module).__name__,
      )
    normalizer, _ = losses.get_loss_normalizing_factor_and_weights(
        self._loss_normalizing_factor, batch
    )
    if normalizer is not None and _is_special(self._loss_normalizing_factor):
      annotated[GLOBAL_LOSS_NORMALIZER] = jnp.full(
          (batch_size,), normalizer, jnp.float32
      )
    return annotated


def takes_argument(fn: Any, name: str) -> bool:
  """Whether the function's signature has an argument of that name."""
  return name in inspect.signature(fn).parameters


def _is_special(factor: losses.LossNormalizingFactor) -> bool:
  """Whether the normaliser is computed from the batch."""
  return isinstance(factor, str | losses.SpecialLossNormalizingFactor)


def _segment_ids_by_feature(batch: Batch) -> dict[str, Array]:
  """Segment ids of a packed batch; of others the mask of non-padding tokens."""
  segment_ids = {
      name.removesuffix(_SEGMENT_IDS_SUFFIX): feature
      for name, feature in batch.items()
      if name.endswith(_SEGMENT_IDS_SUFFIX)
  }
  return segment_ids or {
      name: batch[name] != 0
      for name in ('encoder_input_tokens', 'decoder_target_tokens')
      if name in batch
  }


def _check_loss_arguments(
    label_smoothing: float,
    z_loss: float,
    loss_normalizing_factor: losses.LossNormalizingFactor,
) -> None:
  """Raises a ValueError unless each is a coefficient of a loss."""
  if not 0.0 <= label_smoothing < 1.0:
    raise ValueError(
        f'label_smoothing is {label_smoothing!r}: expected a probability below '
        '1; set it to 0.0 for none'
    )
  if z_loss < 0.0:
    raise ValueError(
        f'z_loss is {z_loss!r}: expected a coefficient of at least 0; set it '
        'to 0.0 for none, 1e-4 is usual'
    )
  if isinstance(loss_normalizing_factor, str):
    losses.convert_special_loss_normalizing_factor_to_enum(
        loss_normalizing_factor
    )
  elif isinstance(loss_normalizing_factor, int | float) and (
      loss_normalizing_factor <= 0
  ):
    raise ValueError(
        f'loss_normalizing_factor is {loss_normalizing_factor!r}: expected a '
        'number above 0; set it to None for a sum over tokens'
    )


def get_input_vocabulary(model: BaseTransformerModel) -> Any:
  """The model's input vocabulary (a function, for gin)."""
  return model.input_vocabulary


def get_output_vocabulary(model: BaseTransformerModel) -> Any:
  """The model's output vocabulary (a function, for gin)."""
  return model.output_vocabulary
