# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""W1: the model, batches and trainer that every figure is measured on."""

from collections.abc import Mapping
import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks import reference
from t5wild.data import synthetic
from t5wild.data import vocabularies
from t5wild.models import encoder_decoder
from t5wild.networks import config as network_config
from t5wild.networks import transformer
from t5wild.optimizers import adafactor
from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.planner import formulas
from t5wild.trainer import compile_ahead
from t5wild.trainer import initializer
from t5wild.trainer import trainer as trainer_lib

LEARNING_RATE = 0.01
Z_LOSS = 1e-4


@dataclasses.dataclass(frozen=True, kw_only=True)
class Workload:
  """Sizes of a measurement; the defaults are W1."""

  emb_dim: int = 256
  mlp_dim: int = 1024
  num_layers: int = 4
  num_heads: int = 4
  head_dim: int = 64
  vocab_size: int = 384
  batch_size: int = 16
  inputs: int = 256
  targets: int = 128
  dropout_rate: float = 0.1
  remat_policy: str = 'none'
  scan_layers: bool = False

  @property
  def network(self) -> network_config.T5Config:
    """Configuration of the network."""
    return network_config.T5Config(
        vocab_size=self.vocab_size,
        dtype=jnp.float32,
        emb_dim=self.emb_dim,
        num_heads=self.num_heads,
        num_encoder_layers=self.num_layers,
        num_decoder_layers=self.num_layers,
        head_dim=self.head_dim,
        mlp_dim=self.mlp_dim,
        mlp_activations=('gelu', 'linear'),
        dropout_rate=self.dropout_rate,
        remat_policy=self.remat_policy,
        scan_layers=self.scan_layers,
    )

  @property
  def reference_sizes(self) -> reference.Sizes:
    """The same for the reference."""
    return reference.Sizes(
        num_encoder_layers=self.num_layers,
        num_decoder_layers=self.num_layers,
        num_heads=self.num_heads,
        dropout_rate=self.dropout_rate,
        z_loss=Z_LOSS,
    )

  @property
  def data(self) -> synthetic.SyntheticConfig:
    """Configuration of the batches."""
    return synthetic.SyntheticConfig(
        batch_size=self.batch_size,
        task_feature_lengths={'inputs': self.inputs, 'targets': self.targets},
        vocab_size=self.vocab_size,
    )

  @property
  def flops_per_step(self) -> float:
    """Model operations of one training step."""
    return formulas.train_step_flops(
        formulas.model_shape_of(self.network),
        batch=self.batch_size,
        input_length=self.inputs,
        target_length=self.targets,
    )


W1 = Workload()
SMALL = Workload(
    emb_dim=16, mlp_dim=32, num_layers=2, num_heads=2, head_dim=8,
    vocab_size=48, batch_size=4, inputs=20, targets=12,
)


def of(options: Any) -> Workload:
  """W1, or a tiny one with `--small`."""
  return SMALL if options.small else W1


def make_batch(workload: Workload, *, index: int = 0) -> dict[str, jax.Array]:
  """A batch on the device."""
  return jax.device_put(synthetic.make_batch(workload.data, index=index))


def make_model(
    workload: Workload, **model_arguments: Any
) -> encoder_decoder.EncoderDecoderModel:
  """t5wild's model with Adafactor."""
  vocabulary = vocabularies.ByteVocabulary(extra_ids=125)
  return encoder_decoder.EncoderDecoderModel(
      module=transformer.Transformer(workload.network),
      input_vocabulary=vocabulary,
      output_vocabulary=vocabulary,
      optimizer_def=adafactor.Adafactor(
          decay_rate=0.8,
          step_offset=0,
          logical_factor_rules=adafactor.standard_logical_factor_rules(),
      ),
      z_loss=Z_LOSS,
      **model_arguments,
  )


def make_trainer(
    workload: Workload, *, compiled: bool = True
) -> trainer_lib.Trainer:
  """t5wild's trainer, its step compiled while its state is made."""
  batch = make_batch(workload)
  model, states = describe(
      workload, batch, partitioner_lib.PjitPartitioner(num_partitions=1)
  )
  make = functools.partial(make_trainer_of, model, states)
  ahead = compile_ahead.CompileAhead(
      make, state_shape=states.global_train_state_shape, batch=batch
  )
  if compiled:
    ahead.start()
  trainer = make(states.from_scratch(jax.random.PRNGKey(0)))
  if compiled:
    ahead.finish(trainer)
  return trainer


def describe(
    workload: Workload,
    features: Mapping[str, jax.Array | jax.ShapeDtypeStruct],
    partitioner: partitioner_lib.PjitPartitioner,
) -> tuple[
    encoder_decoder.EncoderDecoderModel, initializer.TrainStateInitializer
]:
  """The model and the shapes of its state; nothing is compiled.

  Args:
    workload: sizes.
    features: a batch, or the shapes and types of one.
    partitioner: how the state lies on the devices.
  """
  model = make_model(workload)
  states = initializer.TrainStateInitializer(
      optimizer_def=model.optimizer_def,
      init_fn=model.get_initial_variables,
      input_shapes={name: x.shape for name, x in features.items()},
      input_types={name: x.dtype for name, x in features.items()},
      partitioner=partitioner,
  )
  return model, states


def make_trainer_of(
    model: encoder_decoder.EncoderDecoderModel,
    states: initializer.TrainStateInitializer,
    train_state: Any,
) -> trainer_lib.Trainer:
  """t5wild's trainer, nothing compiled; the state may be its shapes."""
  return trainer_lib.Trainer(
      model=model,
      train_state=train_state,
      partitioner=states.partitioner,
      eval_names=(),
      summary_dir=None,
      train_state_axes=states.train_state_axes,
      rng=jax.random.PRNGKey(1),
      learning_rate_fn=lambda step: jnp.float32(LEARNING_RATE),
      num_microbatches=None,
  )


def run_step(trainer: trainer_lib.Trainer, batch: dict[str, jax.Array]) -> None:
  """One step of t5wild, waited for."""
  metrics = trainer.train_step(batch)
  jax.block_until_ready((trainer.train_state.params, metrics))


def temporary_bytes(
    trainer: trainer_lib.Trainer, batch: dict[str, jax.Array]
) -> int:
  """Memory of the compiled step beside its arguments and results."""
  step = trainer._partitioned_train_step
  compiled = step.lower(trainer.train_state, batch).compile()
  return compiled.memory_analysis().temp_size_in_bytes
