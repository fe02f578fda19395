# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoint folders: complete, unfinished, deleted, none."""

import os
import re

import pytest

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import state_io


def _make(directory, name, *, marker=True, item='state'):
  folder = directory / name
  (folder / item).mkdir(parents=True)
  if marker:
    (folder / steps.COMMIT_MARKER).write_text('done')
  return folder


def test_only_complete_checkpoints_count(tmp_path):
  _make(tmp_path, 'checkpoint_10')
  _make(tmp_path, 'checkpoint_9')
  _make(tmp_path, 'checkpoint_11.orbax-checkpoint-tmp')
  _make(tmp_path, 'checkpoint_12.deleted')
  _make(tmp_path, 'checkpoint_13', marker=False, item='other')
  (tmp_path / 'checkpoint_14').write_text('a file')
  assert steps.all_steps(tmp_path) == [9, 10]
  assert steps.latest_step(tmp_path) == 10


def test_directory_that_is_not_there_has_no_checkpoint(tmp_path):
  assert steps.latest_step(tmp_path / 'missing') is None


def test_relative_paths_become_absolute_and_buckets_stay(monkeypatch, tmp_path):
  monkeypatch.chdir(tmp_path)
  assert steps.absolute_path('runs/a') == str(tmp_path / 'runs' / 'a')
  assert steps.get_checkpoint_dir('a', 3) == str(tmp_path / 'a/checkpoint_3')
  for bucket in ('gs://bucket/run', 's3://bucket/run'):
    assert steps.absolute_path(bucket + '/') == bucket
    assert steps.get_checkpoint_dir(bucket, 3) == f'{bucket}/checkpoint_3'


def test_bucket_checkpoints_are_complete_by_their_marker_alone():
  bucket = state_io._atomicity('gs://bucket/run').mode
  assert bucket.value == 'commit_file'
  assert state_io._atomicity('/local/run').mode.value == 'atomic_rename'


def test_deletion_killed_half_way_leaves_no_checkpoint(tmp_path, monkeypatch):
  folder = _make(tmp_path, 'checkpoint_5')

  def killed(*args, **kwargs):
    raise KeyboardInterrupt

  monkeypatch.setattr('shutil.rmtree', killed)
  with pytest.raises(KeyboardInterrupt):
    steps.delete_checkpoint(folder)
  monkeypatch.undo()
  assert steps.all_steps(tmp_path) == []
  assert steps.delete_leftovers(tmp_path) == ['checkpoint_5.deleted']
  assert os.listdir(tmp_path) == []


def test_leftovers_go_and_complete_checkpoints_stay(tmp_path):
  _make(tmp_path, 'checkpoint_1')
  _make(tmp_path, 'checkpoint_2.orbax-checkpoint-tmp-123')
  (tmp_path / 'metrics.jsonl').write_text('')
  steps.delete_leftovers(tmp_path)
  assert sorted(os.listdir(tmp_path)) == ['checkpoint_1', 'metrics.jsonl']


def test_failed_save_is_cleared_without_touching_others(tmp_path):
  _make(tmp_path, 'checkpoint_1.orbax-checkpoint-tmp')
  _make(tmp_path, 'checkpoint_11.orbax-checkpoint-tmp')
  steps.delete_unfinished(tmp_path / 'checkpoint_1')
  assert os.listdir(tmp_path) == ['checkpoint_11.orbax-checkpoint-tmp']


def test_dataset_state_goes_alone(tmp_path):
  folder = _make(tmp_path, 'checkpoint_5')
  (folder / 'dataset').mkdir()
  steps.delete_dataset_state(folder)
  assert sorted(os.listdir(folder)) == [
      steps.COMMIT_MARKER, steps.DATASET_REMOVED, 'state'
  ]  # fmt: skip


def _refusal(path):
  with pytest.raises(steps.NotACheckpointError) as caught:
    steps.state_folder(path)
  text = str(caught.value)
  assert str(path) in text
  assert 'expected' in text
  return text


def test_path_that_is_no_checkpoint_is_explained(tmp_path):
  _make(tmp_path, 'checkpoint_7')
  assert 'complete steps there: [7]' in _refusal(tmp_path / 'checkpoint_8')
  assert "mode to 'latest'" in _refusal(tmp_path)
  assert 'nor does' in _refusal(tmp_path / 'no' / 'checkpoint_1')
  (tmp_path / 'file').write_text('')
  assert 'is a file' in _refusal(tmp_path / 'file')
  (tmp_path / 'folder').mkdir()
  (tmp_path / 'folder' / 'notes').write_text('')
  assert "it holds ['notes']" in _refusal(tmp_path / 'folder')


def test_other_formats_are_found_or_named(tmp_path):
  (tmp_path / 'checkpoint').write_text('model_checkpoint_path: "model.ckpt-9"')
  for step in (100, 20):
    (tmp_path / f'model.ckpt-{step}.index').write_text('')
  prefix = tmp_path / 'model.ckpt-100'
  assert steps.find(prefix) == (steps.TENSORFLOW, prefix)
  assert steps.tensorflow_checkpoints(tmp_path)[-1] == str(prefix)
  assert f'take one, such as {prefix}' in _refusal(tmp_path)
  native = _make(tmp_path, 'checkpoint_3', item='other', marker=False)
  (native / 'checkpoint').write_bytes(b'\x80')
  assert steps.find(native) == (steps.T5X_NATIVE, native)
  assert steps.all_steps(tmp_path) == [3]


@pytest.mark.parametrize('name', ['pytorch_model.bin', 'a.pt', 'z.pkl'])
def test_pickles_are_refused(tmp_path, name):
  (tmp_path / name).write_bytes(b'')
  for other in 'bcdefghij':  # However many files there are.
    (tmp_path / f'{other}.json').write_bytes(b'')
  assert 'pickles, which can run any program' in _refusal(tmp_path)


def test_directory_that_cannot_be_written_is_refused(tmp_path):
  (tmp_path / 'file').write_text('')
  with pytest.raises(steps.UnwritableError, match='set MODEL_DIR'):
    steps.check_writable(tmp_path / 'file' / 'run', process=0)
  # Every save there would fail, or could not be read: the pieces of a
  # checkpoint are looked for by a pattern, and not found.
  for name in ('\\run', 'lr[0.1]', 'run*', 'what?'):
    with pytest.raises(steps.UnwritableError, match='is a pattern, no'):
      steps.check_writable(tmp_path / name / 'run', process=0)
    assert not (tmp_path / name).exists()
  steps.check_writable(tmp_path / 'new' / 'run', process=0)
  assert os.listdir(tmp_path / 'new' / 'run') == []


@pytest.mark.parametrize(
    ('name', 'words'),
    [
        ('model.ckpt-10.index', 'take .*model.ckpt-10, which'),
        ('model.ckpt-10.data-00000-of-00002', 'take .*model.ckpt-10, which'),
        ('model.safetensors', 'take the folder that holds it'),
        ('pytorch_model.bin', 'take the folder that holds it'),
    ],
)
def test_part_of_a_checkpoint_is_told_what_to_take_instead(
    tmp_path, name, words
):
  (tmp_path / name).write_bytes(b'')
  assert re.search(words, _refusal(tmp_path / name))


def test_what_is_near_a_path_that_does_not_exist_is_told(tmp_path):
  assert 'downloaded first' in _refusal(tmp_path / 'google' / 't5-small')
  (tmp_path / 'model.ckpt-10.index').write_bytes(b'')
  assert "there are ['model.ckpt-10']" in _refusal(tmp_path / 'model.ckpt-9')


def test_config_without_weights_is_told_what_lacks(tmp_path):
  (tmp_path / 'config.json').write_text('{}')
  (tmp_path / 'model.gguf').write_bytes(b'')
  text = _refusal(tmp_path)
  assert 'model.gguf' in text
  assert "copy the model's safetensors there" in text
