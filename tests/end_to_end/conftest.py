# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A tiny model on real text, shared by the end-to-end laws."""

import dataclasses
import functools
import itertools
import sysconfig
from typing import Any

import jax
import numpy as np
import pytest

from t5wild import data
from t5wild import models
from t5wild import optimizers
from t5wild import partitioning
from t5wild.data import vocabularies
from t5wild.networks import transformer as network
from t5wild.optimizers import adafactor
from t5wild.trainer import initializer
from t5wild.trainer import trainer as trainer_lib

BATCH_SIZE = 16
NUM_BATCHES = 40


def make_model(**config) -> models.EncoderDecoderModel:
  vocabulary = vocabularies.ByteVocabulary(125)
  config = {
      'vocab_size': 384, 'dtype': 'float32', 'emb_dim': 32, 'num_heads': 4,
      'head_dim': 8, 'mlp_dim': 64, 'num_encoder_layers': 2,
      'num_decoder_layers': 2, 'mlp_activations': ('gelu', 'linear'),
      'dropout_rate': 0.1, **config,
  }
  return models.EncoderDecoderModel(
      module=network.Transformer(network.T5Config(**config)),
      input_vocabulary=vocabulary,
      output_vocabulary=vocabulary,
      optimizer_def=adafactor.Adafactor(
          decay_rate=0.8,
          logical_factor_rules=adafactor.standard_logical_factor_rules(),
      ),
      z_loss=1e-4,
      loss_normalizing_factor='NUM_REAL_TARGET_TOKENS',
  )


@pytest.fixture(scope='session')
def packed_batches() -> list[dict[str, np.ndarray]]:
  """Packed global batches of corrupted spans of real text."""
  from t5wild.tasks import local_text

  cfg = data.DatasetConfig(
      mixture_or_task_name=local_text.text_task(
          sysconfig.get_paths()['stdlib'] + '/json', name='json_sources'
      ),
      task_feature_lengths={'inputs': 64, 'targets': 32},
      split='train',
      batch_size=BATCH_SIZE,
      shuffle=True,
      seed=0,
      pack=True,
  )
  reader = data.make_train_reader(
      cfg,
      data_layout=partitioning.DataLayout(
          batch_size=BATCH_SIZE,
          shard_id=0,
          num_shards=1,
          is_first_host_in_replica_set=True,
      ),
      feature_converter_cls=make_model().FEATURE_CONVERTER_CLS,
  )
  return list(itertools.islice(reader, NUM_BATCHES))


@dataclasses.dataclass
class Run:
  """A trainer on a mesh, fed with given batches."""

  partitioner: Any
  trainer: Any

  def losses(self, batches) -> np.ndarray:
    values = []
    for batch in batches:
      metrics = self.trainer.train_step(self.partitioner.global_batch(batch))
      values.append(metrics['loss_per_nonpadding_target_token'])
    return np.array([float(jax.device_get(v).compute()) for v in values])


@pytest.fixture(scope='session')
def start_run(packed_batches):
  """Makes a `Run` from partitioner arguments and trainer arguments."""
  return functools.partial(_start_run, packed_batches[0])


def _start_run(
    batch,
    *,
    num_microbatches=None,
    semantics='global',
    model=None,
    is_divided=True,
    **mesh,
) -> Run:
  dims = {
      name: mesh.pop(name)
      for name in ('activation_partitioning_dims',
                   'parameter_partitioning_dims')
      if name in mesh
  }
  rules = partitioning.standard_logical_axis_rules(**dims)
  if not is_divided:
    rules = [(logical, None) for logical, _ in rules]
  partitioner = partitioning.PjitPartitioner(logical_axis_rules=rules, **mesh)
  model = model or make_model()
  states = initializer.TrainStateInitializer(
      optimizer_def=model.optimizer_def,
      init_fn=model.get_initial_variables,
      input_shapes={name: x.shape for name, x in batch.items()},
      input_types={name: x.dtype for name, x in batch.items()},
      partitioner=partitioner,
  )
  init_rng, trainer_rng = jax.random.split(jax.random.PRNGKey(0))
  trainer = trainer_lib.Trainer(
      model=model,
      train_state=states.from_scratch(init_rng),
      partitioner=partitioner,
      eval_names=(),
      summary_dir=None,
      train_state_axes=states.train_state_axes,
      rng=trainer_rng,
      learning_rate_fn=optimizers.create_learning_rate_scheduler(
          factors='constant * linear_warmup', base_learning_rate=0.01,
          warmup_steps=10,
      ),
      num_microbatches=num_microbatches,
      microbatch_semantics=semantics,
  )
  return Run(partitioner=partitioner, trainer=trainer)
