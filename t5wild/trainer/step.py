# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""One training or evaluation step as pure functions of arrays.

`accumulate_grads_microbatched` makes gradients, `apply_grads` an update of
them, `train_with_lr` is both. Signatures are T5X's.
"""

from collections.abc import Callable, Mapping
import functools
from typing import Any

from clu import metrics as clu_metrics
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from t5wild import metrics as metrics_lib
from t5wild import train_state as train_state_lib
from t5wild.models import base as models_base
from t5wild.models import base_metrics
from t5wild.optimizers import base as optimizers_base
from t5wild.trainer import microbatches as microbatches_lib
from t5wild.trainer import update_guard
from t5wild.trainer import vital_signs
from t5wild.trainer import weight_stats

Batch = Mapping[str, jax.Array]
MetricsMap = metrics_lib.MetricsMap
PyTree = Any

_BATCH_SPEC = PartitionSpec('data')


def accumulate_grads_microbatched(
    model: models_base.BaseModel,
    train_state: train_state_lib.TrainState,
    batch: Batch,
    dropout_rng: jax.Array,
    num_microbatches: int | None,
    data_partition_spec: PartitionSpec = _BATCH_SPEC,
    *,
    microbatch_semantics: str = 't5x',
) -> tuple[PyTree, MetricsMap, PyTree | None]:
  """Returns the gradient of a batch, one microbatch in memory at a time.

  Gradients are summed in float32, in place. With `global` semantics the sum is
  that of the whole batch, dropout included. With `t5x` each microbatch has its
  own loss normaliser and all draw the same dropout masks, as in T5X, so the sum
  depends on their number.

  Args:
    model: The model; its `loss_fn` is differentiated.
    train_state: Holds the parameters.
    batch: Features, [batch, ...].
    dropout_rng: Key of this step's dropout.
    num_microbatches: Number of parts; None or 1 takes the batch whole.
    data_partition_spec: Sharding of a batch's rows.
    microbatch_semantics: `t5x` or `global`.

  Returns:
    (gradients, metrics, new flax_mutables or None).

  Raises:
    ValueError: When the batch is not divisible.
  """
  microbatches_lib.check_semantics(microbatch_semantics)
  if microbatch_semantics == 'global':
    batch = model.annotate_global_batch(batch)
  mutables = train_state.flax_mutables or None
  gradient = _gradient_fn(model)
  if num_microbatches is None or num_microbatches <= 1:
    grads, metrics, mutables = gradient(
        train_state.params, batch, dropout_rng, mutables
    )
    return grads, metrics, mutables
  microbatches_lib.check_divisible(
      len(next(iter(batch.values()))), num_microbatches=num_microbatches
  )
  make_key = _microbatch_key_fn(
      dropout_rng,
      semantics=microbatch_semantics,
      rows_have_keys=models_base.GLOBAL_ROW in batch,
  )

  take_microbatch = microbatches_lib.split(
      batch,
      num_microbatches,
      semantics=microbatch_semantics,
      data_partition_spec=data_partition_spec,
  )

  def add_microbatch(carry, index):
    grad_sum, mutables = carry
    # The barrier makes the parameters look new in each turn: else XLA would
    # compute what depends on them alone (casts, transposes, position biases)
    # before the loop, and keep it all the while.
    params, index = jax.lax.optimization_barrier((train_state.params, index))
    grads, metrics, mutables = gradient(
        params, take_microbatch(index), make_key(index), mutables
    )
    return (jax.tree.map(jnp.add, grad_sum, grads), mutables), metrics

  zeros = jax.tree.map(
      lambda p: jnp.zeros(p.shape, jnp.float32), train_state.params
  )
  (grads, mutables), metrics = jax.lax.scan(
      add_microbatch, (zeros, mutables), jnp.arange(num_microbatches)
  )
  return grads, _merge_stacked(metrics), mutables


def _gradient_fn(model: models_base.BaseModel) -> Callable:
  """Returns (params, batch, key, mutables) -> (grads, metrics, mutables)."""
  grad_fn = jax.value_and_grad(model.loss_fn, has_aux=True)

  def gradient(params, batch, key, mutables):
    if mutables is None:
      (_, metrics), grads = grad_fn(params, batch, key)
    else:
      (_, (metrics, mutables)), grads = grad_fn(params, batch, key, mutables)
    return grads, metrics, mutables

  return gradient


def _microbatch_key_fn(
    dropout_rng: jax.Array, *, semantics: str, rows_have_keys: bool
) -> Callable[[jax.Array], jax.Array]:
  """Returns index of a microbatch -> key of its dropout."""
  if semantics == 't5x':
    # T5X splits the key for each microbatch and forgets the new state, so that
    # all draw the same masks; unchanged recipes keep its numbers.
    return lambda index: jax.random.split(dropout_rng)[1]
  if rows_have_keys:
    return lambda index: dropout_rng
  return functools.partial(jax.random.fold_in, dropout_rng)


def _merge_stacked(metrics: MetricsMap) -> MetricsMap:
  """Merges metrics whose arrays have a leading axis of microbatches."""
  first = jax.tree.map(lambda x: x[0], metrics)
  rest = jax.tree.map(lambda x: x[1:], metrics)
  merged, _ = jax.lax.scan(lambda a, b: (_merge(a, b), None), first, rest)
  return merged


def _merge(a: MetricsMap, b: MetricsMap) -> MetricsMap:
  return {name: metric.merge(b[name]) for name, metric in a.items()}


@jax.jit
def merge_metrics(a: MetricsMap, b: MetricsMap) -> MetricsMap:
  """Returns the metrics of two steps merged, on the device."""
  return _merge(a, b)


def apply_grads(
    train_state: train_state_lib.TrainState,
    grad_accum: PyTree,
    metrics: MetricsMap,
    learning_rate: jax.Array,
    weight_metrics_computer: weight_stats.WeightMetricsComputer | None,
    other_state_variables: Mapping[str, Any] | None = None,
    *,
    update_limit: jax.Array | None = None,
) -> tuple[train_state_lib.TrainState, MetricsMap]:
  """Returns the state after one update, and the step's metrics.

  Adds to the metrics `learning_rate`, `learning_rate/current`,
  `weight_gradient_norm` (before any clipping), `weight_norm` (of the parameters
  the gradient was taken at) and `vital_signs`.

  Args:
    train_state: State before the update.
    grad_accum: Gradients.
    metrics: Metrics of the model.
    learning_rate: Learning rate of this update.
    weight_metrics_computer: Adds statistics of each parameter; None: none.
    other_state_variables: More arguments of `train_state.apply_gradient`.
    update_limit: Largest norm of the gradient at which the update is made (see
      `update_guard`); None: it is made in any case.
  """
  new_train_state = train_state.apply_gradient(
      grad_accum,
      learning_rate=learning_rate,
      **(other_state_variables or {}),
  )
  skipped = {}
  if update_limit is not None:
    new_train_state, skipped = update_guard.select(
        new_train_state, train_state, grad_accum, update_limit
    )
  rate = jnp.asarray([learning_rate])
  per_step = metrics_lib.AveragePerStep.from_model_output
  metrics = dict(metrics) | skipped | {
      'learning_rate': clu_metrics.Average.from_model_output(rate),
      'learning_rate/current': clu_metrics.LastValue.from_model_output(rate),
      'weight_gradient_norm': per_step(optimizers_base.global_norm(grad_accum)),
      'weight_norm': per_step(optimizers_base.global_norm(train_state.params)),
  }
  metrics |= vital_signs.of_update(grad_accum, train_state, new_train_state)
  if weight_metrics_computer is not None:
    metrics |= weight_metrics_computer.compute_metrics(
        grad_accum, train_state, new_train_state
    )
  return new_train_state, metrics


def train_with_lr(  # noqa: PLR0913 -- T5X's signature
    train_state: train_state_lib.TrainState,
    batch: Batch,
    learning_rate: jax.Array,
    dropout_rng: jax.Array,
    model: models_base.BaseModel,
    num_microbatches: int | None,
    weight_metrics_computer: weight_stats.WeightMetricsComputer | None = None,
    data_partition_spec: PartitionSpec = _BATCH_SPEC,
    *,
    microbatch_semantics: str = 't5x',
    update_limit: jax.Array | None = None,
) -> tuple[train_state_lib.TrainState, MetricsMap]:
  """Returns the state after training on one batch, and the step's metrics.

  Args:
    train_state: State before the update.
    batch: Features, [batch, ...].
    learning_rate: Learning rate of this update.
    dropout_rng: Key of this step's dropout.
    model: The model.
    num_microbatches: Number of parts; None or 1 takes the batch whole.
    weight_metrics_computer: Adds statistics of each parameter; None: none.
    data_partition_spec: Sharding of a batch's rows.
    microbatch_semantics: See `accumulate_grads_microbatched`.
    update_limit: See `apply_grads`.
  """
  grads, metrics, mutables = accumulate_grads_microbatched(
      model,
      train_state,
      batch,
      dropout_rng,
      num_microbatches,
      data_partition_spec,
      microbatch_semantics=microbatch_semantics,
  )
  return apply_grads(
      train_state,
      grads,
      metrics,
      learning_rate,
      weight_metrics_computer,
      other_state_variables={'flax_mutables': mutables} if mutables else None,
      update_limit=update_limit,
  )


def eval_step(
    model: models_base.BaseModel,
    train_state: train_state_lib.TrainState,
    batch: Batch,
) -> MetricsMap:
  """Returns the metrics of a batch, without dropout."""
  arguments = (train_state.params, batch)
  if train_state.flax_mutables:
    arguments += (train_state.flax_mutables,)
  _, metrics = model.eval_fn(*arguments)
  return {
      name: metric
      for name, metric in metrics.items()
      if not name.startswith(base_metrics.OF_TRAINING)
  }
