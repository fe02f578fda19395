# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Shards of a bucket are on a machine once, right, and within a limit.

The bucket here is fsspec's in memory, under the name gs://.
"""

import hashlib
import os
import pathlib
import threading

import fsspec
from fsspec.implementations import memory
import numpy as np
import pytest

from t5wild import reachability
from t5wild.data import node_cache
from t5wild.data import places
from t5wild.data import record_cache
from tests.data import caches

_BUCKET = 'gs://bucket'


class _Memory(memory.MemoryFileSystem):
  """In memory; the names of its buckets begin as those of GCS."""

  protocol = ('gs', 'gcs')
  store: dict = {}
  pseudo_dirs = ['']

  def __init__(self, finalize_on_close: bool = True, **kwargs):
    super().__init__(**kwargs)

  @classmethod
  def _strip_protocol(cls, path):
    return '/' + path.partition('://')[2].strip('/') if '://' in path else path


@pytest.fixture
def bucket(monkeypatch, tmp_path):
  """Makes gs:// a bucket in memory, and a new folder the node's cache."""
  from etils.epath import backend
  from etils.epath import gpath

  _Memory.store.clear()
  for name in ('gs', 'gcs'):
    fsspec.register_implementation(name, _Memory, clobber=True)
  backend.fsspec_backend._get_filesystem.cache_clear()
  monkeypatch.setattr(gpath.PosixGPath, '_backend', backend.fsspec_backend)
  monkeypatch.setattr(reachability, 'is_reachable', lambda path: True)
  monkeypatch.setenv(node_cache.FOLDER, str(tmp_path / 'node'))
  monkeypatch.delenv(node_cache.MOST_BYTES, raising=False)
  yield _BUCKET
  _Memory.store.clear()


def _put(name: str, content: bytes) -> dict:
  path = f'{_BUCKET}/{name}'
  with places.epath.Path(path).open('wb') as file:
    file.write(content)
  return {
      'path': path,
      'sha256': hashlib.sha256(content).hexdigest(),
      'num_bytes': len(content),
  }


def _shards_in(folder) -> list[str]:
  return sorted(n for n in os.listdir(folder) if not n.endswith('.lock'))


def test_a_cache_in_a_bucket_is_read_as_one_in_a_folder(bucket, tmp_path):
  documents = caches.texts(120)
  caches.write(tmp_path / 'local', documents)
  caches.write(f'{bucket}/cache', documents)
  for left, right in zip(
      caches.batches(caches.reader(caches.config(tmp_path / 'local')), 5),
      caches.batches(caches.reader(caches.config(f'{bucket}/cache')), 5),
      strict=True,
  ):
    caches.assert_equal(left, right)
  assert len(_shards_in(tmp_path / 'node')) == 3
  folder = record_cache.folders_of(f'{bucket}/cache')[0]
  record_cache.RecordCache(folder).verify()


def test_what_was_fetched_is_not_fetched_again(bucket, tmp_path, monkeypatch):
  folder = caches.write(f'{bucket}/cache', caches.texts(40))
  cache = record_cache.RecordCache(folder)
  cache.read(np.arange(len(cache)))
  monkeypatch.setattr(places, 'fetch', None)  # not asked
  again = record_cache.RecordCache(folder)
  assert len(again.read(np.arange(len(again))).documents) == len(cache)


@pytest.mark.parametrize('harm', ['missing', 'truncated', 'altered'])
def test_a_bad_shard_of_a_bucket_is_named_or_skipped_and_counted(
    harm, bucket, tmp_path, caplog
):
  folder = caches.write(f'{bucket}/cache', caches.texts(60))
  whole = record_cache.RecordCache(folder)
  bad = whole.manifest.shards[1]
  path = places.epath.Path(places.join(folder, bad.name))
  content = bytearray(path.read_bytes())
  content[len(content) // 2] ^= 1
  if harm == 'missing':
    path.unlink()
  else:
    path.write_bytes(content[:-1] if harm == 'truncated' else content)
  with pytest.raises(record_cache.BadCacheError, match=f'00001.*{harm}'):
    cache = record_cache.RecordCache(folder)
    cache.read(np.arange(len(cache)))
  assert not any('.part' in name for name in os.listdir(tmp_path / 'node'))
  found = record_cache.RecordCache(folder, skip_bad_shards=True)
  assert len(found) == len(whole) - bad.num_records
  assert '1 of 3 shards left out' in caplog.text


def test_verify_reads_the_bucket_and_not_what_was_right_once(bucket, tmp_path):
  folder = caches.write(f'{bucket}/cache', caches.texts(40))
  cache = record_cache.RecordCache(folder)
  cache.verify()
  path = places.epath.Path(places.join(folder, cache.manifest.shards[2].name))
  content = bytearray(path.read_bytes())
  content[7] ^= 1
  path.write_bytes(content)
  with pytest.raises(record_cache.BadCacheError, match='00002.*altered'):
    cache.verify()


def test_an_unfinished_cache_in_a_bucket_says_how_far_it_is(bucket):
  folder = caches.write(f'{bucket}/cache', caches.texts(40))
  places.remove(places.join(folder, record_cache.MANIFEST))
  places.remove(places.join(folder, 'data.array_record-00001-of-00003.json'))
  with pytest.raises(record_cache.BadCacheError, match='2 of 3 shards'):
    record_cache.RecordCache(folder)


def test_the_longest_unused_makes_room_and_what_is_in_use_stays(
    bucket, tmp_path
):
  wanted = [_put(name, name.encode() * 100) for name in ('a', 'b', 'c', 'd')]
  folder = str(tmp_path / 'small')
  for index, each in enumerate(wanted[:2]):
    path = node_cache.NodeCache(folder, most_bytes=300).fetch(**each)
    os.utime(path, (index + 1, index + 1))
  node = node_cache.NodeCache(folder, most_bytes=300)
  used = node.fetch(**wanted[0])  # older than b, and now in use
  os.utime(used, (0, 0))
  node.fetch(**wanted[2])
  node.fetch(**wanted[3])
  names = {f'{each["sha256"]}.shard' for each in (wanted[0], *wanted[2:])}
  assert set(_shards_in(folder)) == names


def test_shards_that_are_all_in_use_leave_no_room_and_both_sizes_are_told(
    bucket, tmp_path
):
  node = node_cache.NodeCache(str(tmp_path / 'small'), most_bytes=150)
  node.fetch(**_put('a', b'a' * 100))
  with pytest.raises(node_cache.NodeCacheError, match='no room') as error:
    node.fetch(**_put('b', b'b' * 100))
  assert '150' in str(error.value) and node_cache.FOLDER in str(error.value)


def test_a_cache_larger_than_the_node_may_hold_is_refused_at_once(
    bucket, monkeypatch
):
  folder = caches.write(f'{bucket}/cache', caches.texts(60))
  monkeypatch.setenv(node_cache.MOST_BYTES, '1e3')
  with pytest.raises(node_cache.NodeCacheError, match='may hold 1000'):
    record_cache.RecordCache(folder)
  monkeypatch.setenv(node_cache.MOST_BYTES, 'much')
  with pytest.raises(node_cache.NodeCacheError, match="'much'"):
    record_cache.RecordCache(folder)


def test_processes_that_want_a_shard_at_once_fetch_it_once(
    bucket, tmp_path, monkeypatch
):
  wanted = _put('a', b'a' * 1000)
  fetched = []
  fetch = places.fetch

  def counted(path, local):
    fetched.append(path)
    return fetch(path, local)

  monkeypatch.setattr(places, 'fetch', counted)
  nodes = [node_cache.NodeCache(str(tmp_path / 'node')) for _ in range(4)]
  threads = [
      threading.Thread(target=node.fetch, kwargs=wanted) for node in nodes
  ]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert len(fetched) == 1
  path = pathlib.Path(nodes[0].fetch(**wanted))
  assert path.read_bytes() == b'a' * 1000


def test_what_a_killed_process_left_makes_room(bucket, tmp_path):
  folder = tmp_path / 'small'
  node = node_cache.NodeCache(str(folder), most_bytes=150)
  part = folder / 'x.shard.1.part'
  part.write_bytes(b'x' * 100)
  os.utime(part, (1, 1))
  node.fetch(**_put('a', b'a' * 100))
  assert not part.exists()


def test_a_path_of_an_unknown_store_is_refused():
  with pytest.raises(places.UnknownStoreError, match='ftp://'):
    record_cache.RecordCache('ftp://server/cache')
