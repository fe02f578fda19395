# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a run says of its data when it opens them."""

import dataclasses
import logging

import pytest

from t5wild import data
from t5wild import training_data
from t5wild import training_plan
from t5wild.checkpoints import configs
from t5wild.data import synthetic
from t5wild.partitioning import partitioner
from tests.data import caches
from tests.end_to_end import copy_task
from tests.trainer import conftest as small_runs


def _plan(**fields):
  nothing = dict.fromkeys(
      field.name for field in dataclasses.fields(training_plan.TrainingPlan)
  )
  return training_plan.TrainingPlan(**{
      **nothing,
      'use_orbax': True,
      'model_dir': 'run',
      'model': small_runs.make_model(config_changes=small_runs.SMALL),
      'train_dataset_cfg': synthetic.SyntheticConfig(
          batch_size=8,
          task_feature_lengths={'inputs': 8, 'targets': 8},
          vocab_size=384,
      ),
      'checkpoint_cfg': configs.CheckpointConfig(),
      'partitioner': partitioner.PjitPartitioner(num_partitions=1),
      **fields,
  })


def _open(caplog, plan):
  with caplog.at_level(logging.INFO, logger='absl'):
    opened = training_data.open_training_data(plan)
    opened.tell_promise()
  warnings = [
      record.getMessage()
      for record in caplog.records
      if record.levelno == logging.WARNING
  ]
  return opened, warnings


def _decoded(metric_fns, **fields):
  return data.DatasetConfig(**{
      'mixture_or_task_name': copy_task.make_task('x', metric_fns=metric_fns),
      'task_feature_lengths': {'inputs': 32, 'targets': 32},
      'split': 'validation',
      'batch_size': 8,
      'shuffle': False,
      'seed': 42,
      **fields,
  })


def test_a_task_without_metrics_is_left_out_of_decoding_and_told_once(caplog):
  opened, warnings = _open(caplog, _plan(infer_eval_dataset_cfg=_decoded([])))
  assert opened.inference_evaluator is None
  assert not opened.is_evaluated
  (warning,) = warnings
  assert 'goes on without evaluation by decoding' in warning
  assert 'x: no metric_fns' in warning
  assert 'infer_eval_dataset_cfg' in warning


def test_a_split_that_no_task_has_is_refused():
  plan = _plan(infer_eval_dataset_cfg=_decoded([], split='tset'))
  with pytest.raises(ValueError, match="no split 'tset'"):
    training_data.open_training_data(plan)


def test_a_task_with_metrics_is_decoded(caplog):
  cfg = _decoded([copy_task.character_accuracy])
  opened, _ = _open(caplog, _plan(infer_eval_dataset_cfg=cfg))
  assert [task.name for task in opened.inference_evaluator.eval_tasks] == ['x']
  assert 'goes on without' not in caplog.text


@pytest.mark.parametrize('is_saved', [True, False])
def test_a_run_promises_the_same_batches_only_where_it_saves_its_position(
    is_saved, caplog
):
  save = configs.SaveCheckpointConfig(save_dataset=is_saved)
  opened, warnings = _open(
      caplog, _plan(checkpoint_cfg=configs.CheckpointConfig(save=save))
  )
  assert opened.position_is_exact is is_saved
  assert ('gets the same' in caplog.text) is is_saved
  assert len(warnings) == (not is_saved)
  assert ('save_dataset is False' in ''.join(warnings)) is not is_saved


class _LiveReader:
  """Takes the seed that was saved, as those of live tasks do."""

  is_exact = True
  seed = 7

  @property
  def promise(self):
    return f'seed {self.seed}'

  def state_dict(self):
    return {'seed': self.seed}

  def load_state_dict(self, state):
    self.seed = state['seed']


@pytest.mark.parametrize(
    ('given', 'saved', 'is_told'),
    [(7, 0, True), (7, 7, False), (None, 0, False)],
)
def test_a_seed_of_the_recipe_that_is_not_used_is_told(
    given, saved, is_told, caplog
):
  opened = dataclasses.replace(
      _open(caplog, _plan())[0], reader=_LiveReader(), seed=given
  )
  caplog.clear()
  with caplog.at_level(logging.INFO, logger='absl'):
    opened.start_after(60, position={'seed': saved})
    opened.tell_promise()
  assert ('seed 7 of the recipe is not used' in caplog.text) is is_told
  assert caplog.messages[-1] == f'Training data: seed {saved}'


def test_rates_and_lists_of_a_cache_begin_by_the_steps_of_the_run(
    caplog, tmp_path
):
  caches.write(tmp_path, caches.texts(30))
  cfg = caches.config(tmp_path, batch_size=8)
  opened, _ = _open(caplog, _plan(train_dataset_cfg=cfg))
  # As where a run begins at the checkpoint of another, and its own data.
  opened.start_after(1000, position=None)
  next(opened.reader)
  position = opened.reader.state_dict()
  assert (position['step'], position['batches']) == (1001, 1)
  again, _ = _open(caplog, _plan(train_dataset_cfg=cfg))
  again.start_after(1001, position=position)
  assert again.reader.state_dict() == position
