# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A run that was trained from a cache is evaluated on a task that is named."""

import types

import pytest

from t5wild.data import cached_datasets
from t5wild.data import datasets
from t5wild.data import live_comparison
from t5wild.evaluating import of_run

_CACHED = cached_datasets.CachedDatasetConfig(
    cache_dir='somewhere',
    task_feature_lengths={'inputs': 8, 'targets': 4},
    batch_size=16,
    split='validation',
)


def _config_for(**changes):
  request = of_run.RunRequest(run='my_run', **changes)
  bound = types.SimpleNamespace(
      get={'train_eval_dataset_cfg': _CACHED}.get
  )
  return of_run._dataset_config(request, bound)


def test_a_task_named_is_read_in_the_lengths_of_the_cache():
  cfg = _config_for(task='a_task')
  assert cfg.mixture_or_task_name == 'a_task'
  assert cfg.task_feature_lengths == {'inputs': 8, 'targets': 4}
  assert (cfg.split, cfg.batch_size) == ('validation', 16)
  assert _config_for(task='a_task', split='test').split == 'test'


def test_without_a_task_that_of_the_recipe_is_read(monkeypatch):
  live = datasets.DatasetConfig(
      mixture_or_task_name='of_the_recipe',
      task_feature_lengths={'inputs': 512, 'targets': 512},
      split='train',
      batch_size=1,
      shuffle=True,
      seed=3,
      module='my_tasks',
  )
  monkeypatch.setattr(live_comparison, 'recipe_data', {'train_eval': live}.get)
  cfg = _config_for()
  assert (cfg.mixture_or_task_name, cfg.module) == ('of_the_recipe', 'my_tasks')
  assert cfg.task_feature_lengths == {'inputs': 8, 'targets': 4}
  assert (cfg.split, cfg.shuffle) == ('validation', False)


def test_without_any_task_it_is_refused_with_the_way_to_name_one():
  with pytest.raises(ValueError, match='Name one by --task'):
    _config_for()
