# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The metrics every Transformer model reports of a batch, under T5X's names."""

from collections.abc import Mapping

from clu import metrics as clu_metrics
import jax
from jax import numpy as jnp

from t5wild import metrics as metrics_lib

# Begins the names of what a training step tells and an evaluation does not.
OF_TRAINING = 'logits/'
_PER_TOKEN = frozenset({
    'loss_per_nonpadding_target_token',
    'loss_per_all_target_tokens',
    'z_loss_per_all_target_tokens',
    'cross_ent_loss_per_all_target_tokens',
})


def compute_weighted_accuracy(
    logits: jax.Array,
    targets: jax.Array,
    weights: jax.Array | None = None,
) -> jax.Array:
  """Sum of the weights of the targets that are the likeliest class.

  Args:
    logits: [batch, length, vocab].
    targets: [batch, length].
    weights: [batch, length]; None means ones.
  """
  if logits.shape[:-1] != targets.shape:
    raise ValueError(
        'logits and targets do not go together:\n'
        f'  logits  {tuple(logits.shape)}\n  targets {tuple(targets.shape)}\n'
        'expected the shape of the targets and one more axis, the vocabulary; '
        'give both for the same batch'
    )
  hits = jnp.argmax(logits, axis=-1) == targets
  return jnp.sum(hits if weights is None else hits * weights)


def count_packed_examples(segment_ids: jax.Array) -> jax.Array:
  """Number of sequences in packed rows.

  Counts the runs of equal ids along each row, but for the run of zeros at its
  end, which is padding.

  Args:
    segment_ids: [batch, length], 0 being padding.
  """
  num_rows = segment_ids.shape[0]
  num_changes = jnp.sum(segment_ids[:, 1:] != segment_ids[:, :-1])
  num_padded_rows = jnp.sum(segment_ids[:, -1] == 0)
  return num_rows + num_changes - num_padded_rows


def compute_base_metrics(
    logits: jax.Array,
    targets: jax.Array,
    mask: jax.Array | None,
    loss: jax.Array,
    z_loss: jax.Array | None = None,
    segment_ids: Mapping[str, jax.Array | None] | None = None,
) -> metrics_lib.MetricsMap:
  """Metrics of one batch.

  `loss` is the sum (or what the normaliser made of it) per step; beside it the
  loss per target, with and without padding.

  Args:
    logits: [batch, length, vocab].
    targets: [batch, length].
    mask: [batch, length] loss weights, None meaning ones. Accuracy counts each
      target whose weight is not zero once.
    loss: scalar, z-loss included.
    z_loss: scalar share of the z-loss; None leaves its metrics out.
    segment_ids: by feature ('encoder', ...) [batch, length] ids of packed
      sequences, 0 being padding; a mask of the tokens that are not padding will
      do. None leaves the padding metrics out.
  """
  num_tokens = jnp.asarray(targets.size)
  weight_sum = num_tokens if mask is None else jnp.sum(mask)
  metrics = {
      'accuracy': clu_metrics.Accuracy.from_model_output(
          logits=logits, labels=targets.astype(jnp.int32), mask=mask
      ),
      'loss': metrics_lib.AveragePerStep(total=loss),
      'loss_per_nonpadding_target_token': clu_metrics.Average(
          total=loss, count=weight_sum
      ),
      'loss_per_all_target_tokens': clu_metrics.Average(
          total=loss, count=num_tokens
      ),
      'non_padding_fraction/loss_weights': clu_metrics.Average(
          total=weight_sum, count=num_tokens
      ),
  }
  metrics.update(_timing_metrics(*targets.shape[:2]))
  if z_loss is not None:
    metrics.update(_z_loss_metrics(loss, z_loss, num_tokens))
  if segment_ids is not None:
    metrics.update(_padding_metrics(segment_ids))
  return metrics


def compute_logit_metrics(
    logits: jax.Array, mask: jax.Array | None
) -> metrics_lib.MetricsMap:
  """Signs of a softmax that saturates or collapses, of no gradient.

  `logits/max`, the largest of all, and `logits/entropy`, that of the predicted
  distribution in nats, averaged over tokens.

  Args:
    logits: [batch, length, vocab].
    mask: [batch, length] weights; tokens of weight 0 are left out, None leaves
      out none.
  """
  logits = jax.lax.stop_gradient(logits).astype(jnp.float32)
  log_z = jax.scipy.special.logsumexp(logits, axis=-1)
  softmax = jnp.exp(logits - log_z[..., None])
  # A masked class has a logit of -inf, and a share of nothing.
  mean = jnp.sum(jnp.where(softmax > 0, softmax * logits, 0.0), axis=-1)
  is_counted = jnp.ones(logits.shape[:-1], bool) if mask is None else mask != 0
  highest = jnp.where(is_counted, jnp.max(logits, axis=-1), -jnp.inf)
  return {
      f'{OF_TRAINING}max': metrics_lib.Maximum.from_model_output(highest),
      f'{OF_TRAINING}entropy': clu_metrics.Average(
          total=jnp.sum(jnp.where(is_counted, log_z - mean, 0.0)),
          count=jnp.sum(is_counted),
      ),
  }


def undo_normalizer_per_token(
    metrics: metrics_lib.MetricsMap, normalizer: jax.Array | float | None
) -> metrics_lib.MetricsMap:
  """Metrics whose losses per token are that, whatever normalised the loss.

  T5X divides a loss that was divided by `loss_normalizing_factor` a second time
  by the number of tokens.

  Args:
    metrics: of a batch.
    normalizer: what its loss was divided by; None means nothing.
  """
  if normalizer is None:
    return metrics
  return {
      name: metric.replace(total=metric.total * normalizer)
      if name in _PER_TOKEN and isinstance(metric, clu_metrics.Average)
      else metric
      for name, metric in metrics.items()
  }


def _timing_metrics(num_examples: int, length: int) -> metrics_lib.MetricsMap:
  """Rates whose seconds the host sets."""
  num_devices = jax.device_count()
  numerators = {
      'timing/seqs_per_second': num_examples,
      'timing/seqs_per_second_per_core': num_examples / num_devices,
      'timing/target_tokens_per_second': num_examples * length,
      'timing/target_tokens_per_second_per_core': (
          num_examples * length / num_devices
      ),
  }
  metrics = {
      name: metrics_lib.TimeRate.from_model_output(jnp.asarray(numerator))
      for name, numerator in numerators.items()
  }
  metrics['timing/seqs'] = metrics_lib.Sum(jnp.asarray(num_examples))
  metrics['timing/steps_per_second'] = (
      metrics_lib.StepsPerTime.from_model_output()
  )
  metrics['timing/seconds'] = metrics_lib.Time()
  return metrics


def _z_loss_metrics(
    loss: jax.Array, z_loss: jax.Array, num_tokens: jax.Array
) -> metrics_lib.MetricsMap:
  """The loss split into z-loss and cross entropy."""
  cross_entropy = loss - z_loss
  return {
      'z_loss': metrics_lib.AveragePerStep(total=z_loss),
      'z_loss_per_all_target_tokens': clu_metrics.Average(
          total=z_loss, count=num_tokens
      ),
      'cross_ent_loss': metrics_lib.AveragePerStep(total=cross_entropy),
      'cross_ent_loss_per_all_target_tokens': clu_metrics.Average(
          total=cross_entropy, count=num_tokens
      ),
  }


def _padding_metrics(
    segment_ids: Mapping[str, jax.Array | None],
) -> metrics_lib.MetricsMap:
  """How many sequences, and which share of the tokens is no padding."""
  metrics = {}
  overall = clu_metrics.Average(total=jnp.asarray(0), count=jnp.asarray(0))
  for feature, ids in segment_ids.items():
    if ids is None or ids.shape[1] == 0:
      continue
    fraction = clu_metrics.Average(
        total=jnp.sum(ids != 0), count=jnp.asarray(ids.size)
    )
    overall = overall.merge(fraction)
    metrics[f'non_padding_fraction/{feature}'] = fraction
    metrics[f'effective_batch_size/{feature}'] = metrics_lib.AveragePerStep(
        total=count_packed_examples(ids)
    )
  metrics['non_padding_fraction/overall'] = overall
  return metrics
