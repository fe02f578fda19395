# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The byte vocabulary is seqio's."""

import hypothesis
from hypothesis import strategies
import pytest

from t5wild.data import vocabularies

settings = hypothesis.settings(deadline=None, max_examples=50)


@pytest.fixture(scope='module')
def seqio():
  return pytest.importorskip('seqio')


@settings
@hypothesis.given(text=strategies.text(max_size=40))
def test_ids_are_those_of_seqio(seqio, text):
  ours = vocabularies.ByteVocabulary(125)
  theirs = seqio.ByteVocabulary(125)
  assert ours.encode(text) == list(theirs.encode(text))


@settings
@hypothesis.given(ids=strategies.lists(strategies.integers(0, 383)))
def test_text_is_that_of_seqio(seqio, ids):
  ours = vocabularies.ByteVocabulary(125)
  theirs = seqio.ByteVocabulary(125)
  assert ours.decode(ids) == theirs.decode(ids)


@pytest.mark.parametrize('name', ['vocab_size', 'eos_id', 'pad_id', 'unk_id'])
def test_sizes_and_special_ids_are_those_of_seqio(seqio, name):
  ours = vocabularies.ByteVocabulary(125)
  assert getattr(ours, name) == getattr(seqio.ByteVocabulary(125), name)
  assert ours.vocab_size == 384


def test_equality_looks_through_the_library(seqio):
  ours = vocabularies.ByteVocabulary(125)
  assert vocabularies.are_equal(seqio.ByteVocabulary(125), ours)
  assert vocabularies.are_equal(ours, seqio.ByteVocabulary(125))
  assert vocabularies.are_equal(ours, vocabularies.ByteVocabulary(125))
  assert not vocabularies.are_equal(seqio.ByteVocabulary(100), ours)
  assert not vocabularies.are_equal(ours, vocabularies.ByteVocabulary(100))


def test_sentinels_are_shown_by_number_up_to_the_end():
  vocabulary = vocabularies.ByteVocabulary(125)
  ids = [*vocabulary.encode('ab'), 383, *vocabulary.encode('c'), 382, 1, 99]
  shown = vocabularies.decode_with_sentinels(ids, vocabulary=vocabulary)
  assert shown == 'ab<0>c<1>'


def test_sentinels_are_read_and_shown_as_t5_writes_them(seqio):
  text = 'def <extra_id_0>(x):\n  <extra_id_124>é'
  for vocabulary in (
      seqio.ByteVocabulary(125), vocabularies.ByteVocabulary(125)
  ):  # fmt: skip
    ids = vocabularies.encode_as_written(text, vocabulary=vocabulary)
    assert [i for i in ids if i > 258] == [383, 259]
    shown = vocabularies.decode_as_written([*ids, 1, 0], vocabulary=vocabulary)
    assert shown == text


def test_what_is_no_sentinel_of_the_vocabulary_is_text(seqio):
  for text in ('<extra_id_125>', '<extra_id_x>', '<extra_id_>', 'plain <0>'):
    vocabulary = seqio.ByteVocabulary(125)
    ids = vocabularies.encode_as_written(text, vocabulary=vocabulary)
    assert ids == list(vocabulary.encode(text))


def test_other_vocabularies_spell_sentinels_themselves():
  class Words:
    encode = staticmethod(lambda text: [len(word) for word in text.split()])
    decode = staticmethod(lambda ids: ' '.join('x' * i for i in ids))

  ids = vocabularies.encode_as_written('a <extra_id_0>', vocabulary=Words)
  assert ids == [1, 12]
  assert vocabularies.decode_as_written([1, 2], vocabulary=Words) == 'x xx'


def test_errors_name_a_vocabulary_by_what_it_is_made_of(seqio):
  assert vocabularies.in_words(seqio.ByteVocabulary(9)) == (
      'ByteVocabulary(extra_ids=9)'
  )
  assert vocabularies.in_words(vocabularies.ByteVocabulary(9)) == (
      'ByteVocabulary(extra_ids=9)'
  )
  absent = seqio.SentencePieceVocabulary('/absent.model', 100)
  assert '/absent.model' in vocabularies.in_words(absent)
  assert ' at 0x' not in vocabularies.in_words(object())


def test_fewer_than_no_sentinels_are_refused():
  with pytest.raises(ValueError, match='extra_ids is -1.*expected 0 or more'):
    vocabularies.ByteVocabulary(-1)
