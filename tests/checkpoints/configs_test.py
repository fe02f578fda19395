# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What recipes may say, T5X's way and ours."""

import dataclasses
import functools

import pytest

from t5wild import checkpoints
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs


def _make_run(directory, *saved):
  for step in saved:
    (directory / f'checkpoint_{step}' / 'state').mkdir(parents=True)
    marker = directory / f'checkpoint_{step}' / steps.COMMIT_MARKER
    marker.write_text('done')
  return directory


def test_t5x_fields_exist_in_t5x_order():
  fields = [f.name for f in dataclasses.fields(configs.SaveCheckpointConfig)]
  assert fields[:9] == [
      'dtype', 'period', 'checkpoint_steps', 'keep', 'keep_dataset_checkpoints',
      'save_dataset', 'checkpointer_cls', 'state_transformation_fns',
      'checkpoint_manager_cls',
  ]  # fmt: skip
  fields = [f.name for f in dataclasses.fields(configs.RestoreCheckpointConfig)]
  assert fields[:10] == [
      'path', 'mode', 'assignment_map', 'strict', 'fallback_to_scratch',
      'dtype', 'restore_dataset', 'checkpointer_cls',
      'state_transformation_fns', 'checkpoint_manager_cls',
  ]  # fmt: skip


@pytest.mark.parametrize(
    ('config', 'arguments', 'shown'),
    [
        (configs.SaveCheckpointConfig, {'dtype': 'float16'}, "'float16'"),
        (configs.SaveCheckpointConfig, {'period': 0}, 'period is 0'),
        (configs.SaveCheckpointConfig, {'keep': -1}, 'keep is -1'),
        (configs.SaveCheckpointConfig, {'keep_best': 1}, 'best_metric'),
        (configs.SaveCheckpointConfig, {'checkpointer_cls': dict}, 'dict'),
        (configs.SaveCheckpointConfig, {'checkpoint_manager_cls': int}, 'int'),
        (configs.RestoreCheckpointConfig, {'mode': 'newest'}, "'newest'"),
        (configs.RestoreCheckpointConfig, {'dtype': 'int8'}, "'int8'"),
        (configs.RestoreCheckpointConfig, {'assignment_map': ['x']}, "'x'"),
    ],
)
def test_bad_values_are_refused_when_the_config_is_made(
    config, arguments, shown
):
  with pytest.raises(ValueError, match='expected') as caught:
    config(**arguments)
  assert shown in str(caught.value)


def test_t5x_save_best_checkpointer_keeps_the_best_and_the_newest():
  save_best = functools.partial(
      checkpoints.SaveBestCheckpointer,
      metric_name_to_monitor='training_eval/x/accuracy',
      keep_checkpoints_without_metrics=False,
  )
  config = configs.SaveCheckpointConfig(keep=2, checkpointer_cls=save_best)
  policy = config.retention_policy()
  assert (policy.keep, policy.keep_best) == (1, 2)
  assert policy.best_metric == config.best_metric == 'training_eval/x/accuracy'


def test_plain_checkpointer_of_t5x_keeps_the_newest():
  config = configs.SaveCheckpointConfig(
      keep=2, checkpointer_cls=checkpoints.Checkpointer
  )
  assert config.retention_policy().keep == 2
  assert config.best_metric is None


def test_latest_means_the_newest_complete_checkpoint(tmp_path):
  run = _make_run(tmp_path, 9, 10)
  (run / 'checkpoint_11').mkdir()
  config = configs.RestoreCheckpointConfig(str(run))
  assert config.checkpoint_paths() == [str(run / 'checkpoint_10')]


def test_all_means_every_checkpoint_in_order(tmp_path):
  run = _make_run(tmp_path, 10, 9)
  config = configs.RestoreCheckpointConfig(str(run), mode='all')
  assert config.checkpoint_paths() == [
      str(run / 'checkpoint_9'), str(run / 'checkpoint_10'),
  ]  # fmt: skip


def test_specific_means_the_folder_itself(tmp_path, monkeypatch):
  _make_run(tmp_path, 9)
  monkeypatch.chdir(tmp_path)
  config = configs.RestoreCheckpointConfig('checkpoint_9', mode='specific')
  assert config.checkpoint_paths() == [str(tmp_path / 'checkpoint_9')]


@pytest.mark.parametrize('path', ['', [], (), None])
def test_empty_path_means_none(path):
  assert configs.RestoreCheckpointConfig(path).checkpoint_paths() == []


@pytest.mark.parametrize('mode', configs.RESTORE_MODES)
def test_path_without_a_checkpoint_is_refused(tmp_path, mode):
  config = configs.RestoreCheckpointConfig(str(tmp_path / 'x'), mode=mode)
  with pytest.raises(steps.NotACheckpointError, match='expected'):
    config.checkpoint_paths()


def test_user_class_may_extend_the_config():
  @dataclasses.dataclass
  class Mine(checkpoints.RestoreCheckpointConfig):
    steps: int = 3

    def __post_init__(self):
      super().__post_init__()
      self.mode = 'all'

  assert Mine(path='x').mode == 'all'
