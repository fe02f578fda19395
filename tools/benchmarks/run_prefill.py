# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The prefill of a decoder's cache against its forward pass in training."""

import dataclasses
import statistics

import jax
import jax.numpy as jnp

from benchmarks import measure
from benchmarks import workload as workload_lib
from t5wild.data import vocabularies
from t5wild.models import decoder_only
from t5wild.networks import config as network_config
from t5wild.networks import decoder_only as network
from t5wild.planner import formulas

GOAL = 0.9  # of the forward pass's operations a second


def run(options) -> None:
  """Prints operations a second of both, and the ratio."""
  workload = workload_lib.of(options)
  config = _config(workload)
  shape = (workload.batch_size, workload.inputs)
  model = decoder_only.DecoderOnlyModel(
      module=network.DecoderWrapper(config),
      vocabulary=vocabularies.ByteVocabulary(extra_ids=125),
      optimizer_def=None,
  )
  tokens = jax.random.randint(
      jax.random.PRNGKey(0), shape, 2, config.vocab_size
  )
  batch = {
      'decoder_input_tokens': tokens.at[:, 0].set(0),
      'decoder_target_tokens': jnp.roll(tokens, -1, axis=1),
  }
  params = jax.jit(
      lambda key: model.get_initial_variables(
          key, {name: x.shape for name, x in batch.items()}
      )['params']
  )(jax.random.PRNGKey(0))
  forward = jax.jit(model._compute_logits)
  prefill = jax.jit(model._compute_kv_cache)
  prompts, mask = batch['decoder_input_tokens'], jnp.ones(shape, jnp.int32)
  times = measure.interleave(
      {
          'forward': lambda: jax.block_until_ready(forward(params, batch)),
          'prefill': lambda: jax.block_until_ready(
              prefill(params, prompts, mask)
          ),
      },
      runs=options.runs,
  )
  rates = {}
  for name, flops in _flops(config, *shape).items():
    rates[name] = [flops / seconds for seconds in times[name].cpu]
    measure.emit_times(f'prefill_{name}', times[name])
    value = statistics.median(rates[name])
    measure.emit(f'prefill_{name}', value, 'flops_per_second')
  value = measure.ratio(rates['prefill'], rates['forward'])
  measure.emit(
      'prefill_to_forward', value, 'ratio', goal=GOAL, met=value >= GOAL
  )


def _config(workload: workload_lib.Workload):
  return network_config.TransformerConfig(
      vocab_size=workload.vocab_size,
      dtype=jnp.float32,
      emb_dim=workload.emb_dim,
      num_heads=workload.num_heads,
      num_layers=2 * workload.num_layers,
      head_dim=workload.head_dim,
      mlp_dim=workload.mlp_dim,
      mlp_activations=('gelu', 'linear'),
      dropout_rate=0.0,
  )


def _flops(config, batch: int, length: int) -> dict[str, float]:
  """Operations of each; a prefill ends at the keys of the last layer."""
  shape = formulas.model_shape_of(config)
  sizes = {'batch': batch, 'target_length': length}
  before = dataclasses.replace(
      shape, num_decoder_layers=shape.num_decoder_layers - 1
  )
  logits = 2 * batch * length * config.emb_dim * config.vocab_size
  last = 4 * batch * length * config.emb_dim * shape.joined_shared_kv
  return {
      'forward': formulas.forward_flops(shape, **sizes),
      'prefill': formulas.forward_flops(before, **sizes) - logits + last,
  }
