# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A text is found wherever it lies, and a document by its number."""

import numpy as np
import pytest

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


def _found(cache, text: str) -> list[tuple[int, int, int]]:
  return [
      (place.number, place.start, place.stop)
      for place in record_search.with_text(cache, text)
  ]


def test_a_text_over_the_edge_of_two_records_is_in_both(tmp_path):
  # Documents are cut into records of 128 bytes here.
  cache = _cache(tmp_path, 'x' * 125 + 'needle' + 'y' * 200, 'needles', 'ne')
  assert len(cache) == 5
  assert _found(cache, 'needle') == [(0, 125, 128), (1, 0, 3), (3, 0, 6)]
  assert _found(cache, 'dleyy') == [(1, 0, 5)]
  assert _found(cache, 'n') == [(0, 125, 126), (3, 0, 1), (4, 0, 1)]


def test_a_text_longer_than_a_record_is_in_all_that_have_some_of_it(tmp_path):
  text = 'needle' * 50
  cache = _cache(tmp_path, 'x' * 100 + text + 'y' * 30)
  assert _found(cache, text) == [
      (0, 100, 128), (1, 0, 128), (2, 0, 128), (3, 0, 16)
  ]


def test_a_text_is_found_each_time_it_stands_in_a_record(tmp_path):
  cache = _cache(tmp_path, 'needle needle, needle')
  assert [start for _, start, _ in _found(cache, 'needle')] == [0, 7, 15]


class _Pieces:
  """Decodes as SentencePiece does: a space before the first word is dropped."""

  eos_id = 1
  texts = ('', '', '', ' hay', ' nee', 'dle', 's')

  def decode(self, ids):
    return ''.join(self.texts[token] for token in ids).removeprefix(' ')


@pytest.mark.parametrize(
    ('text', 'found'),
    [
        ('needle', [(2, 4), (6, 8), (10, 12)]),
        (' needle', [(1, 4), (5, 8)]),  # the last begins a text of its own
        ('hay', [(0, 1), (1, 2), (5, 6)]),
        ('needles', [(10, 13)]),
        ('needle hay needle', [(2, 8)]),
        ('needle needle', []),
    ],
)
def test_pieces_of_words_are_found_where_they_stand(text, found):
  tokens = np.array([3, 3, 4, 5, 2, 3, 4, 5, 2, 1, 4, 5, 6], np.int32)
  assert list(record_search._in_pieces(tokens, text, _Pieces())) == found


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
  assert [
      (place.number, place.feature)
      for place in record_search.with_text(cache, 'two')
  ] == [(0, 'targets'), (1, 'inputs')]
