# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Data sets are found where TFDS has them, as TFDS's or as plain files."""

import pytest

from t5wild.data import prepared_data


def _touch(*paths):
  for path in paths:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def test_the_version_that_is_asked_for_comes_first_then_plain_files(tmp_path):
  whole = tmp_path / 'glue/cola'
  _touch(whole / '2.0.0/dataset_info.json')
  find = lambda: prepared_data.find('glue/cola:1.0.0', [str(tmp_path)])  # noqa: E731 -- asked again and again
  assert find().version == '2.0.0'
  _touch(whole / 'train.jsonl')
  assert find().files == {'train': (str(whole / 'train.jsonl'),)}
  _touch(whole / '1.0.0/dataset_info.json')
  assert find() == prepared_data.Prepared(
      folder=str(whole / '1.0.0'), version='1.0.0', files=None
  )


def test_the_newest_of_other_versions_is_taken(tmp_path):
  for version in ('9.0.0', '10.0.0'):
    _touch(tmp_path / 'squad/v1.1' / version / 'dataset_info.json')
  found = prepared_data.find('squad/v1.1:3.0.0', [str(tmp_path)])
  assert found.version == '10.0.0'


@pytest.mark.parametrize(
    ('name', 'split'),
    [
        ('train-00000-of-00002.parquet', 'train'),
        ('c4-validation.00000-of-00008.json.gz', 'validation'),
        ('validation_matched.jsonl', 'validation_matched'),
        ('test/data-00000-of-00001.arrow', 'test'),
    ],
)
def test_the_split_of_a_plain_file_is_in_its_name(tmp_path, name, split):
  _touch(tmp_path / 'a' / name)
  found = prepared_data.find('a:1.0.0', [str(tmp_path)])
  assert found.files == {split: (str(tmp_path / 'a' / name),)}


@pytest.mark.parametrize(
    'name', ['readme.txt', 'training.jsonl', 'train/state.json', 'train.txt']
)
def test_other_files_are_no_data(tmp_path, name):
  _touch(tmp_path / 'a' / name)
  assert prepared_data.find('a:1.0.0', [str(tmp_path)]) is None


def test_the_folder_is_the_one_given_else_that_of_the_variable(monkeypatch):
  monkeypatch.setenv('TFDS_DATA_DIR', '/data')
  assert prepared_data.data_dirs('/given') == ['/given']
  assert prepared_data.data_dirs(None) == ['/data']
