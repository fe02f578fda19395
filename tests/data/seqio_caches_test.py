# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Caches of seqio: found as they lie, refused where they are not whole."""

import json

import numpy as np
import pytest

from t5wild.data import seqio_caches
from t5wild.data import table_reader
from tests.data import tfrecord_files

EXAMPLES = [
    {'inputs': [10 + n, 11], 'targets': list(range(3, 4 + n % 5))}
    for n in range(20)
]


def write(folder, *, splits=('train', 'validation'), num_shards=2):
  """A folder as seqio_cache_tasks leaves it."""
  folder.mkdir(parents=True)
  for split in splits:
    for index in range(num_shards):
      name = f'{split}.tfrecord-{index:05d}-of-{num_shards:05d}'
      tfrecord_files.write(folder / name, [
          {**e, 'inputs_pretokenized': [b'x'], 'weight': [0.5]}
          for e in EXAMPLES[index::num_shards]
      ])  # fmt: skip
    info = {
        'num_shards': num_shards, 'seqio_version': '0.0.20',
        'features': {
            'inputs': {'shape': [None], 'dtype': 'int32'},
            'targets': {'shape': [None], 'dtype': 'int32'},
            'inputs_pretokenized': {'shape': [], 'dtype': 'string'},
            'weight': {'shape': [], 'dtype': 'float32'},
        },
    }  # fmt: skip
    (folder / f'info.{split}.json').write_text(json.dumps(info))
    stats = json.dumps({'examples': len(EXAMPLES)})
    (folder / f'stats.{split}.json').write_text(stats)
  (folder / 'COMPLETED').write_text('')
  return folder


@pytest.fixture
def folder(tmp_path):
  return write(tmp_path / 'cached_tasks' / 'mine')


def test_the_tokens_are_those_that_were_written(folder):
  cache = seqio_caches.find(str(folder))
  assert cache.features == {
      'inputs': 'tokens', 'targets': 'tokens', 'inputs_pretokenized': 'text'
  }  # fmt: skip
  assert cache.stats['train'] == {'examples': 20}
  table = table_reader.open_table('mine', cache.files, kinds=cache.features)
  reader = table_reader.TableReader(
      table, {name: name for name in ('inputs', 'targets')}
  )
  found = list(reader.read_all('validation'))
  wanted = EXAMPLES[::2] + EXAMPLES[1::2]
  for row, example in zip(found, wanted, strict=True):
    for name, tokens in row.items():
      np.testing.assert_array_equal(tokens, example[name])


@pytest.mark.parametrize(
    ('name', 'words'),
    [
        ('COMPLETED', 'no COMPLETED'),
        ('train.tfrecord-00001-of-00002', 'lacks train.tfrecord-00001'),
    ],
)
def test_a_cache_that_is_not_whole_is_refused(name, words, folder):
  (folder / name).unlink()
  with pytest.raises((ValueError, FileNotFoundError), match=words):
    seqio_caches.find(str(folder))


@pytest.mark.parametrize('text', ['{', '{"num_shards": 1}'])
def test_damaged_info_is_named(text, folder):
  (folder / 'info.train.json').write_text(text)
  with pytest.raises(ValueError, match='info.train.json'):
    seqio_caches.find(str(folder))


def test_a_folder_of_several_tasks_names_them(folder):
  with pytest.raises(FileNotFoundError, match=r"several tasks, \['mine'\]"):
    seqio_caches.find(str(folder.parent))
  with pytest.raises(FileNotFoundError, match='no folder'):
    seqio_caches.find(str(folder / 'absent'))
  empty = folder.parent / 'empty'
  empty.mkdir()
  with pytest.raises(FileNotFoundError, match='no cache of a seqio task'):
    seqio_caches.find(str(empty))
