# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Records come back as they were written; what was changed is named."""

import os
import pathlib
import types

from hypothesis import given
from hypothesis import strategies
import numpy as np
import pytest

from t5wild.data import fingerprints
from t5wild.data import record_cache
from t5wild.data import record_format
from t5wild.data import shard_writer
from t5wild.data import vocabularies
from tests import small_disk
from tests.data import caches

_TOKENS = strategies.lists(strategies.integers(0, 65535), max_size=9)


@given(
    examples=strategies.lists(strategies.tuples(_TOKENS, _TOKENS), max_size=8),
    dtype=strategies.sampled_from(['uint16', 'int32']),
)
def test_a_record_is_read_as_it_was_written(examples, dtype):
  schema = record_format.Schema(features=('inputs', 'targets'), dtype=dtype)
  records = [
      schema.encode(
          {'inputs': np.array(inputs), 'targets': np.array(targets)},
          document=2**40 + index,
          piece=index,
          is_last=index % 2 == 0,
      )
      for index, (inputs, targets) in enumerate(examples)
  ]
  found = schema.decode(records)
  numbers = np.arange(len(examples))
  np.testing.assert_array_equal(found.documents, 2**40 + numbers)
  np.testing.assert_array_equal(found.pieces, numbers)
  np.testing.assert_array_equal(found.is_last, numbers % 2 == 0)
  for place, name in enumerate(('inputs', 'targets')):
    rows = found.features[name]
    expected = [example[place] for example in examples]
    assert rows.values.tolist() == sum(expected, [])
    assert rows.lengths.tolist() == [len(each) for each in expected]


def test_any_records_are_found_by_their_numbers(tmp_path):
  documents = caches.texts(50)
  cache = record_cache.RecordCache(caches.write(tmp_path, documents))
  wanted = np.array([len(cache) - 1, 0, 7, 7, 31])
  some = cache.read(wanted).features['targets'].split()
  everything = cache.read(np.arange(len(cache))).features['targets'].split()
  for number, record in zip(wanted.tolist(), some, strict=True):
    np.testing.assert_array_equal(record, everything[number])


def test_a_long_document_is_cut_into_records_in_order(tmp_path):
  documents = caches.texts(12, longest=1000)
  cache = record_cache.RecordCache(caches.write(tmp_path, documents))
  found = cache.read(np.arange(len(cache)))
  pieces = found.features['targets'].split()
  assert max(map(len, pieces)) == 128
  whole, part = [], []
  for piece, is_last in zip(pieces, found.is_last, strict=True):
    part.append(piece)
    if is_last:
      whole.append(np.concatenate(part))
      part = []
  shards = [documents[index::3] for index in range(3)]
  expected = [document for shard in shards for document in shard]
  for left, right in zip(whole, expected, strict=True):
    np.testing.assert_array_equal(left, right)


@pytest.fixture
def folder(tmp_path):
  return pathlib.Path(caches.write(tmp_path, caches.texts(60)))


def _second(folder) -> pathlib.Path:
  return folder / 'data.array_record-00001-of-00003'


def test_a_whole_cache_is_verified(folder):
  record_cache.RecordCache(folder).verify()


def test_a_missing_shard_is_named(folder):
  _second(folder).unlink()
  with pytest.raises(record_cache.BadCacheError, match='00001.* is missing'):
    record_cache.RecordCache(folder)


def test_a_truncated_shard_is_named(folder):
  os.truncate(_second(folder), _second(folder).stat().st_size - 100)
  with pytest.raises(record_cache.BadCacheError, match='00001.*truncated'):
    record_cache.RecordCache(folder)


def test_shards_of_another_cache_of_the_same_sizes_are_refused(
    folder, tmp_path
):
  others = caches.write(tmp_path / 'other', caches.texts(60)[::-1])
  for shard in record_cache.RecordCache(folder).manifest.shards:
    content = (pathlib.Path(others) / shard.name).read_bytes()
    padded = content.ljust(shard.num_bytes, b'\0')
    (folder / shard.name).write_bytes(padded[: shard.num_bytes])
  with pytest.raises(record_cache.BadCacheError, match='altered'):
    record_cache.RecordCache(folder)


def test_a_process_that_opens_a_cache_again_hashes_no_shard_again(
    folder, monkeypatch
):
  record_cache.RecordCache(folder)
  hashed = []
  monkeypatch.setattr(fingerprints, 'of_file', hashed.append)
  record_cache.RecordCache(folder)
  assert not hashed
  smallest = min(
      record_cache.read_manifest(folder).shards,
      key=lambda shard: shard.num_bytes,
  )
  os.utime(folder / smallest.name)  # somebody was there
  with pytest.raises(record_cache.BadCacheError, match='altered'):
    record_cache.RecordCache(folder)
  assert hashed == [str(folder / smallest.name)]


def _alter(path: pathlib.Path, *, at: float) -> None:
  content = bytearray(path.read_bytes())
  content[int(at * len(content))] ^= 0xFF
  path.write_bytes(content)


@pytest.mark.parametrize('at', [0.0, 0.1, 0.5, 0.999])
def test_an_altered_shard_is_named_by_verify(at, folder):
  _alter(_second(folder), at=at)
  cache = record_cache.RecordCache(folder)
  with pytest.raises(record_cache.BadCacheError, match='00001.*altered'):
    cache.verify()


def test_an_altered_record_is_never_read_as_if_it_were_right(tmp_path):
  folder = pathlib.Path(caches.write(tmp_path, caches.texts(60)))
  cache = record_cache.RecordCache(folder)
  numbers = np.arange(len(cache))
  expected = cache.read(numbers).features['targets']
  # Blocks of ArrayRecord have checksums; the head of the file is not read.
  content = _second(folder).read_bytes()
  for at in range(1, 20):
    _second(folder).write_bytes(content)
    _alter(_second(folder), at=at / 20)
    try:
      found = record_cache.RecordCache(folder).read(numbers)
    except record_cache.BadCacheError as error:
      assert '00001' in str(error)
      continue
    np.testing.assert_array_equal(
        found.features['targets'].values, expected.values
    )


@pytest.mark.parametrize('harm', ['missing', 'truncated', 'altered'])
def test_a_bad_shard_is_skipped_and_counted_when_asked(harm, folder, caplog):
  whole = record_cache.RecordCache(folder)
  bad = whole.manifest.shards[1]
  if harm == 'missing':
    _second(folder).unlink()
  elif harm == 'truncated':
    os.truncate(_second(folder), bad.num_bytes - 1)
  else:
    _alter(_second(folder), at=0.5)
  found = record_cache.RecordCache(folder, skip_bad_shards=True)
  assert len(found) == len(whole) - bad.num_records
  assert f'with {bad.num_records} of {len(whole)} records' in caplog.text
  assert '1 of 3 shards left out' in caplog.text
  found.verify()


def test_a_cache_without_any_whole_shard_is_refused(folder):
  for path in folder.glob('*-of-00003'):
    path.unlink()
  with pytest.raises(record_cache.BadCacheError, match='no shard'):
    record_cache.RecordCache(folder, skip_bad_shards=True)


def test_shards_without_a_record_are_read_past(tmp_path):
  documents = caches.texts(3)
  cache = record_cache.RecordCache(
      caches.write(tmp_path, documents, num_shards=8)
  )
  cache.verify()
  found = cache.read(np.arange(len(cache)))
  assert found.features['targets'].values.size == sum(map(len, documents))


def test_an_unfinished_cache_says_how_far_it_is(folder):
  (folder / record_cache.MANIFEST).unlink()
  (folder / 'data.array_record-00002-of-00003.json').unlink()
  with pytest.raises(record_cache.BadCacheError, match='2 of 3 shards'):
    record_cache.RecordCache(folder)


def test_a_folder_without_a_cache_is_refused(tmp_path):
  with pytest.raises(record_cache.BadCacheError, match='no cache in'):
    record_cache.RecordCache(tmp_path)


@pytest.mark.parametrize('text', ['', '{"format": 1', '{"format": 1}', '[]'])
def test_a_damaged_manifest_is_refused(text, folder):
  (folder / record_cache.MANIFEST).write_text(text)
  with pytest.raises(record_cache.BadCacheError, match='damaged'):
    record_cache.RecordCache(folder)


def test_a_manifest_of_another_format_is_refused(folder):
  (folder / record_cache.MANIFEST).write_text('{"format": 99}')
  with pytest.raises(record_cache.BadCacheError, match='format 99'):
    record_cache.RecordCache(folder)


def test_a_full_disk_is_told_and_leaves_no_part_of_a_shard(tmp_path):
  noise = np.random.default_rng(0)
  documents = [
      {'targets': noise.integers(0, 65536, 4096).astype(np.int32)}
      for _ in range(1000)
  ]
  with small_disk.mounted(tmp_path / 'small', megabytes=2) as folder:
    plan = shard_writer.ShardPlan(
        folder=str(folder),
        num_shards=1,
        schema=record_format.Schema(features=('targets',), dtype='uint16'),
        max_record_tokens=None,
    )
    with pytest.raises(shard_writer.NotWrittenError, match='space'):
      plan.write(0, documents)
    assert not plan.is_done(0)
    assert list(folder.iterdir()) == []
    small_disk.grow(folder, megabytes=40)
    assert plan.write(0, documents).num_records == 1000
    assert plan.is_done(0)


def test_equal_vocabularies_have_equal_fingerprints():
  seqio = pytest.importorskip('seqio')
  describe = fingerprints.describe_vocabulary
  ours = describe(vocabularies.ByteVocabulary(125))
  assert describe(seqio.ByteVocabulary(125)) == ours
  other = describe(seqio.ByteVocabulary(100))
  assert other['fingerprint'] != ours['fingerprint']


def test_a_stored_vocabulary_encodes_and_decodes_bytes():
  stored = fingerprints.StoredVocabulary(
      fingerprints.describe_vocabulary(caches.VOCABULARY)
  )
  assert stored.decode(stored.encode('größer')) == 'größer'
  assert stored.vocab_size == 384


def test_a_model_of_another_vocabulary_is_refused_with_both_fingerprints(
    tmp_path,
):
  caches.write(tmp_path, caches.texts(20))
  cfg = caches.config(tmp_path)
  same = types.SimpleNamespace(
      input_vocabulary=caches.VOCABULARY, output_vocabulary=caches.VOCABULARY
  )
  cfg.verify_vocabularies(same)
  other = vocabularies.ByteVocabulary(100)
  with pytest.raises(ValueError, match='vocabularies of the') as error:
    cfg.verify_vocabularies(
        types.SimpleNamespace(input_vocabulary=other, output_vocabulary=other)
    )
  for vocabulary in (other, caches.VOCABULARY):
    found = fingerprints.describe_vocabulary(vocabulary)['fingerprint']
    assert found in str(error.value)


def test_a_relative_folder_is_told_with_where_it_was_seen_from(
    tmp_path, monkeypatch
):
  caches.write(tmp_path / 'CACHE', caches.texts(9))
  monkeypatch.chdir(tmp_path)
  reader = caches.reader(caches.config('CACHE'))
  next(reader)
  state = reader.state_dict()
  (tmp_path / 'elsewhere').mkdir()
  monkeypatch.chdir(tmp_path / 'elsewhere')
  with pytest.raises(record_cache.BadCacheError) as error:
    caches.reader(caches.config('CACHE'))
  assert f"'CACHE', seen from {str(tmp_path / 'elsewhere')!r}" in str(
      error.value
  )
  assert '--gin.CACHE_DIR=/whole/path' in str(error.value)
  # By its whole path it is the same data.
  again = caches.reader(caches.config(tmp_path / 'CACHE'))
  again.load_state_dict(state)
  caches.assert_equal(next(again), caches.batches(reader, 1)[0])
