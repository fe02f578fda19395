# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a run refuses or tells while it is put together."""

import functools
import logging

import jax
import pytest

from t5wild import run_dir as run_dir_lib
from t5wild import train
from t5wild import training_claim
from t5wild import training_plan
from t5wild.checkpoints import configs
from t5wild.data import synthetic
from t5wild.partitioning import partitioner
from t5wild.partitioning import rules
from t5wild.trainer import initializer
from t5wild.trainer import trainer
from tests.trainer import conftest as small_runs


def _train(folder, trainer_cls):
  return train.train(
      model=small_runs.make_model(config_changes=small_runs.SMALL),
      train_dataset_cfg=synthetic.SyntheticConfig(
          batch_size=8,
          task_feature_lengths={'inputs': 8, 'targets': 8},
          vocab_size=384,
      ),
      train_eval_dataset_cfg=None,
      infer_eval_dataset_cfg=None,
      checkpoint_cfg=configs.CheckpointConfig(
          save=configs.SaveCheckpointConfig()
      ),
      partitioner=partitioner.PjitPartitioner(
          num_partitions=8,
          logical_axis_rules=rules.standard_logical_axis_rules(),
      ),
      trainer_cls=trainer_cls,
      model_dir=str(folder),
      total_steps=1,
      eval_steps=None,
      eval_period=None,
      random_seed=0,
      summarize_config_fn=None,
  )


def _without_a_schedule(**unused):
  raise ValueError("unknown learning rate factor 'constnat'")


@pytest.mark.parametrize(
    ('trainer_cls', 'message'),
    [
        (
            functools.partial(
                trainer.Trainer, learning_rate_fn=None, num_microbatches=3
            ),
            'batch size 8 is not divisible by.*3 x 1.*BATCH_SIZE to 9',
        ),
        (_without_a_schedule, 'constnat'),
    ],
)
def test_what_the_trainer_refuses_is_refused_before_anything_is_done(
    trainer_cls, message, tmp_path, monkeypatch
):
  compiled = []
  monkeypatch.setattr(
      partitioner.PjitPartitioner,
      'compile',
      lambda *args: compiled.append(args),
  )
  folder = tmp_path / 'run'
  with pytest.raises(training_plan.BadPlanError, match=message):
    _train(folder, trainer_cls)
  assert not compiled
  assert not folder.exists()


def test_a_run_is_not_begun_where_another_is_under_way(tmp_path, monkeypatch):
  monkeypatch.setattr(training_claim, '_WAIT_SECONDS', 0.0)
  make = functools.partial(
      trainer.Trainer, learning_rate_fn=None, num_microbatches=None
  )
  with (
      training_claim.held(run_dir_lib.RunDir(str(tmp_path))),
      pytest.raises(training_plan.BadPlanError, match='one training'),
  ):
    _train(tmp_path, make)
  assert [path.name for path in tmp_path.iterdir()] == ['training.lock']


@pytest.mark.parametrize(
    ('seed', 'use_hardware_rng', 'mends'),
    [
        (0, False, []),
        (0, True, ['use_hardware_rng is True: set it to False']),
        (None, False, ['RANDOM_SEED is None: set it to a number']),
        (
            None,
            True,
            [
                'RANDOM_SEED is None: set it to a number',
                'use_hardware_rng is True: set it to False',
            ],
        ),
    ],
)
def test_a_run_says_why_dropout_depends_on_the_mesh_and_only_that(
    seed, use_hardware_rng, mends, monkeypatch, caplog
):
  updates = {}
  monkeypatch.setattr(jax.config, 'update', updates.__setitem__)
  with caplog.at_level(logging.WARNING, logger='absl'):
    initializer.make_rngs(seed, use_hardware_rng=use_hardware_rng)
  said = ' '.join(record.getMessage() for record in caplog.records)
  assert bool(said) is bool(mends)
  assert said.count('set it to') == len(mends)
  assert all(mend in said for mend in mends)
  assert bool(updates) is bool(mends)
