# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A model that compiles at once, for tests of what is around a model."""

from flax.linen import partitioning as flax_partitioning
import jax
import jax.numpy as jnp

from t5wild import metrics as metrics_lib
from t5wild import optimizers


class Mean:
  """A model of one matrix, quick to compile."""

  def __init__(self):
    self.optimizer_def = optimizers.sgd()

  def get_initial_variables(self, rng, input_shapes):
    del rng, input_shapes
    return {
        'params': {'w': jnp.ones((4, 2))},
        'params_axes': {
            'w_axes': flax_partitioning.AxisMetadata(names=('embed', 'mlp'))
        },
    }

  def loss_fn(self, params, batch, dropout_rng):
    noise = jax.random.normal(dropout_rng, ())
    loss, metrics = self.eval_fn(params, batch)
    metrics['noise'] = metrics_lib.Sum.from_model_output(noise)
    return loss, metrics

  def eval_fn(self, params, batch):
    loss = jnp.sum(batch['x'] @ params['w'])
    return loss, {'loss': metrics_lib.Sum.from_model_output(loss)}

  def annotate_global_batch(self, batch):
    return batch


def make_batch(value=1.0, size=8):
  return {'x': jnp.full((size, 4), value)}
