# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A text is found wherever it lies, and a document by its number."""

import numpy as np

from t5wild.data import exclusions
from t5wild.data import record_cache
from t5wild.data import record_search
from tests.data import caches


def _cache(root, *texts: str) -> record_cache.RecordCache:
  documents = [
      np.array(caches.VOCABULARY.encode(text), np.int32) for text in texts
  ]
  return record_cache.RecordCache(
      caches.write(root, documents, num_shards=1)
  )


def test_a_text_over_the_edge_of_two_records_is_in_both(tmp_path):
  # Documents are cut into records of 128 bytes here.
  cache = _cache(tmp_path, 'x' * 125 + 'needle' + 'y' * 200, 'needles', 'ne')
  assert len(cache) == 5
  assert record_search.with_text(cache, 'needle') == [0, 1, 3]
  assert record_search.with_text(cache, 'dleyy') == [1]
  assert record_search.with_text(cache, 'n') == [0, 3, 4]


def test_texts_do_not_run_over_from_one_document_to_the_next(tmp_path):
  cache = _cache(tmp_path, 'this is hay', 'stack')
  assert record_search.with_text(cache, 'haystack') == []


def test_the_records_of_a_document_are_found_by_its_number(tmp_path):
  cache = _cache(tmp_path, 'a', 'b' * 300, 'c')
  found = [
      record_search.of_document(
          cache, exclusions.Document(task='letters', shard=0, number=number)
      )
      for number in range(3)
  ]
  assert found == [[0], [1, 2, 3], [4]]


def test_a_text_in_inputs_or_targets_is_found(tmp_path):
  encode = caches.VOCABULARY.encode
  pairs = [
      {'inputs': encode(left), 'targets': encode(right)}
      for left, right in (('one', 'two'), ('two', 'three'), ('four', 'five'))
  ]
  folder = caches.write(
      tmp_path,
      [
          {name: np.array(tokens, np.int32) for name, tokens in pair.items()}
          for pair in pairs
      ],
      num_shards=1,
  )
  cache = record_cache.RecordCache(folder)
  assert record_search.with_text(cache, 'two') == [0, 1]
