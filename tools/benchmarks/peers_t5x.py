# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A training step of T5X on the same sizes and batch."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks import workload as workload_lib


def make_step(
    workload: workload_lib.Workload, batch: dict[str, jax.Array]
) -> Callable[[], Any]:
  """T5X's network, model and Adafactor, jitted with a donated state."""
  from t5x import adafactor
  from t5x import models
  from t5x import train_state as train_state_lib
  from t5x import trainer as trainer_lib
  from t5x.examples.t5 import network

  from t5wild.data import vocabularies

  ours = workload.network
  config = network.T5Config(
      vocab_size=ours.vocab_size,
      emb_dim=ours.emb_dim,
      num_heads=ours.num_heads,
      num_encoder_layers=ours.num_encoder_layers,
      num_decoder_layers=ours.num_decoder_layers,
      head_dim=ours.head_dim,
      mlp_dim=ours.mlp_dim,
      mlp_activations=ours.mlp_activations,
      dropout_rate=ours.dropout_rate,
  )
  vocabulary = vocabularies.ByteVocabulary(extra_ids=125)
  model = models.EncoderDecoderModel(
      module=network.Transformer(config),
      input_vocabulary=vocabulary,
      output_vocabulary=vocabulary,
      optimizer_def=adafactor.Adafactor(
          decay_rate=0.8,
          step_offset=0,
          logical_factor_rules=adafactor.standard_logical_factor_rules(),
      ),
      z_loss=workload_lib.Z_LOSS,
  )
  variables = model.get_initial_variables(
      jax.random.PRNGKey(0),
      {name: x.shape for name, x in batch.items()},
      {name: x.dtype for name, x in batch.items()},
  )
  state = train_state_lib.FlaxOptimTrainState.create(
      model.optimizer_def, variables
  )

  def step_fn(state, batch):
    return trainer_lib.train_with_lr(
        state,
        batch,
        learning_rate=jnp.float32(workload_lib.LEARNING_RATE),
        dropout_rng=jax.random.fold_in(jax.random.PRNGKey(1), state.step),
        model=model,
        num_microbatches=None,
    )

  compiled = jax.jit(step_fn, donate_argnums=0).lower(state, batch).compile()
  held = [state]

  def step():
    held[0], metrics = compiled(held[0], batch)
    jax.block_until_ready((held[0].params, metrics))

  return step
