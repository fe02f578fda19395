# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Code as T5X's users write it; it can be imported with T5X's names only."""

from flax import linen as nn
from flax.linen import partitioning as nn_partitioning
import jax
import jax.numpy as jnp
import seqio
from t5x import adafactor
from t5x import checkpoints
from t5x import decoding
from t5x import losses
from t5x import metrics as metrics_lib
from t5x import models
from t5x import optimizers
from t5x import partitioning
from t5x import train_state as train_state_lib
from t5x import trainer as trainer_lib
from t5x import utils
from t5x.examples.t5 import layers
from t5x.examples.t5 import network

SHAPES = {
    'encoder_input_tokens': (8, 4), 'decoder_input_tokens': (8, 4),
    'decoder_target_tokens': (8, 4), 'decoder_loss_weights': (8, 4),
}  # fmt: skip


class FocalModel(models.EncoderDecoderModel):
  """Another loss, with a metric of its own."""

  FEATURE_CONVERTER_CLS = seqio.EncDecFeatureConverter

  def __init__(self, *args, gamma=0.5, **kwargs):
    super().__init__(*args, **kwargs)
    self._gamma = gamma

  def loss_fn(self, params, batch, dropout_rng):
    logits = self._compute_logits(params, batch, dropout_rng)
    targets = batch['decoder_target_tokens']
    weights = batch['decoder_loss_weights']
    one_hot = jax.nn.one_hot(targets, logits.shape[-1])
    per_token, z_loss = losses.cross_entropy_with_logits(
        logits, one_hot, z_loss=self._z_loss
    )
    loss = jnp.sum(per_token * weights * self._gamma)
    metrics = self._compute_metrics(
        logits=logits,
        targets=targets,
        mask=weights,
        loss=loss,
        z_loss=jnp.sum(z_loss),
    )
    metrics['my/focal'] = metrics_lib.AveragePerStep.from_model_output(loss)
    return loss, metrics


class DoubledLogits(models.EncoderDecoderModel):
  """Another computation of logits."""

  def _compute_logits(
      self, params, batch, dropout_rng=None, mutable=False, other_variables=None
  ):
    return 2.0 * super()._compute_logits(
        params, batch, dropout_rng, mutable, other_variables
    )


class Regression(models.BaseModel):
  """A model from nothing, with boxed or unboxed parameters."""

  FEATURE_CONVERTER_CLS = None

  def __init__(self, module, optimizer_def):
    super().__init__(optimizer_def)
    self.module = module

  def loss_fn(self, params, batch, dropout_rng):
    del dropout_rng
    out = self.module.apply({'params': params}, batch['x'])
    loss = jnp.mean(jnp.square(out[..., 0] - batch['y']))
    return loss, {'loss': metrics_lib.AveragePerStep.from_model_output(loss)}

  def eval_fn(self, params, batch):
    return self.loss_fn(params, batch, None)

  def predict_batch_with_aux(self, params, batch, rng=None):
    return self.module.apply({'params': params}, batch['x']), {}

  def score_batch(self, params, batch, return_intermediates=False):
    return self.module.apply({'params': params}, batch['x'])[..., 0]

  def get_initial_variables(self, rng, input_shapes, input_types=None):
    return self.module.init(rng, jnp.zeros(input_shapes['x']))


class WithAxes(nn.Module):
  """A network whose parameters name their axes beside them."""

  @nn.compact
  def __call__(self, x):
    x = layers.LayerNorm(name='norm')(x)
    kernel = nn_partitioning.param_with_axes(
        'kernel', nn.initializers.ones, (x.shape[-1], 2), axes=('embed', 'mlp')
    )
    return x @ kernel


class WithBoxes(nn.Module):
  """The same, its axes being in boxes around the parameters."""

  @nn.compact
  def __call__(self, x):
    x = layers.LayerNorm(name='norm')(x)
    init = nn.with_logical_partitioning(nn.initializers.ones, ('embed', 'mlp'))
    return x @ self.param('kernel', init, (x.shape[-1], 2))


class HalvedAdafactor(adafactor.Adafactor):
  """Takes half of every gradient."""

  def apply_param_gradient(self, step, hyper_params, param, state, grad, path):
    return super().apply_param_gradient(
        step, hyper_params, param, state, 0.5 * grad, path
    )


class CountingTrainer(trainer_lib.Trainer):
  """Counts the arguments it was made with."""

  def __init__(self, *args, note='', **kwargs):
    super().__init__(*args, **kwargs)
    self.note = note


class PinnedRestore(utils.RestoreCheckpointConfig):
  """Restores one step."""

  def __post_init__(self):
    super().__post_init__()
    self.is_pinned = True


def first_token_zero(logits, state: decoding.DecodingState):
  """A callback on logits."""
  del state
  return logits.at[:, 0].set(decoding.NEG_INF)


def make_model(cls=models.EncoderDecoderModel, **arguments):
  """A small model with bytes for words."""
  vocabulary = seqio.ByteVocabulary()
  config = network.T5Config(
      vocab_size=384, emb_dim=8, num_heads=2, num_encoder_layers=1,
      num_decoder_layers=1, head_dim=4, mlp_dim=8, dropout_rate=0.0,
  )  # fmt: skip
  return cls(
      module=network.Transformer(config),
      input_vocabulary=vocabulary,
      output_vocabulary=vocabulary,
      optimizer_def=adafactor.Adafactor(
          decay_rate=0.8,
          logical_factor_rules=adafactor.standard_logical_factor_rules(),
      ),
      **arguments,
  )


def make_partitioner():
  """One model-parallel partition, T5X's rules."""
  return partitioning.PjitPartitioner(
      num_partitions=1,
      logical_axis_rules=partitioning.standard_logical_axis_rules(),
  )


def make_state(model, partitioner, shapes):
  """A first train state, as T5X's binaries make it."""
  initializer = utils.TrainStateInitializer(
      optimizer_def=model.optimizer_def,
      init_fn=model.get_initial_variables,
      input_shapes=shapes,
      partitioner=partitioner,
  )
  return initializer, initializer.from_scratch(jax.random.PRNGKey(0))


def train(model, batches, *, shapes, trainer_cls=trainer_lib.Trainer, **more):
  """Trains on `batches` and returns the trainer and its last metrics."""
  partitioner = make_partitioner()
  initializer, state = make_state(model, partitioner, shapes)
  assert isinstance(state, train_state_lib.FlaxOptimTrainState)
  trainer = trainer_cls(
      model=model,
      train_state=state,
      partitioner=partitioner,
      eval_names=[],
      summary_dir=None,
      train_state_axes=initializer.train_state_axes,
      rng=jax.random.PRNGKey(1),
      learning_rate_fn=utils.create_learning_rate_scheduler(
          factors='constant', base_learning_rate=0.1
      ),
      num_microbatches=None,
      **more,
  )
  metrics = trainer.train(iter(batches), len(batches))
  return trainer, metrics.result()


def momentum():
  """An optimizer of optax's by T5X's wrapper."""
  return optimizers.sgd(0.1, momentum=0.9)


CHECKPOINT_CONFIG = utils.CheckpointConfig(
    restore=utils.RestoreCheckpointConfig(path=[], mode='specific'),
    save=utils.SaveCheckpointConfig(
        period=10, checkpointer_cls=checkpoints.Checkpointer
    ),
)
