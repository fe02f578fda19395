# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's folders, as `datasets` wrote them: found, and read as rows."""

import json
import pathlib
import shutil

import pytest

from t5wild.data import hugging_face
from t5wild.data import table_reader

_FILES = pathlib.Path(__file__).with_name('hugging_face_files')
_TEXTS = [f'document {n}' for n in range(12)]


@pytest.fixture
def caches(monkeypatch):
  monkeypatch.setenv('HF_DATASETS_CACHE', str(_FILES / 'prepared'))
  monkeypatch.setenv('HF_HUB_CACHE', str(_FILES / 'hub'))


def rows(found, split='train'):
  table = table_reader.open_table('mine', found)
  return list(table_reader.TableReader(table).read_all(split))


def test_what_save_to_disk_wrote_is_read_split_by_split():
  found = hugging_face.find(str(_FILES / 'saved'))
  assert list(found) == ['train', 'test']
  train, test = rows(found), rows(found, 'test')
  assert [row['text'] for row in train] == _TEXTS
  assert [row['text'] for row in test] == _TEXTS[:3]
  assert [row['label'] for row in train[:3]] == ['no', 'yes', 'no']
  assert [row['ids'].tolist() for row in train[:2]] == [[0, 1], [1, 2]]
  assert train[5]['translation.de'] == 'Satz 5'


def test_one_split_that_save_to_disk_wrote_is_train():
  found = hugging_face.find(str(_FILES / 'saved' / 'train'))
  assert [row['text'] for row in rows(found)] == _TEXTS


@pytest.mark.parametrize('where', ['prepared', 'hub'])
def test_a_name_is_found_in_either_cache(where, caches, monkeypatch):
  other = {'prepared': 'HF_HUB_CACHE', 'hub': 'HF_DATASETS_CACHE'}[where]
  monkeypatch.setenv(other, '/absent')
  found = hugging_face.find('org/fx')
  assert [row['text'] for row in rows(found)] == _TEXTS
  assert rows(found)[1]['label'] == 'yes'


def test_the_folder_of_a_cache_is_read_too(caches):
  (inner,) = (_FILES / 'prepared').glob('*/*/*/*')
  assert [row['text'] for row in rows(hugging_face.find(str(inner)))] == _TEXTS
  snapshot = _FILES / 'hub' / 'datasets--org--fx' / 'snapshots' / '0a1b'
  found = hugging_face.find(str(snapshot))
  assert [row['text'] for row in rows(found)] == _TEXTS


def test_a_name_that_is_nowhere_is_refused_with_the_places(caches):
  with pytest.raises(FileNotFoundError) as error:
    hugging_face.find('org/absent')
  assert str(_FILES / 'prepared' / 'org___absent') in str(error.value)
  assert str(_FILES / 'hub' / 'datasets--org--absent') in str(error.value)
  assert 'save_to_disk' in str(error.value)


def test_a_config_that_is_not_there_is_refused_with_the_others(caches):
  with pytest.raises(ValueError, match=r"\['default'\].*'other'"):
    hugging_face.find('org/fx', config='other')


@pytest.fixture
def saved(tmp_path):
  """A copy that may be damaged, and a way to change its JSON."""
  shutil.copytree(_FILES / 'saved', tmp_path / 'saved')

  def change(name, **values):
    path = tmp_path / 'saved' / name
    state = {**json.loads(path.read_text()), **values}
    path.write_text(json.dumps({k: v for k, v in state.items() if v != ...}))
    return str(tmp_path / 'saved')

  return change


@pytest.mark.parametrize(
    ('name', 'values', 'expected'),
    [
        ('train/state.json', {'_data_files': ...}, '_data_files'),
        ('train/state.json', {'_data_files': ['a.arrow']}, '_data_files'),
        (
            'train/state.json',
            {'_indices_data_files': [{'filename': 'indices.arrow'}]},
            'no table of indices',
        ),
        ('dataset_dict.json', {'splits': {'train': 1}}, 'a list "splits"'),
    ],
)
def test_another_versions_folder_is_refused(name, values, expected, saved):
  folder = saved(name, **values)
  with pytest.raises(ValueError, match='of another version') as error:
    hugging_face.find(folder)
  assert expected in str(error.value)
  assert name in str(error.value)


def test_a_file_or_split_that_is_missing_is_named(saved):
  folder = saved('train/state.json')
  pathlib.Path(folder, 'train', 'data-00001-of-00002.arrow').unlink()
  with pytest.raises(FileNotFoundError, match='data-00001-of-00002.arrow'):
    hugging_face.find(folder)
  shutil.rmtree(pathlib.Path(folder, 'train'))
  with pytest.raises(FileNotFoundError, match='train/state.json is not there'):
    hugging_face.find(folder)


def test_damaged_json_is_named(saved):
  folder = saved('train/state.json')
  pathlib.Path(folder, 'train', 'state.json').write_text('{')
  with pytest.raises(ValueError, match='state.json is damaged'):
    hugging_face.find(folder)


def test_a_folder_without_data_names_the_folders_in_it(tmp_path):
  (tmp_path / 'inner').mkdir()
  with pytest.raises(ValueError, match=r"the folders \['inner'\]"):
    hugging_face.find(str(tmp_path))
  with pytest.raises(FileNotFoundError, match='there is no data in'):
    hugging_face.find(str(tmp_path / 'inner'))


def test_what_todays_datasets_writes_is_read_as_it_reads_it(tmp_path):
  datasets = pytest.importorskip(
      'datasets', reason="Hugging Face's datasets is not installed"
  )
  made = datasets.Dataset.from_dict(
      {
          'text': [f'text {n}' for n in range(30)],
          'label': [n % 2 for n in range(30)],
          'ids': [[n] * (n % 3) for n in range(30)],
      },
      features=datasets.Features({
          'text': datasets.Value('string'),
          'label': datasets.ClassLabel(names=['no', 'yes']),
          'ids': datasets.Sequence(datasets.Value('int64')),
      }),
  ).filter(lambda row: row['label'] == 1)
  made.save_to_disk(str(tmp_path / 'saved'), num_shards=3)
  found = rows(hugging_face.find(str(tmp_path / 'saved')))
  names = made.features['label']
  assert [
      (row['text'], row['label'], row['ids'].tolist()) for row in found
  ] == [(row['text'], names.int2str(row['label']), row['ids']) for row in made]
