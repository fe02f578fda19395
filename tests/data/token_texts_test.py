# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Tokens as text: nothing is left out, nothing hides."""

import pytest
import sentencepiece

from t5wild.data import token_texts
from t5wild.inspecting import file_vocabularies
from tests.inspecting import subjects

_BYTES = subjects.VOCABULARY


def _ids(text):
  return _BYTES.encode(text)


def test_each_kind_of_token_is_told_from_text():
  tokens = [*_ids('ab'), 383, *_ids('ö'), 2, 1, 0, 900]
  assert list(token_texts.parts_of(tokens, _BYTES)) == [
      ('text', 'ab'), ('sentinel', '<0>'), ('text', 'ö'), ('unknown', '<?2>'),
      ('end', '</s>'), ('padding', '<pad>'), ('unknown', '<?900>'),
  ]  # fmt: skip


def test_half_a_character_is_shown():
  (part,) = token_texts.parts_of(_ids('ö')[:1], _BYTES)
  assert part == ('text', '\N{REPLACEMENT CHARACTER}')


def test_signs_that_move_or_hide_others_are_made_visible():
  text = 'a\nb\tc\x00\x1b[31m\u202e\u200b d'
  shown = token_texts.visible(text)
  assert shown == 'a↵b⇥c␀␛[31m⟨202E⟩⟨200B⟩ d'
  assert shown.isprintable()
  assert token_texts.visible('Grüße, 世界') == 'Grüße, 世界'


def test_a_token_alone_has_a_name():
  names = {3 + 32: '␣', 13: '↵', 3 + 0xC3: 'byte 0xc3', 100: 'a', 383: '<0>'}
  for token, name in names.items():
    assert token_texts.name_of(token, _BYTES) == name


@pytest.fixture(scope='module')
def pieces(tmp_path_factory):
  """A SentencePiece vocabulary of a few words."""
  path = tmp_path_factory.mktemp('pieces')
  text = path / 'a.txt'
  text.write_text('the cat sat on a mat\nthe dog sat on a log\n' * 50)
  model = str(path / 'a.model')
  sentencepiece.SentencePieceTrainer.train(
      input=str(text), model_prefix=model.removesuffix('.model'),
      vocab_size=26, pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
      minloglevel=9, hard_vocab_limit=False,
  )  # fmt: skip
  return file_vocabularies.load(model)


def test_pieces_keep_their_spaces_between_marks(pieces):
  words = [pieces.encode(word) for word in ('the cat', 'sat', 'on a')]
  last = pieces.vocab_size - 1
  tokens = [*words[0], last, *words[1], last - 1, *words[2], 1]
  shown = ''.join(text for _, text in token_texts.parts_of(tokens, pieces))
  assert shown == 'the cat<0> sat<1> on a</s>'


def test_a_piece_alone_shows_the_space_before_it(pieces):
  model = sentencepiece.SentencePieceProcessor(
      model_file=pieces._description['path']
  )
  for token in range(3, model.vocab_size()):
    assert token_texts.name_of(token, pieces) == model.id_to_piece(token)
