# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Compiles a training step of T5 1.1 XXL without allocating anything."""

import time

import jax
import jax.numpy as jnp

from benchmarks import workload as workload_lib
from t5wild.partitioning import partitioner as partitioner_lib

_XXL = workload_lib.Workload(
    emb_dim=4096, mlp_dim=10240, num_layers=24, num_heads=64, head_dim=64,
    vocab_size=32128, batch_size=512, inputs=512, targets=512,
    remat_policy='minimal', scan_layers=True,
)
_SMALL = workload_lib.Workload(
    emb_dim=256, mlp_dim=256, num_layers=2, num_heads=4, head_dim=64,
    vocab_size=512, batch_size=256, inputs=16, targets=16, scan_layers=True,
)


def _features(workload: workload_lib.Workload):
  lengths = {
      'encoder_input_tokens': workload.inputs,
      'decoder_input_tokens': workload.targets,
      'decoder_target_tokens': workload.targets,
      'decoder_loss_weights': workload.targets,
  }
  return {
      name: jax.ShapeDtypeStruct((workload.batch_size, length), jnp.int32)
      for name, length in lengths.items()
  }


def compile_step(*, small: bool) -> dict[str, float]:
  """Lowers and compiles; returns seconds of each part and bytes per device."""
  workload = _SMALL if small else _XXL
  start = time.perf_counter()
  batch = _features(workload)
  model, states = workload_lib.describe(
      workload,
      batch,
      partitioner_lib.PjitPartitioner(
          num_partitions=1, parameter_partitioning_dims=2
      ),
  )
  trainer = workload_lib.make_trainer_of(
      model, states, states.global_train_state_shape
  )
  described = time.perf_counter()
  lowered = trainer._partitioned_train_step.lower(trainer.train_state, batch)
  traced = time.perf_counter()
  memory = lowered.compile().memory_analysis()
  return {
      'describe_seconds': described - start,
      'lower_seconds': traced - described,
      'xla_seconds': time.perf_counter() - traced,
      'argument_bytes_per_device': memory.argument_size_in_bytes,
      'temporary_bytes_per_device': memory.temp_size_in_bytes,
  }
