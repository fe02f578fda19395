# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Cross entropy over a vocabulary, and what a summed loss is divided by.

The logits of a step are its largest array. Everything here reads them in
float32, whatever their dtype, and keeps for the backward pass only the logits
themselves and one number per token (log z); the softmax is computed again
there, inside the loop that writes the gradient.
"""

from collections.abc import Mapping
import difflib
import enum
import functools
import math

import jax
from jax import numpy as jnp
from jaxtyping import Array, Float, Int, Num

_PADDING_ID = 0

_Coefficient = float | int | Float[Array, '']


@enum.unique
class SpecialLossNormalizingFactor(enum.Enum):
  """Normalisers that are computed from the batch.

  Attributes:
    NUM_REAL_TARGET_TOKENS: the sum of the loss weights; without weights, the
      number of targets that are not padding.
    NUM_TOTAL_TARGET_TOKENS: the number of target positions, padding included.
    AVERAGE_PER_SEQUENCE: every sequence counts the same: the mean over its own
      tokens, then the mean over sequences. Knows packed rows.
  """

  NUM_REAL_TARGET_TOKENS = 1
  NUM_TOTAL_TARGET_TOKENS = 2
  AVERAGE_PER_SEQUENCE = 3


LossNormalizingFactor = float | int | str | SpecialLossNormalizingFactor | None


def _log_z(logits: Float[Array, '*batch vocab']) -> Float[Array, '*batch']:
  """Logarithm of the softmax's normaliser, in float32."""
  return jax.scipy.special.logsumexp(logits.astype(jnp.float32), axis=-1)


def _softmax_gradient(
    logits: Float[Array, '*batch vocab'],
    log_z: Float[Array, '*batch'],
    z_loss: _Coefficient,
) -> Float[Array, '*batch vocab']:
  """Gradient of `log_z + z_loss * log_z**2` by the logits, in float32."""
  softmax = jnp.exp(logits.astype(jnp.float32) - log_z[..., None])
  return (1.0 + 2.0 * z_loss * log_z)[..., None] * softmax


@jax.custom_vjp
def cross_entropy_with_logits(
    logits: Float[Array, '*batch vocab'],
    targets: Num[Array, '*batch vocab'],
    z_loss: _Coefficient,
) -> tuple[Float[Array, '*batch'], Float[Array, '*batch']]:
  """Cross entropy against a distribution over the vocabulary, per token.

  `-sum(targets * log_softmax(logits)) + z_loss * log(z)**2`, z being the
  softmax's normaliser: the second term keeps logits near normalised log
  probabilities (Mesh TensorFlow's z-loss).

  For integer labels `cross_entropy_with_labels` gives the same numbers without
  the targets array.

  Args:
    logits: usually [batch, length, vocab]; read as float32.
    targets: weights of each class, summing to one (one-hot, or smoothed).
    z_loss: coefficient of the z-loss. It has no gradient.

  Returns:
    (loss, z_loss), both [batch, length] float32. The loss holds the z-loss; the
    z-loss beside it is for logging and passes no gradient on.
  """
  return _forward_with_targets(logits, targets, z_loss)[0]


def _forward_with_targets(logits, targets, z_loss):
  log_z = _log_z(logits)
  log_softmax = logits.astype(jnp.float32) - log_z[..., None]
  total_z_loss = z_loss * jnp.square(log_z)
  loss = total_z_loss - jnp.sum(targets * log_softmax, axis=-1)
  return (loss, total_z_loss), (logits, targets, z_loss, log_z)


def _backward_with_targets(residuals, cotangents):
  logits, targets, z_loss, log_z = residuals
  cotangent = cotangents[0][..., None]  # [batch, length, 1]
  of_logits = _softmax_gradient(logits, log_z, z_loss) - targets
  of_targets = None
  if jnp.issubdtype(targets.dtype, jnp.floating):
    log_softmax = logits.astype(jnp.float32) - log_z[..., None]
    of_targets = (-cotangent * log_softmax).astype(targets.dtype)
  return (cotangent * of_logits).astype(logits.dtype), of_targets, None


cross_entropy_with_logits.defvjp(_forward_with_targets, _backward_with_targets)


def cross_entropy_with_labels(
    logits: Float[Array, '*batch vocab'],
    labels: Int[Array, '*batch'],
    *,
    z_loss: _Coefficient = 0.0,
    label_smoothing: float = 0.0,
) -> tuple[Float[Array, '*batch'], Float[Array, '*batch']]:
  """`cross_entropy_with_logits` for integer labels, without one-hot targets.

  The label is found by comparing it with the vocabulary's indices, inside the
  reduction: nothing of the size of the logits is written, and a vocabulary that
  is sharded over devices needs one sum of numbers per token (a gather would
  need the logits of all shards).

  Args:
    logits: usually [batch, length, vocab]; read as float32.
    labels: class of each token. A label outside the vocabulary has the target
      distribution of no class, as an all-zero one-hot row.
    z_loss: coefficient of the z-loss.
    label_smoothing: probability taken from the label and spread evenly over the
      other classes. The entropy of that distribution is not subtracted here.

  Returns:
    (loss, z_loss), both [batch, length] float32, the loss holding the z-loss.
  """
  on_value, off_value = _smoothed_values(label_smoothing, logits.shape[-1])
  return _cross_entropy_with_labels(
      on_value, off_value, logits, labels.astype(jnp.int32), z_loss
  )


def _smoothed_values(
    label_smoothing: float, vocab_size: int
) -> tuple[float, float]:
  """Target probability of the label and of each other class."""
  if not 0.0 <= label_smoothing < 1.0:
    raise ValueError(
        f'label_smoothing is {label_smoothing!r}: expected at least 0 and '
        'below 1; set it to 0.0 for none, 0.1 is usual'
    )
  return 1.0 - label_smoothing, label_smoothing / max(vocab_size - 1, 1)


def _is_label(logits, labels):
  """Which class is the token's label: bool [batch, length, vocab]."""
  classes = jax.lax.broadcasted_iota(
      jnp.int32, logits.shape, logits.ndim - 1
  )
  return classes == labels[..., None]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _cross_entropy_with_labels(on_value, off_value, logits, labels, z_loss):
  return _forward_with_labels(on_value, off_value, logits, labels, z_loss)[0]


def _forward_with_labels(on_value, off_value, logits, labels, z_loss):
  log_z = _log_z(logits)
  log_softmax = logits.astype(jnp.float32) - log_z[..., None]
  # The product with zero is left out: a masked class has a logit of -inf.
  others = off_value * log_softmax if off_value else 0.0
  picked = jnp.where(_is_label(logits, labels), on_value * log_softmax, others)
  total_z_loss = z_loss * jnp.square(log_z)
  loss = total_z_loss - jnp.sum(picked, axis=-1)
  return (loss, total_z_loss), (logits, labels, z_loss, log_z)


def _backward_with_labels(on_value, off_value, residuals, cotangents):
  logits, labels, z_loss, log_z = residuals
  cotangent = cotangents[0][..., None]  # [batch, length, 1]
  targets = jnp.where(_is_label(logits, labels), on_value, off_value)
  of_logits = cotangent * (_softmax_gradient(logits, log_z, z_loss) - targets)
  return of_logits.astype(logits.dtype), None, None


_cross_entropy_with_labels.defvjp(_forward_with_labels, _backward_with_labels)


def compute_weighted_cross_entropy(
    logits: Float[Array, '*batch vocab'],
    targets: Num[Array, '...'],
    weights: Num[Array, '...'] | None = None,
    label_smoothing: float = 0.0,
    z_loss: _Coefficient = 0.0,
    loss_normalizing_factor: float | int | Num[Array, ''] | None = None,
) -> tuple[Float[Array, ''], Float[Array, ''], Num[Array, ''] | int]:
  """Sum over tokens of the cross entropy with integer targets.

  With label smoothing the entropy of the smoothed targets is subtracted, so a
  perfect prediction has a loss of zero.

  Args:
    logits: [batch, length, vocab].
    targets: [batch, length] integer labels.
    weights: [batch, length] factor of each token's loss; None means ones.
    label_smoothing: see `cross_entropy_with_labels`.
    z_loss: coefficient of the z-loss.
    loss_normalizing_factor: what the sum is divided by; None means nothing.

  Returns:
    (loss, z_loss, weight_sum): scalars; the loss holds the z-loss. weight_sum
    is the number of targets when there are no weights.

  Raises:
    ValueError: logits and targets do not go together, or the label smoothing is
      no probability.
  """
  if logits.shape[:-1] != targets.shape:
    raise ValueError(
        'logits and targets do not go together:\n'
        f'  logits  {tuple(logits.shape)}\n  targets {tuple(targets.shape)}\n'
        'expected the shape of the targets and one more axis, the vocabulary; '
        'give integer targets (for distributions call '
        'cross_entropy_with_logits)'
    )
  loss, z_loss_per_token = cross_entropy_with_labels(
      logits, targets, z_loss=z_loss, label_smoothing=label_smoothing
  )
  if label_smoothing:
    loss = loss - _smoothed_entropy(label_smoothing, logits.shape[-1])
  weight_sum = targets.size
  if weights is not None:
    loss = loss * weights
    z_loss_per_token = z_loss_per_token * weights
    weight_sum = jnp.sum(weights)
  if loss_normalizing_factor is not None:
    loss = loss / loss_normalizing_factor
    z_loss_per_token = z_loss_per_token / loss_normalizing_factor
  return jnp.sum(loss), jnp.sum(z_loss_per_token), weight_sum


def _smoothed_entropy(label_smoothing: float, vocab_size: int) -> float:
  """Entropy in nats of the smoothed targets."""
  on_value, off_value = _smoothed_values(label_smoothing, vocab_size)
  others = (vocab_size - 1) * off_value * math.log(off_value + 1e-20)
  return -(on_value * math.log(on_value) + others)


def convert_special_loss_normalizing_factor_to_enum(
    x: str,
) -> SpecialLossNormalizingFactor:
  """The special normaliser of that name, in capitals or not.

  Raises:
    ValueError: there is none of that name.
  """
  names = [factor.name for factor in SpecialLossNormalizingFactor]
  if x.upper() in names:
    return SpecialLossNormalizingFactor[x.upper()]
  close = difflib.get_close_matches(x.upper(), names, n=1, cutoff=0.4)
  hint = f'; did you mean {close[0]!r}?' if close else ''
  raise ValueError(
      f'loss_normalizing_factor is {x!r}: expected a number, None or one of '
      f'{", ".join(names)}{hint}'
  )


def get_loss_normalizing_factor_and_weights(
    loss_normalizing_factor: LossNormalizingFactor,
    batch: Mapping[str, Num[Array, '...']],
) -> tuple[float | int | Num[Array, ''] | None, Num[Array, '...'] | None]:
  """The number to divide a batch's loss by, and the weights of its tokens.

  Args:
    loss_normalizing_factor: a constant or None, returned as it is beside the
      batch's own weights; or a special normaliser or its name.
    batch: reads `decoder_loss_weights` (without them every target that is not 0
      counts one), `decoder_target_tokens`, and for AVERAGE_PER_SEQUENCE of
      packed rows `decoder_segment_ids` and `decoder_positions`.

  Returns:
    (normaliser, weights): weights are [batch, length], or None when neither the
    batch nor a special normaliser gives any.
  """
  factor = loss_normalizing_factor
  weights = batch.get('decoder_loss_weights')
  if isinstance(factor, str):
    factor = convert_special_loss_normalizing_factor_to_enum(factor)
  if not isinstance(factor, SpecialLossNormalizingFactor):
    return factor, weights
  targets = batch['decoder_target_tokens']
  if weights is None:
    weights = (targets > _PADDING_ID).astype(jnp.float32)
  if factor is SpecialLossNormalizingFactor.NUM_TOTAL_TARGET_TOKENS:
    return targets.size, weights
  if factor is SpecialLossNormalizingFactor.AVERAGE_PER_SEQUENCE:
    weights = _weights_per_sequence(weights, batch)
  return jnp.sum(weights), weights


def _weights_per_sequence(
    weights: Num[Array, 'batch length'],
    batch: Mapping[str, Num[Array, '...']],
) -> Float[Array, 'batch length']:
  """Weights divided by their sum over the token's own sequence."""
  if 'decoder_segment_ids' in batch:
    sums = _sums_per_packed_sequence(
        batch['decoder_positions'], batch['decoder_segment_ids'], weights
    )
  else:
    sums = jnp.sum(weights, axis=-1, keepdims=True)
  # A sequence of no weight adds nothing, rather than 0 / 0.
  return jnp.where(sums == 0, 0.0, weights / jnp.where(sums == 0, 1, sums))


def _sums_per_packed_sequence(
    positions: Int[Array, 'batch length'],
    segment_ids: Int[Array, 'batch length'],
    weights: Num[Array, 'batch length'],
) -> Num[Array, 'batch length']:
  """At each token the sum of the weights of its packed sequence; 0 at padding.

  A sequence begins where the position is 0; segment 0 is padding.
  """
  # [batch, length]: 1, 2, ... along a row (0 before the first beginning).
  sequence = jnp.cumsum(positions == 0, axis=-1)
  is_padding = segment_ids == 0
  weights = jnp.where(is_padding, 0, weights)
  sum_by_sequence = jax.vmap(
      functools.partial(jax.ops.segment_sum, num_segments=weights.shape[-1] + 1)
  )
  sums = jnp.take_along_axis(
      sum_by_sequence(weights, sequence), sequence, axis=-1
  )
  return jnp.where(is_padding, 0, sums)
